//! Which program an agent is: `step-runner`, beside this program or on the PATH.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use step_console::exit::Stop;

const NAME: &str = if cfg!(windows) { "step-runner.exe" } else { "step-runner" };

/// The program that was given, else the one that lies beside this program, else the first one on the PATH. Absolute.
/// # Errors
/// There is none.
pub fn find(given: Option<&Path>) -> Result<PathBuf, Stop> {
    let beside = std::env::current_exe().ok().and_then(|program| program.parent().map(Path::to_path_buf));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = look(given, beside.as_deref(), &path, &|candidate| candidate.is_file());
    let found = found.and_then(|found| std::path::absolute(&found).map_err(|_| found));
    found.map_err(|missing| {
        Stop::bad_input(format!("there is no agent: `{}` is no file", missing.display()))
            .with_hint("put `step-runner` beside `runner-core` or on the PATH, or name it with `--agent FILE`")
    })
}

fn look(given: Option<&Path>, beside: Option<&Path>, path: &OsStr, is_file: &dyn Fn(&Path) -> bool) -> Result<PathBuf, PathBuf> {
    if let Some(given) = given {
        return if is_file(given) { Ok(given.to_path_buf()) } else { Err(given.to_path_buf()) };
    }
    let directories = beside.map(Path::to_path_buf).into_iter().chain(std::env::split_paths(path));
    directories.map(|directory| directory.join(NAME)).find(|candidate| is_file(candidate)).ok_or_else(|| PathBuf::from(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(given: Option<&str>, files: &[&str]) -> Result<String, String> {
        let show = |path: PathBuf| path.to_string_lossy().into_owned();
        let is_file = |path: &Path| files.iter().any(|file| path == Path::new(file));
        look(given.map(Path::new), Some(Path::new("/opt")), OsStr::new("/bin:/usr/bin"), &is_file).map(show).map_err(show)
    }

    #[cfg(unix)]
    #[test]
    fn what_was_given_wins_then_what_lies_beside_then_the_path() {
        let all = ["/x/agent", "/opt/step-runner", "/bin/step-runner", "/usr/bin/step-runner"];
        assert_eq!(found(Some("/x/agent"), &all).as_deref(), Ok("/x/agent"));
        assert_eq!(found(None, &all).as_deref(), Ok("/opt/step-runner"));
        assert_eq!(found(None, &all[3..]).as_deref(), Ok("/usr/bin/step-runner"));
        assert_eq!(found(Some("/y/agent"), &all), Err("/y/agent".into()));
        assert_eq!(found(None, &[]), Err("step-runner".into()));
    }
}
