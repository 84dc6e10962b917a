//! The files of a job as the one file that is uploaded.

use crate::settings::{Format, Upload};
use flate2::{Compression, GzBuilder};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use step_archive::pack::pack;
use step_archive::selection::{Selection, Wanted, select};
use step_archive::untracked::untracked;
use step_sdk::{Failure, say};
use tempfile::NamedTempFile;

/// What is uploaded.
pub struct Content {
    pub file: NamedTempFile,
    /// As the server is told.
    pub filename: String,
    pub size: u64,
    /// How many went into it.
    pub files: u64,
}

/// Collects what was asked for. `None`: there is nothing.
/// # Errors
/// A file cannot be read, or the files do not fit the format.
pub fn collect(upload: &Upload, root: &Path) -> Result<Option<Content>, Failure> {
    let wanted =
        Wanted { paths: upload.paths.clone(), exclude: upload.exclude.clone(), untracked: upload.untracked.then(|| untracked_of(root)) };
    let Selection { files, said } =
        select(root, &wanted).map_err(|error| Failure::step(format!("could not read the work directory: {error}")))?;
    said.iter().for_each(|line| say(line));
    if files.is_empty() {
        return Ok(None);
    }
    let fault = |error: io::Error| Failure::step(format!("could not write a temporary file: {error}"));
    let mut file = NamedTempFile::new().map_err(fault)?;
    let mut to = BufWriter::with_capacity(1 << 20, file.as_file());
    let count = match upload.format {
        Format::Zip => archive(upload, root, &files, step_archive::Format::Zip, &mut to)?,
        Format::TarZstd => archive(upload, root, &files, step_archive::Format::TarZstd, &mut to)?,
        Format::Gzip => compressed(upload, root, &files, &mut to)?,
        Format::Raw => as_it_is(root, &files, &mut to)?,
    };
    to.flush().map_err(fault)?;
    drop(to);
    let size = file.as_file().metadata().map_err(fault)?.len();
    file.rewind().map_err(fault)?;
    Ok(Some(Content { file, filename: filename(&upload.name, upload.format), size, files: count }))
}

/// As GitLab's runner calls it (GitLab Runner v19.4, `commands/helpers/artifacts_uploader.go`).
pub fn filename(name: &str, format: Format) -> String {
    let name = if name.is_empty() { "default" } else { name };
    // A name with a path in it is a name all the same.
    let name: String = name.chars().map(|letter| if matches!(letter, '/' | '\\') || letter.is_control() { '_' } else { letter }).collect();
    match format {
        Format::Zip => format!("{name}.zip"),
        Format::TarZstd => format!("{name}.tar.zst"),
        Format::Gzip => format!("{name}.gz"),
        Format::Raw => name,
    }
}

fn untracked_of(root: &Path) -> Vec<PathBuf> {
    untracked(root).unwrap_or_else(|error| {
        say(&format!("WARNING: untracked: {error}"));
        Vec::new()
    })
}

fn archive(
    upload: &Upload,
    root: &Path,
    files: &[PathBuf],
    format: step_archive::Format,
    to: &mut BufWriter<&File>,
) -> Result<u64, Failure> {
    let packed =
        pack(root, files, format, upload.level, to).map_err(|fault| Failure::step(format!("could not make the archive: {fault}")))?;
    packed.said.iter().for_each(|line| say(line));
    Ok(packed.files)
}

/// Every regular file, with its name, one compressed stream behind the other.
fn compressed(upload: &Upload, root: &Path, files: &[PathBuf], to: &mut BufWriter<&File>) -> Result<u64, Failure> {
    let mut count = 0;
    for path in regular(root, files) {
        let fault = |error: io::Error| Failure::step(format!("could not compress `{}`: {error}", path.display()));
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let builder = GzBuilder::new().filename(name.replace('\0', "_"));
        let mut encoder = builder.write(&mut *to, Compression::new(upload.level.of_deflate()));
        let mut content = BufReader::new(File::open(root.join(path)).map_err(fault)?);
        io::copy(&mut content, &mut encoder).map_err(fault)?;
        encoder.finish().map_err(fault)?;
        count += 1;
    }
    Ok(count)
}

fn as_it_is(root: &Path, files: &[PathBuf], to: &mut BufWriter<&File>) -> Result<u64, Failure> {
    let regular: Vec<&PathBuf> = regular(root, files).collect();
    let [path] = regular.as_slice() else {
        return Err(Failure::bad_input(format!("the format `raw` is for one file, and `paths` means {}", regular.len()))
            .with_hint("use `zip`, or name the one file"));
    };
    let fault = |error: io::Error| Failure::step(format!("could not read `{}`: {error}", path.display()));
    io::copy(&mut File::open(root.join(path)).map_err(fault)?, to).map_err(fault)?;
    Ok(1)
}

fn regular<'a>(root: &Path, files: &'a [PathBuf]) -> impl Iterator<Item = &'a PathBuf> {
    files.iter().filter(move |path| fs::symlink_metadata(root.join(path)).is_ok_and(|found| found.is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn upload(format: Format, paths: &[&str]) -> Upload {
        Upload {
            name: "report".into(),
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            exclude: Vec::new(),
            untracked: false,
            kind: "junit".into(),
            format,
            expire_in: String::new(),
            level: step_archive::Level::Default,
        }
    }

    fn world() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("out")).unwrap();
        fs::write(dir.path().join("out/a.xml"), "<a/>").unwrap();
        fs::write(dir.path().join("out/b.xml"), "<b/>").unwrap();
        dir
    }

    #[test]
    fn reports_are_compressed_one_behind_the_other() {
        let dir = world();
        let content = collect(&upload(Format::Gzip, &["out/*.xml"]), dir.path()).unwrap().unwrap();
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(content.file.reopen().unwrap()).read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), content.filename.as_str(), content.files), ("<a/><b/>", "report.gz", 2));
    }

    #[test]
    fn one_file_goes_as_it_is_and_several_do_not() {
        let dir = world();
        let content = collect(&upload(Format::Raw, &["out/a.xml"]), dir.path()).unwrap().unwrap();
        assert_eq!((fs::read_to_string(content.file.path()).unwrap().as_str(), content.filename.as_str()), ("<a/>", "report"));
        let failure = collect(&upload(Format::Raw, &["out"]), dir.path()).err().unwrap();
        assert_eq!((failure.message.as_str(), failure.exit_code()), ("the format `raw` is for one file, and `paths` means 2", 3));
    }

    #[test]
    fn an_archive_has_all_of_it_but_what_is_excluded() {
        let dir = world();
        let wanted = Upload { exclude: vec!["**/b.xml".into()], ..upload(Format::Zip, &["out/"]) };
        let content = collect(&wanted, dir.path()).unwrap().unwrap();
        let to = tempfile::tempdir().unwrap();
        let links = step_archive::unpack::OutsideLinks::LeftOut;
        step_archive::unpack::unpack(content.file.reopen().unwrap(), to.path(), links).unwrap();
        assert_eq!((to.path().join("out/a.xml").exists(), to.path().join("out/b.xml").exists()), (true, false));
    }

    #[test]
    fn nothing_is_nothing() {
        assert!(collect(&upload(Format::Zip, &["none"]), world().path()).unwrap().is_none());
    }

    #[test]
    fn a_file_is_called_as_gitlabs_runner_calls_it() {
        assert_eq!(filename("", Format::Zip), "default.zip");
        assert_eq!(filename("a/../b", Format::TarZstd), "a_.._b.tar.zst");
        assert_eq!(filename("junit.xml", Format::Gzip), "junit.xml.gz");
        assert_eq!(filename("page", Format::Raw), "page");
    }
}
