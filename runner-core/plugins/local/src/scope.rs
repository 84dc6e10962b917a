//! Under systemd an agent stands in a scope of its own: whatever becomes of the unit that the runner is, agents and jobs are no part of it.

use std::path::Path;
use std::process::{Command, Stdio};

/// Where all scopes of agents are: limits for all jobs together belong there.
const SLICE: &str = "--slice=runner-core.slice";

/// What is called before the program of an agent. Empty: this process is no part of a unit, or scopes cannot be made here, and the unit must let its
/// processes live (`KillMode=process`).
pub fn command_before() -> Vec<String> {
    if !Path::new("/run/systemd/system").is_dir() {
        return Vec::new();
    }
    let command = wanted(&std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default());
    if command.is_empty() || is_possible(&command) {
        return command;
    }
    tracing::warn!("agents stay in the control group of this unit: `systemd-run --scope` does not work here");
    Vec::new()
}

/// From `/proc/self/cgroup`: only what runs in a service has to leave it. A terminal's session is a scope already.
fn wanted(cgroups: &str) -> Vec<String> {
    // systemd uses one of the two; the other one is there too on some machines.
    let groups = cgroups.lines().filter_map(|line| line.strip_prefix("0::").or_else(|| Some(line.split_once(":name=systemd:")?.1)));
    let Some(group) = groups.into_iter().find(|group| is_of_a_service(group)) else { return Vec::new() };
    let manager = if group.contains("/user@") { "--user" } else { "--system" };
    ["systemd-run", manager, "--scope", "--quiet", "--collect", SLICE, "--"].map(str::to_owned).into()
}

fn is_of_a_service(group: &str) -> bool {
    // Also from a group below, which a unit may make for itself.
    group.split('/').any(|part| part.ends_with(".service") && !part.starts_with("user@"))
}

fn is_possible(command: &[String]) -> bool {
    let tried =
        Command::new(&command[0]).args(&command[1..]).arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_in_a_service_leaves_it() {
        let of = |group: &str| wanted(&format!("5:devices:/x.service\n0::{group}\n"));
        assert_eq!(of("/system.slice/runner-core.service")[..3], ["systemd-run", "--system", "--scope"]);
        assert_eq!(of("/system.slice/runner-core.service/sub")[1], "--system");
        assert_eq!(of("/user.slice/user-7.slice/user@7.service/app.slice/runner-core.service")[1], "--user");
        for stays in ["/", "/user.slice/user-7.slice/session-3.scope", "/user.slice/user-7.slice/user@7.service/app.slice/a.scope"] {
            assert_eq!(of(stays), Vec::<String>::new(), "{stays}");
        }
        assert_eq!(wanted("1:name=systemd:/system.slice/a.service\n")[0], "systemd-run");
        assert_eq!(wanted("9:name=systemd:/\n0::/system.slice/a.service\n")[0], "systemd-run");
        assert_eq!(wanted(""), Vec::<String>::new());
    }
}
