//! Which names and which links of an archive are safe. An archive is somebody else's text: every name in it is looked at before a file is touched.

use std::path::{Path, PathBuf};

/// Why an entry is not unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsafe {
    #[error("its name leads out of the directory")]
    LeadsOut,
    #[error("its name is absolute")]
    Absolute,
    #[error("its name is empty, or holds what no name may hold")]
    BadName,
    #[error("it is neither a file, nor a directory, nor a link")]
    Special,
    #[error("it is a hard link to what is not in the archive")]
    LinkToNothing,
    #[error("it lies below a link")]
    BelowLink,
}

/// The name of an entry as a path below the directory. `None`: the directory itself.
/// # Errors
/// It would be a path somewhere else, on this system or on another.
pub fn path_of(name: &str) -> Result<Option<PathBuf>, Unsafe> {
    if name.contains('\0') {
        return Err(Unsafe::BadName);
    }
    // Archives of Windows may have backslashes; a drive or a server makes a name absolute there.
    let is_drive = name.as_bytes().get(1) == Some(&b':') && name.as_bytes()[0].is_ascii_alphabetic();
    if name.starts_with(['/', '\\']) || (cfg!(windows) && is_drive) {
        return Err(Unsafe::Absolute);
    }
    let separators: &[char] = if cfg!(windows) { &['/', '\\'] } else { &['/'] };
    let mut path = PathBuf::new();
    for part in name.split(separators) {
        match part {
            "" | "." => {}
            ".." => return Err(Unsafe::LeadsOut),
            part => path.push(part),
        }
    }
    Ok((!path.as_os_str().is_empty()).then_some(path))
}

/// Whether a link at `path` with this target stays in the directory, as far as the names say.
pub fn stays_inside(path: &Path, target: &str) -> bool {
    if target.is_empty() || target.starts_with('/') || (cfg!(windows) && (target.starts_with('\\') || target.contains(':'))) {
        return false;
    }
    let mut depth = path.components().count().saturating_sub(1);
    for part in target.split(['/', std::path::MAIN_SEPARATOR]) {
        match part {
            "" | "." => {}
            ".." => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return false,
            },
            _ => depth += 1,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_path_below_the_directory() {
        let path = |name: &str| path_of(name).map(|path| path.map(|path| path.display().to_string()));
        assert_eq!(path("a/b.txt"), Ok(Some("a/b.txt".into())));
        assert_eq!(path("./a//b/"), Ok(Some("a/b".into())));
        assert_eq!(path("./"), Ok(None));
        assert_eq!(path("a..b/..c"), Ok(Some("a..b/..c".into())));
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        for (name, why) in [
            ("../a", Unsafe::LeadsOut),
            ("a/../../b", Unsafe::LeadsOut),
            ("a/..", Unsafe::LeadsOut),
            ("/etc/passwd", Unsafe::Absolute),
            ("\\\\server\\share", Unsafe::Absolute),
            ("a\0b", Unsafe::BadName),
        ] {
            assert_eq!(path_of(name), Err(why), "{name:?}");
        }
    }

    #[test]
    fn a_link_stays_inside_when_no_step_of_it_leaves() {
        for (path, target) in [("a", "b"), ("a/b", "../c"), ("a/b/c", "../../d"), ("bin/tool", "../lib/tool/main.js"), ("a", "./b/../c")] {
            assert!(stays_inside(Path::new(path), target), "{path} -> {target}");
        }
        for (path, target) in [("a", "../b"), ("a", "/etc"), ("a/b", "../../c"), ("a/b", "c/../../../d"), ("a", "")] {
            assert!(!stays_inside(Path::new(path), target), "{path} -> {target}");
        }
    }
}
