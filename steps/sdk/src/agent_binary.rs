//! Where the static agent lies that a handover puts into an environment.

use crate::Failure;
use std::path::{Path, PathBuf};

/// How the agent for a system and an architecture is called: `step-agent-linux-amd64`. Both are Go's words, as images and GitLab use them;
/// Rust's and the kernel's names of an architecture are understood.
pub fn agent_name(os: &str, architecture: &str) -> String {
    format!("step-agent-{}-{}", os.to_ascii_lowercase(), architecture_of(architecture))
}

/// The agent for `os` and `architecture`: in the directory `$STEP_RUNNER_AGENTS`, else beside the running program, where one called just
/// `step-agent` is for the machine that the program runs on.
/// # Errors
/// There is none; the message says where it was looked for.
pub fn agent_binary(os: &str, architecture: &str) -> Result<PathBuf, Failure> {
    let directory = std::env::var_os("STEP_RUNNER_AGENTS").filter(|value| !value.is_empty()).map(PathBuf::from);
    let beside = std::env::current_exe().ok().and_then(|program| program.parent().map(Path::to_owned));
    find(os, architecture, directory.as_deref().or(beside.as_deref()), |path| path.is_file())
}

fn find(os: &str, architecture: &str, directory: Option<&Path>, is_file: impl Fn(&Path) -> bool) -> Result<PathBuf, Failure> {
    let name = agent_name(os, architecture);
    let mut names = vec![name.as_str()];
    if os.eq_ignore_ascii_case(std::env::consts::OS) && architecture_of(architecture) == architecture_of(std::env::consts::ARCH) {
        names.push("step-agent");
    }
    let found = directory.and_then(|directory| names.iter().map(|name| directory.join(name)).find(|path| is_file(path)));
    found.ok_or_else(|| {
        let place = directory.map_or_else(|| "beside this program".to_owned(), |directory| format!("in `{}`", directory.display()));
        Failure::step(format!("there is no agent for {os}/{architecture}: no `{}` {place}", names.join("` and no `"))).with_hint(
            "take `step-runner` from its bundle, which brings the agents beside it, or name their directory with `STEP_RUNNER_AGENTS`",
        )
    })
}

/// Go's word for an architecture.
fn architecture_of(name: &str) -> &str {
    match name {
        "x86_64" | "x86-64" => "amd64",
        "aarch64" | "arm64/v8" => "arm64",
        "x86" | "i386" | "i686" => "386",
        "armv7l" | "armhf" => "arm",
        "riscv64gc" => "riscv64",
        "powerpc64le" => "ppc64le",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_an_architecture_is_one_file() {
        assert_eq!(agent_name("linux", "x86_64"), "step-agent-linux-amd64");
        assert_eq!(agent_name("Linux", "aarch64"), agent_name("linux", "arm64"));
    }

    #[test]
    fn the_agent_of_this_machine_may_be_called_plainly() {
        let here = (std::env::consts::OS, std::env::consts::ARCH);
        let plain = |path: &Path| path.ends_with("step-agent");
        assert_eq!(find(here.0, here.1, Some(Path::new("/b")), plain).unwrap(), Path::new("/b/step-agent"));
        let failure = find("linux", "s390x", Some(Path::new("/b")), plain).unwrap_err();
        assert_eq!(failure.message, "there is no agent for linux/s390x: no `step-agent-linux-s390x` in `/b`");
    }

    #[test]
    fn the_one_that_names_its_machine_comes_first() {
        assert_eq!(find("linux", "arm64", Some(Path::new("/b")), |_| true).unwrap(), Path::new("/b/step-agent-linux-arm64"));
    }
}
