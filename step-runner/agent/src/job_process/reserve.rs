//! Room on the disk that is given back when the disk is full, so that the last words of a job can still be written.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A marker, the final record of a journal, and what file systems need around them.
const SIZE: u64 = 16 * 1024;

/// A file that holds nothing but room. It goes with its value, or earlier.
#[derive(Debug, Default)]
pub struct Reserve {
    /// `None`: it was given back, or the file system has no room to keep.
    file: Option<PathBuf>,
}

impl Reserve {
    /// Takes room in `directory`, under this name. Without it, when there is none to be had, a full disk only means that fewer last words are said.
    pub fn take(directory: &Path, name: &str) -> Self {
        let path = directory.join(name);
        // Of a process that was killed.
        let _ = std::fs::remove_file(&path);
        match File::create_new(&path).and_then(|file| allocate(&file)) {
            Ok(()) => Self { file: Some(path) },
            Err(_) => {
                let _ = std::fs::remove_file(path);
                Self::default()
            }
        }
    }

    /// Gives the room back.
    pub fn release(&mut self) {
        if let Some(file) = self.file.take() {
            let _ = std::fs::remove_file(file);
        }
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(target_os = "linux")]
fn allocate(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, SIZE)?)
}

#[cfg(not(target_os = "linux"))]
fn allocate(mut file: &File) -> io::Result<()> {
    let zeros = [0; 4096];
    (0..SIZE / zeros.len() as u64).try_for_each(|_| io::Write::write_all(&mut file, &zeros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_there_until_it_is_given_back() {
        let directory = tempfile::tempdir().unwrap();
        let length = || std::fs::metadata(directory.path().join("r")).map(|found| found.len()).unwrap_or_default();
        let mut reserve = Reserve::take(directory.path(), "r");
        assert_eq!(length(), SIZE);
        reserve.release();
        assert_eq!(length(), 0);
        drop(Reserve::take(directory.path(), "r"));
        assert_eq!(length(), 0);
        drop(Reserve::take(&directory.path().join("nowhere"), "r"));
    }
}
