//! Where the program of a plugin is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What every program of a plugin is called: GitLab's runner looks on PATH for no other names.
const PREFIX: &str = "fleeting-plugin-";

/// Where to look, in this order.
#[derive(Debug, Clone, Default)]
pub struct Locate {
    /// Directories with plugins.
    pub directories: Vec<PathBuf>,
    /// As the variable PATH has it.
    pub path: Option<OsString>,
}

/// There is no such program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no plugin `{name}`{}", shown(looked))]
pub struct NotFound {
    pub name: String,
    /// Files that were looked for, and what is wrong with them.
    pub looked: Vec<String>,
}

fn shown(looked: &[String]) -> String {
    let lines: Vec<String> = looked.iter().map(|place| format!("\n  {place}")).collect();
    if lines.is_empty() { String::new() } else { format!("; looked at{}", lines.concat()) }
}

impl NotFound {
    pub const HINT: &str = "install it, put its directory on PATH, or name the file with its directory";
}

/// `name`: a path with a slash, `fleeting-plugin-x`, or `x` alone.
/// # Errors
/// It is nowhere, or it is no program.
pub fn locate(name: &str, places: &Locate) -> Result<PathBuf, NotFound> {
    let mut looked = Vec::new();
    if name.is_empty() {
        return Err(NotFound { name: String::new(), looked });
    }
    let mut take = |file: PathBuf, say_missing: bool| match program(&file) {
        Ok(()) => Some(file),
        Err(reason) => {
            if say_missing || reason != MISSING {
                looked.push(format!("{}: {reason}", file.display()));
            }
            None
        }
    };
    if name.contains(std::path::MAIN_SEPARATOR) || name.contains('/') {
        return take(PathBuf::from(name), true).ok_or_else(|| NotFound { name: name.to_owned(), looked });
    }
    let full = if name.starts_with(PREFIX) { name.to_owned() } else { format!("{PREFIX}{name}") };
    let file = format!("{full}{}", std::env::consts::EXE_SUFFIX);
    for directory in &places.directories {
        if let Some(found) = take(directory.join(&file), true) {
            return Ok(found);
        }
    }
    for directory in places.path.iter().flat_map(std::env::split_paths).filter(|directory| !directory.as_os_str().is_empty()) {
        if let Some(found) = take(directory.join(&file), false) {
            return Ok(found);
        }
    }
    if places.path.is_some() {
        looked.push(format!("{file} in the directories of PATH"));
    }
    Err(NotFound { name: name.to_owned(), looked })
}

const MISSING: &str = "no such file";

fn program(file: &Path) -> Result<(), &'static str> {
    let found = std::fs::metadata(file).map_err(|_| MISSING)?;
    if !found.is_file() {
        return Err("it is no file");
    }
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o111 == 0 {
        return Err("it is not executable; `chmod +x` makes it so");
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn put(directory: &Path, name: &str, mode: u32) -> PathBuf {
        let file = directory.join(name);
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn a_plugin_is_found_by_its_short_and_its_full_name_first_in_the_directories() {
        let (ours, path) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let places = Locate { directories: vec![ours.path().into()], path: Some(path.path().into()) };
        let on_path = put(path.path(), "fleeting-plugin-x", 0o755);
        assert_eq!(locate("x", &places), Ok(on_path));
        let nearer = put(ours.path(), "fleeting-plugin-x", 0o755);
        assert_eq!(locate("x", &places), Ok(nearer.clone()));
        assert_eq!(locate("fleeting-plugin-x", &places), Ok(nearer.clone()));
        assert_eq!(locate(nearer.to_str().unwrap(), &Locate::default()), Ok(nearer));
    }

    #[test]
    fn what_is_no_program_is_named_with_its_reason() {
        let path = tempfile::tempdir().unwrap();
        let file = put(path.path(), "fleeting-plugin-x", 0o644);
        let places = Locate { directories: Vec::new(), path: Some(path.path().into()) };
        let message = locate("x", &places).unwrap_err().to_string();
        let expected = format!(
            "there is no plugin `x`; looked at\n  {}: it is not executable; `chmod +x` makes it so\n  fleeting-plugin-x in the directories of PATH",
            file.display()
        );
        assert_eq!(message, expected);
        let directory = path.path().to_str().unwrap();
        assert!(locate(directory, &places).unwrap_err().to_string().ends_with("it is no file"));
        assert_eq!(locate("", &places).unwrap_err().to_string(), "there is no plugin ``");
    }
}
