//! Up to where a trace is right, in two slots that are written in turn.

use crate::trace::framed::State;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// What a new process needs to go on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// Bytes of the agent's log that are in the trace.
    pub agent: u64,
    /// Bytes of the trace that are right.
    pub length: u64,
    pub crc: u32,
    pub is_limited: bool,
    pub state: State,
}

/// 64 streams with what is remembered of each fit into this.
const SLOT: usize = 32 << 10;

/// Length and checksum before the mark.
const HEAD: usize = 8;

#[derive(Debug)]
pub(super) struct Marks {
    file: File,
    slots: [Option<(u64, Mark)>; 2],
    next: u64,
}

#[derive(Serialize, Deserialize)]
struct Written<M> {
    number: u64,
    mark: M,
}

impl Marks {
    pub fn open(path: &Path, options: &OpenOptions) -> io::Result<Self> {
        let mut file = options.open(path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let slot = |number: usize| {
            let slot = text.get(number * SLOT..)?;
            let length = usize::try_from(u32::from_le_bytes(slot.get(..4)?.try_into().ok()?)).ok()?;
            let written = slot.get(HEAD..HEAD + length)?;
            (u32::from_le_bytes(slot.get(4..HEAD)?.try_into().ok()?) == crc32fast::hash(written)).then_some(())?;
            serde_json::from_slice::<Written<Mark>>(written).ok().map(|written| (written.number, written.mark))
        };
        let slots = [slot(0), slot(1)];
        let next = slots.iter().flatten().map(|(number, _)| number + 1).max().unwrap_or(0);
        Ok(Self { file, slots, next })
    }

    /// The newest of which the trace has all.
    pub fn newest(&self, trace: u64) -> Option<Mark> {
        self.slots.iter().flatten().filter(|(_, mark)| mark.length <= trace).max_by_key(|(number, _)| *number).map(|(_, mark)| mark.clone())
    }

    pub fn write(&mut self, mark: &Mark) -> io::Result<()> {
        let text = serde_json::to_vec(&Written { number: self.next, mark })?;
        if text.len() + HEAD > SLOT {
            return Err(io::Error::other("what is to be remembered of the streams of a trace is too long"));
        }
        let mut slot = Vec::with_capacity(text.len() + HEAD);
        slot.extend_from_slice(&u32::try_from(text.len()).unwrap_or(0).to_le_bytes());
        slot.extend_from_slice(&crc32fast::hash(&text).to_le_bytes());
        slot.extend_from_slice(&text);
        self.file.seek(SeekFrom::Start((self.next % 2) * SLOT as u64))?;
        self.file.write_all(&slot)?;
        self.next += 1;
        Ok(())
    }
}
