//! Takes an archive apart: first into a directory of its own, and to where its files belong only when all of it was sound.

use crate::Kind;
use crate::entry::{self, Unsafe};
use crate::moving;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What came out of an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unpacked {
    pub files: u64,
    /// What was left out, and why.
    pub said: Vec<String>,
}

/// What to do with links that lead out of the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutsideLinks {
    /// They are left out, and named.
    #[default]
    LeftOut,
    /// They are made. Nothing is ever written through them.
    Made,
}

#[derive(Debug, thiserror::Error)]
pub enum UnpackFault {
    #[error("it is no archive: it begins neither as zip nor as zstd")]
    NoArchive,
    #[error("it is damaged: {0}")]
    Damaged(#[source] io::Error),
    #[error("`{name}` is not safe to unpack: {why}")]
    Unsafe { name: String, why: Unsafe },
    #[error("could not write `{}`: {cause}", path.display())]
    Write { path: PathBuf, cause: io::Error },
    #[error("`{}` is in the way", .0.display())]
    InTheWay(PathBuf),
}

/// Unpacks into `root`, which is there. Nothing has changed when it fails before the last move.
/// # Errors
/// It is damaged, holds what is not safe, or cannot be written.
pub fn unpack(mut archive: File, root: &Path, links: OutsideLinks) -> Result<Unpacked, UnpackFault> {
    let mut first = Vec::new();
    (&mut archive).take(4).read_to_end(&mut first).map_err(UnpackFault::Damaged)?;
    archive.seek(SeekFrom::Start(0)).map_err(UnpackFault::Damaged)?;
    let staging = tempfile::Builder::new().prefix(".unpacking-").tempdir_in(root);
    let staging = staging.map_err(|cause| UnpackFault::Write { path: root.to_owned(), cause })?;
    let mut stage = Stage { dir: staging.path(), outside_links: links, found: Found::default() };
    match Kind::of(&first) {
        Some(Kind::Zip) => unpack_zip(archive, &mut stage)?,
        Some(Kind::Zstd) => unpack_tar(zstd::Decoder::new(archive).map_err(UnpackFault::Damaged)?, &mut stage)?,
        Some(Kind::Gzip) | None => return Err(UnpackFault::NoArchive),
    }
    let Found { files, said, links, directories } = stage.found;
    for (path, target) in &links {
        let full = staging.path().join(path);
        make_parent(&full)
            .and_then(|()| moving::make_link(target, &full))
            .map_err(|cause| UnpackFault::Write { path: path.clone(), cause })?;
    }
    moving::into_place(staging.path(), root, &directories)?;
    Ok(Unpacked { files: files + links.len() as u64, said })
}

/// What was found while unpacking, and is done at the end.
#[derive(Default)]
struct Found {
    files: u64,
    said: Vec<String>,
    /// Made last, so that nothing is ever written through them.
    links: BTreeMap<PathBuf, String>,
    /// Their permissions are set last: one that nobody may write to would stay empty.
    directories: BTreeMap<PathBuf, u32>,
}

struct Stage<'a> {
    dir: &'a Path,
    outside_links: OutsideLinks,
    found: Found,
}

impl Stage<'_> {
    /// Where an entry goes. `None`: it is the directory itself.
    fn place(&self, name: &str) -> Result<Option<PathBuf>, UnpackFault> {
        let refused = |why| UnpackFault::Unsafe { name: name.escape_debug().to_string(), why };
        let Some(path) = entry::path_of(name).map_err(refused)? else { return Ok(None) };
        if path.ancestors().skip(1).any(|above| self.found.links.contains_key(above)) {
            return Err(refused(Unsafe::BelowLink));
        }
        Ok(Some(path))
    }

    fn directory(&mut self, path: PathBuf, mode: Option<u32>) -> Result<(), UnpackFault> {
        fs::create_dir_all(self.dir.join(&path)).map_err(|cause| UnpackFault::Write { path: path.clone(), cause })?;
        self.found.directories.insert(path, mode.unwrap_or(0o755) & 0o777);
        Ok(())
    }

    fn link(&mut self, path: PathBuf, target: String) {
        if self.outside_links == OutsideLinks::LeftOut && !entry::stays_inside(&path, &target) {
            self.found.said.push(format!("WARNING: {}: left out, it is a link out of the directory, to {target}", path.display()));
            return;
        }
        // The last entry of a name wins.
        self.found.links.insert(path, target);
    }

    fn file(&mut self, path: &Path, mode: Option<u32>, time: Option<SystemTime>, mut content: impl Read) -> Result<(), UnpackFault> {
        let full = self.dir.join(path);
        let fault = |cause| UnpackFault::Write { path: path.to_owned(), cause };
        make_parent(&full).map_err(fault)?;
        self.found.links.remove(path);
        let mut file = File::create(&full).map_err(fault)?;
        copy(&mut content, &mut file).map_err(|side| match side {
            Side::Read(cause) => UnpackFault::Damaged(cause),
            Side::Write(cause) => fault(cause),
        })?;
        if let Some(time) = time {
            file.set_modified(time).map_err(fault)?;
        }
        moving::set_mode(&full, mode.unwrap_or(0o644) & 0o777).map_err(fault)?;
        self.found.files += 1;
        Ok(())
    }
}

fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

enum Side {
    Read(io::Error),
    Write(io::Error),
}

/// Tells a damaged archive from a full disk.
fn copy(from: &mut impl Read, to: &mut impl io::Write) -> Result<(), Side> {
    let mut buffer = vec![0; 128 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => to.write_all(&buffer[..count]).map_err(Side::Write)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Side::Read(error)),
        }
    }
}

fn unpack_zip(archive: File, stage: &mut Stage<'_>) -> Result<(), UnpackFault> {
    let damaged = |error: zip::result::ZipError| UnpackFault::Damaged(error.into());
    let mut archive = zip::ZipArchive::new(BufReader::new(archive)).map_err(damaged)?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(damaged)?;
        let name = entry.name().map_err(damaged)?.into_owned();
        let Some(path) = stage.place(&name)? else { continue };
        let mode = entry.unix_mode();
        let refused = |why| UnpackFault::Unsafe { name: name.escape_debug().to_string(), why };
        // The upper bits of the mode are the kind of file; zip itself knows only names that end in a slash.
        match mode.map_or(0, |mode| mode & 0o170_000) {
            0o040_000 => stage.directory(path, mode)?,
            _ if entry.is_dir() => stage.directory(path, mode)?,
            0o120_000 => {
                let mut target = String::new();
                // No path is longer on any system.
                (&mut entry).take(4096).read_to_string(&mut target).map_err(UnpackFault::Damaged)?;
                if target.contains('\0') {
                    return Err(refused(Unsafe::BadName));
                }
                stage.link(path, target);
            }
            0 | 0o100_000 => {
                let time = time_of_zip(&entry);
                stage.file(&path, mode, time, entry)?;
            }
            _ => return Err(refused(Unsafe::Special)),
        }
    }
    Ok(())
}

fn time_of_zip<R: Read>(entry: &zip::read::ZipFile<'_, R>) -> Option<SystemTime> {
    let extended = entry.extra_data_fields().find_map(|field| match field {
        zip::ExtraField::ExtendedTimestamp(times) => times.mod_time(),
        _ => None,
    });
    extended.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds.into()))
}

fn unpack_tar(content: impl Read, stage: &mut Stage<'_>) -> Result<(), UnpackFault> {
    let mut archive = tar::Archive::new(content);
    for entry in archive.entries().map_err(UnpackFault::Damaged)? {
        let entry = entry.map_err(UnpackFault::Damaged)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let Some(path) = stage.place(&name)? else { continue };
        let refused = |why| UnpackFault::Unsafe { name: name.escape_debug().to_string(), why };
        let mode = entry.header().mode().ok();
        let target = entry.link_name_bytes().map(|target| String::from_utf8_lossy(&target).into_owned());
        match (entry.header().entry_type(), target) {
            (tar::EntryType::Directory, _) => stage.directory(path, mode)?,
            (tar::EntryType::Symlink, Some(target)) => stage.link(path, target),
            (tar::EntryType::Link, Some(target)) => {
                hard_link(stage, &path, &target).map_err(|fault| fault.unwrap_or_else(|| refused(Unsafe::LinkToNothing)))?
            }
            (tar::EntryType::Regular | tar::EntryType::Continuous, _) => {
                let time = entry.header().mtime().ok().map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
                stage.file(&path, mode, time, entry)?;
            }
            // What goes before an entry and is understood by the reader itself.
            (tar::EntryType::XGlobalHeader, _) => {}
            _ => return Err(refused(Unsafe::Special)),
        }
    }
    Ok(())
}

/// A copy: two names of one file would let a later job change both. `Err(None)`: it leads to nothing that was unpacked.
fn hard_link(stage: &mut Stage<'_>, path: &Path, target: &str) -> Result<(), Option<UnpackFault>> {
    let source = entry::path_of(target).ok().flatten().ok_or(None)?;
    let file = File::open(stage.dir.join(&source)).map_err(|_| None)?;
    let found = file.metadata().map_err(|cause| Some(UnpackFault::Write { path: source.clone(), cause }))?;
    if !found.is_file() {
        return Err(None);
    }
    stage.file(path, Some(moving::mode(&found)), found.modified().ok(), file).map_err(Some)
}

#[cfg(test)]
mod tests;
