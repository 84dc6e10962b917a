//! Room on the disk that is there when the disk is full, so that the last words of a job can still be written.
//!
//! ```text
//! Ahead: the first 16 KiB of the file itself are its own already --it outgrows half of them--> Elsewhere: another file holds as much, and is given back
//! ```
//!
//! Most files never grow that far, and one file more for each of them costs a job a tenth of a millisecond.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A marker, the final record of a journal, and what file systems need around them.
const SIZE: u64 = 16 * 1024;

/// The room of one file that grows. It goes with its value, or earlier.
#[derive(Debug, Default)]
pub struct Reserve {
    state: State,
}

#[derive(Debug, Default)]
enum State {
    /// It was given back, or the file system has no room to keep.
    #[default]
    None,
    /// Allocated behind the end of the file. Then comes the file of this path.
    Ahead(PathBuf),
    /// This file holds nothing but room.
    Elsewhere(PathBuf),
}

impl Reserve {
    /// Room for a file that is new. `name`: what holds it in `directory` when it is not the file itself. Without it, when there is none to be had, a
    /// full disk only means that fewer last words are said.
    pub fn of(file: &File, directory: &Path, name: &str) -> Self {
        let path = directory.join(name);
        let state = match allocate_ahead(file) {
            Ok(()) => State::Ahead(path),
            Err(_) => take(&path).map_or(State::None, |()| State::Elsewhere(path)),
        };
        Self { state }
    }

    /// To be called before the file has `length` bytes.
    /// # Errors
    /// The disk is full: only what was kept ahead is left.
    pub fn keep_beyond(&mut self, length: u64) -> io::Result<()> {
        let State::Ahead(path) = &mut self.state else { return Ok(()) };
        if length <= SIZE / 2 {
            return Ok(());
        }
        match take(path) {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => return Err(error),
            Err(_) => self.state = State::None,
            Ok(()) => self.state = State::Elsewhere(std::mem::take(path)),
        }
        Ok(())
    }

    /// Gives the room back, as far as it is not the file's own.
    pub fn release(&mut self) {
        if let State::Elsewhere(file) = std::mem::take(&mut self.state) {
            let _ = std::fs::remove_file(file);
        }
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        self.release();
    }
}

/// Makes a file that holds room, or none.
fn take(path: &Path) -> io::Result<()> {
    // Of a process that was killed.
    let _ = std::fs::remove_file(path);
    File::create_new(path).and_then(|file| allocate(&file)).inspect_err(|_| drop(std::fs::remove_file(path)))
}

#[cfg(target_os = "linux")]
fn allocate_ahead(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fallocate(file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, SIZE)?)
}

#[cfg(not(target_os = "linux"))]
fn allocate_ahead(_file: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
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

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_grows_has_room_ahead_and_then_elsewhere_until_it_is_given_back() {
        use std::os::unix::fs::MetadataExt as _;
        let directory = tempfile::tempdir().unwrap();
        let elsewhere = || std::fs::metadata(directory.path().join("r")).map(|found| found.len()).unwrap_or_default();
        let file = File::create(directory.path().join("f")).unwrap();
        let mut reserve = Reserve::of(&file, directory.path(), "r");
        let found = file.metadata().unwrap();
        assert_eq!((found.len(), found.blocks() * 512 >= SIZE, elsewhere()), (0, true, 0));
        reserve.keep_beyond(SIZE / 2).unwrap();
        assert_eq!(elsewhere(), 0);
        reserve.keep_beyond(SIZE / 2 + 1).unwrap();
        assert_eq!(elsewhere(), SIZE);
        reserve.release();
        assert_eq!(elsewhere(), 0);
        let mut reserve = Reserve::of(&file, directory.path(), "r");
        reserve.keep_beyond(SIZE).unwrap();
        drop(reserve);
        assert_eq!(elsewhere(), 0, "it goes with its value");
        Reserve::of(&file, &directory.path().join("nowhere"), "r").keep_beyond(SIZE).unwrap();
    }
}
