//! Archives that were packed here, and archives that somebody made to do harm.

use super::*;
use crate::pack::pack;
use crate::selection::{Wanted, select};
use crate::{Format, Level};
use std::io::{Cursor, Write};
use zip::write::{SimpleFileOptions, ZipWriter};

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file
}

fn packed(root: &Path, format: Format) -> Vec<u8> {
    let wanted = Wanted { paths: vec!["**".into()], ..Wanted::default() };
    let mut bytes = Cursor::new(Vec::new());
    pack(root, &select(root, &wanted).unwrap().files, format, Level::Default, &mut bytes).unwrap();
    bytes.into_inner()
}

/// Every file below a directory with its content, links with their target.
fn listed(dir: &Path) -> Vec<String> {
    let files = select(dir, &Wanted { paths: vec!["**".into()], ..Wanted::default() }).unwrap().files;
    let shown = files.iter().filter(|path| !dir.join(path).is_dir() || dir.join(path).is_symlink()).map(|path| {
        match fs::read_link(dir.join(path)) {
            Ok(target) => format!("{} -> {}", path.display(), target.display()),
            Err(_) => format!("{}: {}", path.display(), fs::read_to_string(dir.join(path)).unwrap()),
        }
    });
    shown.collect()
}

fn zip_of(entries: &[(&str, u32, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, mode, content) in entries {
        match mode & 0o170_000 {
            0o120_000 => writer.add_symlink(*name, *content, SimpleFileOptions::default()).unwrap(),
            kind => {
                let attributes = (kind | mode & 0o777) << 16;
                let options = SimpleFileOptions::default().external_attributes(attributes);
                writer.start_file(*name, options).unwrap();
                writer.write_all(content.as_bytes()).unwrap();
            }
        }
    }
    writer.finish().unwrap().into_inner()
}

fn tar_of(entries: &[(&str, tar::EntryType, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(zstd::Encoder::new(Vec::new(), 1).unwrap());
    for (name, kind, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        let is_file = *kind == tar::EntryType::Regular;
        header.set_size(if is_file { content.len() as u64 } else { 0 });
        // The names as they are: the library itself refuses some of them.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        if !is_file {
            header.as_mut_bytes()[157..157 + content.len()].copy_from_slice(content.as_bytes());
        }
        header.set_cksum();
        builder.append(&header, if is_file { content.as_bytes() } else { b"" }).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

#[cfg(unix)]
#[test]
fn what_was_packed_comes_out_as_it_was() {
    use std::os::unix::fs::PermissionsExt as _;
    for format in [Format::Zip, Format::TarZstd] {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write(from.path(), "bin/tool", "#!/bin/sh\n");
        fs::set_permissions(from.path().join("bin/tool"), fs::Permissions::from_mode(0o755)).unwrap();
        write(from.path(), "read only/file", "kept");
        fs::set_permissions(from.path().join("read only"), fs::Permissions::from_mode(0o555)).unwrap();
        std::os::unix::fs::symlink("../bin/tool", from.path().join("bin/link")).unwrap();
        fs::create_dir(from.path().join("empty")).unwrap();
        let time = UNIX_EPOCH + Duration::from_secs(1_700_000_001);
        File::open(from.path().join("bin/tool")).unwrap().set_modified(time).unwrap();
        let bytes = packed(from.path(), format);
        let unpacked = unpack(file_of(&bytes), to.path(), OutsideLinks::LeftOut).unwrap();
        assert_eq!((unpacked.files, unpacked.said), (3, vec![]), "{format:?}");
        assert_eq!(listed(to.path()), ["bin/link -> ../bin/tool", "bin/tool: #!/bin/sh\n", "read only/file: kept"]);
        let mode = |name: &str| to.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("bin/tool"), mode("read only"), to.path().join("empty").is_dir()), (0o755, 0o555, true));
        assert_eq!(to.path().join("bin/tool").metadata().unwrap().modified().unwrap(), time, "{format:?}");
        // A second time over what the first has left, also where nobody may write.
        unpack(file_of(&bytes), to.path(), OutsideLinks::LeftOut).unwrap();
        for dir in [&from, &to] {
            fs::set_permissions(dir.path().join("read only"), fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
}

#[test]
fn a_name_that_leads_out_refuses_the_whole_archive() {
    let regular = tar::EntryType::Regular;
    let archives = [
        (
            zip_of(&[("good", 0o100_644, "x"), ("../evil", 0o100_644, "x")]),
            "`../evil` is not safe to unpack: its name leads out of the directory",
        ),
        (zip_of(&[("/tmp/evil", 0o100_644, "x")]), "`/tmp/evil` is not safe to unpack: its name is absolute"),
        (
            tar_of(&[("good", regular, "x"), ("a/../../evil", regular, "x")]),
            "`a/../../evil` is not safe to unpack: its name leads out of the directory",
        ),
        (tar_of(&[("/evil", regular, "x")]), "`/evil` is not safe to unpack: its name is absolute"),
        (tar_of(&[("pipe", tar::EntryType::Fifo, "")]), "`pipe` is not safe to unpack: it is neither a file, nor a directory, nor a link"),
        (tar_of(&[("disk", tar::EntryType::Block, "")]), "`disk` is not safe to unpack: it is neither a file, nor a directory, nor a link"),
        (zip_of(&[("disk", 0o060_644, "x")]), "`disk` is not safe to unpack: it is neither a file, nor a directory, nor a link"),
        (
            tar_of(&[("passwd", tar::EntryType::Link, "/etc/passwd")]),
            "`passwd` is not safe to unpack: it is a hard link to what is not in the archive",
        ),
        (tar_of(&[("a", tar::EntryType::Symlink, "b"), ("a/evil", regular, "x")]), "`a/evil` is not safe to unpack: it lies below a link"),
    ];
    for (bytes, expected) in archives {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        fs::create_dir(&root).unwrap();
        let fault = unpack(file_of(&bytes), &root, OutsideLinks::Made).unwrap_err();
        assert_eq!(fault.to_string(), expected);
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0, "nothing is left: {expected}");
        assert!(!outer.path().join("evil").exists());
    }
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_out_is_left_out_unless_it_is_wanted() {
    let bytes = zip_of(&[("venv/python", 0o120_777, "/usr/bin/python3"), ("venv/up", 0o120_777, "../../x"), ("in", 0o120_777, "venv")]);
    let dir = tempfile::tempdir().unwrap();
    let unpacked = unpack(file_of(&bytes), dir.path(), OutsideLinks::LeftOut).unwrap();
    assert_eq!(
        unpacked.said,
        [
            "WARNING: venv/python: left out, it is a link out of the directory, to /usr/bin/python3",
            "WARNING: venv/up: left out, it is a link out of the directory, to ../../x",
        ]
    );
    assert_eq!(listed(dir.path()), ["in -> venv"]);
    unpack(file_of(&bytes), dir.path(), OutsideLinks::Made).unwrap();
    assert_eq!(listed(dir.path()), ["in -> venv", "venv/python -> /usr/bin/python3", "venv/up -> ../../x"]);
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_a_link_that_was_there() {
    let (outside, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::os::unix::fs::symlink(outside.path(), dir.path().join("cache")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("target"), dir.path().join("file")).unwrap();
    let fault = unpack(file_of(&zip_of(&[("cache/evil", 0o100_644, "x")])), dir.path(), OutsideLinks::LeftOut).unwrap_err();
    assert_eq!(fault.to_string(), "`cache` is in the way");
    unpack(file_of(&zip_of(&[("file", 0o100_644, "mine")])), dir.path(), OutsideLinks::LeftOut).unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("file")).unwrap(), "mine");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn a_damaged_archive_changes_nothing() {
    let from = tempfile::tempdir().unwrap();
    for number in 0..50 {
        write(from.path(), &format!("file-{number}"), &format!("{number}").repeat(1000));
    }
    for format in [Format::Zip, Format::TarZstd] {
        let whole = packed(from.path(), format);
        let mut changed = whole.clone();
        let middle = changed.len() / 3;
        changed[middle..middle + 40].fill(0x55);
        for damaged in [&whole[..whole.len() / 2], &changed] {
            let to = tempfile::tempdir().unwrap();
            write(to.path(), "file-1", "old");
            let fault = unpack(file_of(damaged), to.path(), OutsideLinks::LeftOut).unwrap_err();
            assert!(matches!(fault, UnpackFault::Damaged(_)), "{format:?}: {fault}");
            assert_eq!(listed(to.path()), ["file-1: old"], "{format:?}");
        }
    }
}

#[test]
fn what_is_no_archive_is_said() {
    let dir = tempfile::tempdir().unwrap();
    for bytes in [&b"<html>"[..], b"", b"PK"] {
        let fault = unpack(file_of(bytes), dir.path(), OutsideLinks::LeftOut).unwrap_err();
        assert_eq!(fault.to_string(), "it is no archive: it begins neither as zip nor as zstd");
    }
}

#[test]
fn a_directory_where_a_file_belongs_is_in_the_way_and_nothing_is_moved() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "b/file", "");
    let fault = unpack(file_of(&zip_of(&[("a", 0o100_644, "x"), ("b", 0o100_644, "x")])), dir.path(), OutsideLinks::LeftOut).unwrap_err();
    assert_eq!(fault.to_string(), "`b` is in the way");
    assert_eq!(listed(dir.path()), ["b/file: "]);
}

#[test]
fn a_hard_link_to_a_file_of_the_archive_is_a_copy() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = tar_of(&[("a", tar::EntryType::Regular, "text"), ("b", tar::EntryType::Link, "a")]);
    unpack(file_of(&bytes), dir.path(), OutsideLinks::LeftOut).unwrap();
    assert_eq!(listed(dir.path()), ["a: text", "b: text"]);
}

#[test]
fn a_setuid_bit_does_not_come_out() {
    let dir = tempfile::tempdir().unwrap();
    unpack(file_of(&zip_of(&[("tool", 0o104_755, "x")])), dir.path(), OutsideLinks::LeftOut).unwrap();
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&dir.path().join("tool").metadata().unwrap().permissions()) & 0o7777, 0o755);
}
