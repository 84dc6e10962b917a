//! The work directory, copied into a container and back: for engines that do not see the files that we see.

use super::Engine;
use crate::trouble::Trouble;
use bollard::query_parameters::{DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Pieces that may wait between the disk and the engine, each of at most [`PIECE`] bytes.
const PIECES: usize = 16;
const PIECE: usize = 64 * 1024;

/// What was copied in: what of it is gone afterwards was removed by a step.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sent(BTreeSet<PathBuf>);

/// Why the files did not get there or back.
#[derive(Debug)]
pub enum WorkspaceFault {
    Engine(Trouble),
    Disk(io::Error),
}

impl Engine {
    /// Copies a directory to the same path of a container that has not been started.
    pub async fn send_directory(&self, container: &str, directory: &Path) -> Result<Sent, WorkspaceFault> {
        let (sender, receiver) = channel(PIECES);
        let from = directory.to_owned();
        let packing = tokio::task::spawn_blocking(move || pack(&from, Pieces { sender, piece: Vec::new() }));
        let options = UploadToContainerOptionsBuilder::default().path("/").build();
        let body = bollard::body_try_stream(pieces(receiver));
        let sent = self.docker.upload_to_container(container, Some(options), body).await;
        let packed = packing.await.map_err(|error| WorkspaceFault::Disk(io::Error::other(error)))?;
        match (packed, sent) {
            // A pipe breaks when the engine refused; then the engine knows why.
            (Err(error), Ok(())) => Err(WorkspaceFault::Disk(error)),
            (Err(error), Err(_)) if error.kind() != io::ErrorKind::BrokenPipe => Err(WorkspaceFault::Disk(error)),
            (_, Err(error)) => Err(WorkspaceFault::Engine(Trouble::of(error, self.timeout))),
            (Ok(sent), Ok(())) => Ok(sent),
        }
    }

    /// Copies a directory of a container back over the one it came from. What was sent and is not there any more is removed here too.
    pub async fn fetch_directory(&self, container: &str, directory: &Path, sent: &Sent) -> Result<(), WorkspaceFault> {
        let path = format!("{}/.", directory.display());
        let options = DownloadFromContainerOptionsBuilder::default().path(&path).build();
        let mut download = Box::pin(self.docker.download_from_container(container, Some(options)));
        let (sender, receiver) = channel(PIECES);
        let to = directory.to_owned();
        let unpacking = tokio::task::spawn_blocking(move || unpack(Arriving { receiver, piece: Bytes::new() }, &to));
        let mut trouble = None;
        while let Some(piece) = download.next().await {
            let piece =
                piece.map_err(|error| trouble = Some(Trouble::of(error, self.timeout))).map_err(|()| io::ErrorKind::ConnectionReset.into());
            let is_last = piece.is_err();
            // Whoever unpacks has ended for a reason that it tells below.
            if sender.send(piece).await.is_err() || is_last {
                break;
            }
        }
        drop(sender);
        let unpacked = unpacking.await.map_err(|error| WorkspaceFault::Disk(io::Error::other(error)))?;
        if let Some(trouble) = trouble {
            return Err(WorkspaceFault::Engine(trouble));
        }
        let kept = unpacked.map_err(WorkspaceFault::Disk)?;
        remove_missing(directory, sent, &kept).map_err(WorkspaceFault::Disk)
    }
}

fn pieces(receiver: Receiver<io::Result<Bytes>>) -> impl stream::Stream<Item = io::Result<Bytes>> {
    stream::unfold(receiver, |mut receiver| async move { receiver.recv().await.map(|piece| (piece, receiver)) })
}

/// Writes pieces to the runtime from outside of it.
struct Pieces {
    sender: Sender<io::Result<Bytes>>,
    piece: Vec<u8>,
}

impl Pieces {
    fn send(&mut self, piece: io::Result<Bytes>) -> io::Result<()> {
        self.sender.blocking_send(piece).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = std::mem::take(&mut self.piece);
        if piece.is_empty() { Ok(()) } else { self.send(Ok(piece.into())) }
    }
}

/// Reads pieces from the runtime outside of it.
struct Arriving {
    receiver: Receiver<io::Result<Bytes>>,
    piece: Bytes,
}

impl Read for Arriving {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.receiver.blocking_recv() {
                Some(piece) => self.piece = piece?,
                None => return Ok(0),
            }
        }
        let count = self.piece.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.piece.split_to(count));
        Ok(count)
    }
}

fn pack(directory: &Path, out: Pieces) -> io::Result<Sent> {
    let mut builder = tar::Builder::new(out);
    let mut sent = Sent::default();
    let packed = pack_below(directory, Path::new(""), directory, &mut builder, &mut sent).and_then(|()| builder.finish());
    let mut out = builder.into_inner()?;
    if let Err(error) = packed {
        // The engine must not take what was sent for the whole.
        let told = io::Error::new(error.kind(), error.to_string());
        let _nobody_listens = out.send(Err(told));
        return Err(error);
    }
    out.flush()?;
    Ok(sent)
}

fn pack_below(root: &Path, below: &Path, directory: &Path, builder: &mut tar::Builder<Pieces>, sent: &mut Sent) -> io::Result<()> {
    // Names in an archive have no slash before them.
    let in_archive = |path: &Path| root.join(path).strip_prefix("/").map(Path::to_owned).unwrap_or_default();
    builder.follow_symlinks(false);
    builder.append_dir(in_archive(below), directory)?;
    let mut entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, below) = (entry.path(), below.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            pack_below(root, &below, &path, builder, sent)?;
        } else if kind.is_file() || kind.is_symlink() {
            builder.append_path_with_name(&path, in_archive(&below))?;
        } else {
            // Sockets and pipes mean nothing elsewhere.
            continue;
        }
        sent.0.insert(below);
    }
    Ok(())
}

/// Gives the names of what was unpacked. Nothing is written outside of the directory, whatever names and links the archive holds.
fn unpack(archive: impl Read, directory: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut archive = tar::Archive::new(archive);
    archive.set_overwrite(true);
    let mut unpacked = BTreeSet::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let name: PathBuf = entry.path()?.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        if name.as_os_str().is_empty() {
            continue;
        }
        entry.set_preserve_permissions(true);
        // A file where a directory was, or the other way round, is a change too.
        let is_directory = entry.header().entry_type().is_dir();
        let target = directory.join(&name);
        match fs::symlink_metadata(&target) {
            Ok(there) if there.is_dir() && !is_directory => fs::remove_dir_all(&target)?,
            Ok(there) if !there.is_dir() && is_directory => fs::remove_file(&target)?,
            _ => {}
        }
        if entry.unpack_in(directory)? {
            unpacked.insert(name);
        }
    }
    Ok(unpacked)
}

fn remove_missing(directory: &Path, sent: &Sent, kept: &BTreeSet<PathBuf>) -> io::Result<()> {
    // What lies deeper goes first.
    for gone in sent.0.difference(kept).collect::<Vec<_>>().into_iter().rev() {
        let path = directory.join(gone);
        let removed = match fs::symlink_metadata(&path) {
            Ok(there) if there.is_dir() => fs::remove_dir(&path),
            Ok(_) => fs::remove_file(&path),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, content) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o644);
            if let Some(target) = content.strip_prefix("-> ") {
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_size(0);
                builder.append_link(&mut header, name, target).unwrap();
            } else {
                header.set_size(content.len() as u64);
                // Written as it is: the builder itself refuses names that lead out.
                header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
                header.set_cksum();
                builder.append(&header, content.as_bytes()).unwrap();
            }
        }
        builder.into_inner().unwrap()
    }

    #[test]
    fn nothing_is_unpacked_outside_of_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("inside");
        fs::create_dir(&inside).unwrap();
        let hostile = archive(&[("../out", "x"), ("link", "-> .."), ("link/out", "x"), ("good", "y")]);
        // An entry that leads through the link ends the copy with an error, or is left out.
        let _either = unpack(&hostile[..], &inside);
        let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["inside"]);
    }

    #[test]
    fn a_directory_goes_and_comes_back_with_what_the_steps_changed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("sub/removed"), "1").unwrap();
        fs::write(dir.path().join("changed"), "1").unwrap();
        let (sender, mut receiver) = channel(1000);
        let sent = pack(dir.path(), Pieces { sender, piece: Vec::new() }).unwrap();
        let expected: BTreeSet<PathBuf> = ["changed", "sub", "sub/removed"].map(PathBuf::from).into();
        assert_eq!(sent, Sent(expected));
        let mut bytes = Vec::new();
        while let Ok(piece) = receiver.try_recv() {
            bytes.extend_from_slice(&piece.unwrap());
        }
        let names: Vec<_> =
            tar::Archive::new(&bytes[..]).entries().unwrap().map(|entry| entry.unwrap().path().unwrap().into_owned()).collect();
        assert!(names.iter().any(|name| Path::new("/").join(name) == dir.path().join("sub/removed")), "{names:?}");

        let kept = unpack(&archive(&[("changed", "2"), ("new", "3")])[..], dir.path()).unwrap();
        remove_missing(dir.path(), &sent, &kept).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("changed")).unwrap(), "2");
        assert_eq!(fs::read_to_string(dir.path().join("new")).unwrap(), "3");
        assert!(!dir.path().join("sub").exists());
    }
}
