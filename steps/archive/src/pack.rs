//! Writes files into an archive: names, permissions, times, links.

use crate::{Format, Level};
use std::fs::{self, File, Metadata};
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use zip::write::{FullFileOptions, ZipWriter};

/// What went into the archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packed {
    pub files: u64,
    /// What was left out, and why.
    pub said: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum PackFault {
    #[error("could not read `{}`: {cause}", path.display())]
    Read { path: PathBuf, cause: io::Error },
    #[error("could not write the archive: {0}")]
    Write(#[source] io::Error),
}

/// Extended timestamp of Info-ZIP: the time to the second in UTC, which the fields of zip itself do not have.
const EXTENDED_TIMESTAMP: u16 = 0x5455;

/// Writes `files`, which are below `root`.
/// # Errors
/// One of them cannot be read, or the archive not be written.
pub fn pack(root: &Path, files: &[PathBuf], format: Format, level: Level, to: &mut (impl Write + Seek)) -> Result<Packed, PackFault> {
    match format {
        Format::Zip => {
            let mut archive = Zip { writer: ZipWriter::new(&mut *to).set_auto_large_file(), level };
            let packed = pack_each(root, files, &mut archive)?;
            archive.writer.finish().map_err(|error| PackFault::Write(error.into()))?;
            Ok(packed)
        }
        Format::TarZstd => {
            let mut encoder = zstd::Encoder::new(&mut *to, level.of_zstd()).map_err(PackFault::Write)?;
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            encoder.multithread(u32::try_from(threads.min(8)).unwrap_or(1)).map_err(PackFault::Write)?;
            let mut archive = Tar(tar::Builder::new(encoder));
            let packed = pack_each(root, files, &mut archive)?;
            let finished = archive.0.into_inner().and_then(zstd::Encoder::finish);
            finished.map_err(PackFault::Write)?;
            Ok(packed)
        }
    }
}

/// One kind of archive.
trait Archive {
    fn directory(&mut self, name: &str, found: &Metadata) -> io::Result<()>;
    fn link(&mut self, name: &str, target: &str, found: &Metadata) -> io::Result<()>;
    /// `content` has exactly the bytes that `found` tells, or fails.
    fn file(&mut self, name: &str, found: &Metadata, content: &mut dyn Read) -> io::Result<()>;
}

fn pack_each(root: &Path, files: &[PathBuf], archive: &mut impl Archive) -> Result<Packed, PackFault> {
    let mut packed = Packed::default();
    for path in files {
        let full = root.join(path);
        let read = |cause| PackFault::Read { path: path.clone(), cause };
        let found = match fs::symlink_metadata(&full) {
            Ok(found) => found,
            // Something may have been removed since it was found; the archive is of what is there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(read(error)),
        };
        let Some(name) = name_of(path) else {
            packed.said.push(format!("WARNING: {}: left out, its name is not UTF-8", path.display()));
            continue;
        };
        if found.is_dir() {
            archive.directory(&name, &found).map_err(PackFault::Write)?;
        } else if found.is_symlink() {
            let target = fs::read_link(&full).map_err(read)?;
            let Some(target) = target.to_str() else {
                packed.said.push(format!("WARNING: {}: left out, where it leads is not UTF-8", path.display()));
                continue;
            };
            archive.link(&name, target, &found).map_err(PackFault::Write)?;
        } else if found.is_file() {
            let mut content = Exactly { inner: BufReader::new(File::open(&full).map_err(read)?), left: found.len(), fault: None };
            let written = archive.file(&name, &found, &mut content);
            if let Some(cause) = content.fault.take() {
                return Err(read(cause));
            }
            written.map_err(PackFault::Write)?;
        } else {
            packed.said.push(format!("WARNING: {}: left out, it is neither a file, nor a directory, nor a link", path.display()));
            continue;
        }
        packed.files += 1;
    }
    Ok(packed)
}

/// With slashes, whatever the system has.
fn name_of(path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path.components().map(|part| part.as_os_str().to_str()).collect();
    parts.map(|parts| parts.join("/"))
}

/// As many bytes as the file had when it was looked at: the head of an entry has told them already.
struct Exactly<R> {
    inner: R,
    left: u64,
    fault: Option<io::Error>,
}

impl<R: Read> Read for Exactly<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let outcome = match self.inner.read(&mut buffer[..most]) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it became shorter while it was archived")),
            outcome => outcome,
        };
        match outcome {
            Ok(count) => {
                self.left -= count as u64;
                Ok(count)
            }
            Err(error) => {
                self.fault = Some(io::Error::new(error.kind(), error.to_string()));
                Err(error)
            }
        }
    }
}

struct Zip<W: Write + Seek> {
    writer: ZipWriter<W>,
    level: Level,
}

impl<W: Write + Seek> Zip<W> {
    fn options(&self, found: &Metadata) -> io::Result<FullFileOptions<'static, 'static>> {
        let seconds = seconds_of(found);
        let mut options = FullFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated)
            .compression_level(Some(i64::from(self.level.of_deflate())))
            .unix_permissions(mode_of(found))
            .large_file(found.len() >= u64::from(u32::MAX));
        if let Some(time) = dos_time(seconds) {
            options = options.last_modified_time(time);
        }
        if let Ok(seconds) = u32::try_from(seconds) {
            let field: Vec<u8> = std::iter::once(1).chain(seconds.to_le_bytes()).collect();
            options.add_extra_field(EXTENDED_TIMESTAMP, field, false)?;
        }
        Ok(options)
    }
}

impl<W: Write + Seek> Archive for Zip<W> {
    fn directory(&mut self, name: &str, found: &Metadata) -> io::Result<()> {
        let options = self.options(found)?;
        Ok(self.writer.add_directory(name, options)?)
    }

    fn link(&mut self, name: &str, target: &str, found: &Metadata) -> io::Result<()> {
        let options = self.options(found)?;
        Ok(self.writer.add_symlink(name, target, options)?)
    }

    fn file(&mut self, name: &str, found: &Metadata, content: &mut dyn Read) -> io::Result<()> {
        let options = self.options(found)?;
        self.writer.start_file(name, options)?;
        io::copy(content, &mut self.writer).map(drop)
    }
}

struct Tar<W: Write>(tar::Builder<W>);

impl<W: Write> Tar<W> {
    fn header(found: &Metadata, kind: tar::EntryType, size: u64) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode_of(found));
        header.set_mtime(u64::try_from(seconds_of(found)).unwrap_or_default());
        header.set_size(size);
        header
    }
}

impl<W: Write> Archive for Tar<W> {
    fn directory(&mut self, name: &str, found: &Metadata) -> io::Result<()> {
        self.0.append_data(&mut Self::header(found, tar::EntryType::Directory, 0), name, io::empty())
    }

    fn link(&mut self, name: &str, target: &str, found: &Metadata) -> io::Result<()> {
        self.0.append_link(&mut Self::header(found, tar::EntryType::Symlink, 0), name, target)
    }

    fn file(&mut self, name: &str, found: &Metadata, content: &mut dyn Read) -> io::Result<()> {
        self.0.append_data(&mut Self::header(found, tar::EntryType::Regular, found.len()), name, content)
    }
}

#[cfg(unix)]
fn mode_of(found: &Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o777
}

#[cfg(not(unix))]
fn mode_of(found: &Metadata) -> u32 {
    if found.is_dir() { 0o755 } else { 0o644 }
}

/// Since 1970. Before that: zero.
fn seconds_of(found: &Metadata) -> i64 {
    let since = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.and_then(|since| i64::try_from(since.as_secs()).ok()).unwrap_or_default()
}

/// The fields of zip itself, in UTC. `None`: before 1980 or after 2107.
fn dos_time(seconds: i64) -> Option<zip::DateTime> {
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days to a date, by Howard Hinnant's `civil_from_days`.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let small = |value: i64| u8::try_from(value).ok();
    let time = zip::DateTime::from_date_and_time(
        u16::try_from(year).ok()?,
        small(month)?,
        small(day)?,
        small(of_day / 3_600)?,
        small(of_day / 60 % 60)?,
        small(of_day % 60)?,
    );
    time.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_a_date_in_utc() {
        let shown = |seconds| dos_time(seconds).map(|time| (time.year(), time.month(), time.day(), time.hour(), time.minute()));
        assert_eq!(shown(951_782_400), Some((2000, 2, 29, 0, 0)));
        assert_eq!(shown(1_700_000_000), Some((2023, 11, 14, 22, 13)));
        assert_eq!(shown(0), None);
    }

    #[test]
    fn a_file_that_becomes_shorter_is_named() {
        let mut content = Exactly { inner: &b"abc"[..], left: 5, fault: None };
        assert!(io::copy(&mut content, &mut io::sink()).is_err());
        assert_eq!(content.fault.unwrap().to_string(), "it became shorter while it was archived");
    }

    #[test]
    fn a_file_that_grows_is_archived_as_it_was() {
        let mut text = String::new();
        Exactly { inner: &b"abcdef"[..], left: 3, fault: None }.read_to_string(&mut text).unwrap();
        assert_eq!(text, "abc");
    }
}
