//! Whose a container, network or volume is, and whether its owner still lives: what a killed job left is found by this.

use std::collections::BTreeMap;
use std::fmt;

/// On everything that is made for a job: which process answers for it.
pub const OWNER_LABEL: &str = "step-runner.owner";
/// On everything that one step made: what its clean-up command removes.
pub const STEP_LABEL: &str = "step-runner.step";
/// The job, by the name that its processes have in common.
pub const JOB_LABEL: &str = "step-runner.job";

/// One process on one machine since one boot: ids are used again, this is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Changes with every boot, and is no other machine's.
    pub boot: String,
    /// Process ids mean nothing in another one.
    pub pid_namespace: String,
    pub pid: u32,
    /// Ticks from boot to its start.
    pub started: u64,
}

/// What can be said of an owner from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Lives,
    Dead,
    /// It is of another machine or container, or the label is none of ours.
    Unknown,
}

impl Owner {
    /// This machine and the process that answers for us. `None`: the system does not say.
    pub fn of_process(pid: u32) -> Option<Self> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let pid_namespace = std::fs::read_link("/proc/self/ns/pid").ok()?.to_string_lossy().into_owned();
        Some(Self { boot, pid_namespace, pid, started: start_of(pid)? })
    }

    pub fn parse(label: &str) -> Option<Self> {
        let mut parts = label.split('/');
        let (boot, pid_namespace) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        let (pid, started) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        parts.next().is_none().then_some(Self { boot, pid_namespace, pid, started })
    }

    /// How the owner named by a label is. `here`: who asks; `start_of`: when a process of this machine started, if it lives.
    pub fn standing(label: &str, here: Option<&Self>, start_of: impl Fn(u32) -> Option<u64>) -> Standing {
        let (Some(owner), Some(here)) = (Self::parse(label), here) else { return Standing::Unknown };
        if owner.boot != here.boot || owner.pid_namespace != here.pid_namespace {
            return Standing::Unknown;
        }
        if start_of(owner.pid) == Some(owner.started) { Standing::Lives } else { Standing::Dead }
    }
}

/// As the label has it.
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.boot, self.pid_namespace, self.pid, self.started)
    }
}

/// When a process started, in ticks since boot. `None`: there is none, or only what a parent has not fetched yet.
pub fn start_of(pid: u32) -> Option<u64> {
    start_in(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn start_in(stat: &str) -> Option<u64> {
    // The name of a program may hold anything, also parentheses.
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
    if matches!(fields.first(), Some(&"Z" | &"X")) {
        return None;
    }
    fields.get(19)?.parse().ok()
}

/// The labels of one step's things.
pub fn labels(step: &str, job: Option<&str>, owner: Option<&Owner>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([(STEP_LABEL.to_owned(), step.to_owned())]);
    labels.insert(OWNER_LABEL.to_owned(), owner.map(ToString::to_string).unwrap_or_default());
    labels.extend(job.map(|job| (JOB_LABEL.to_owned(), job.to_owned())));
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(pid: u32, started: u64) -> Owner {
        Owner { boot: "b".into(), pid_namespace: "pid:[1]".into(), pid, started }
    }

    #[test]
    fn an_owner_is_read_as_it_was_written() {
        assert_eq!(Owner::parse(&owner(7, 9).to_string()), Some(owner(7, 9)));
        assert_eq!(Owner::parse("b/p/x/1"), None);
    }

    #[test]
    fn only_a_process_of_this_machine_can_be_called_dead() {
        let here = owner(1, 1);
        let standing = |owner: &Owner, start: Option<u64>| Owner::standing(&owner.to_string(), Some(&here), |_| start);
        assert_eq!(standing(&owner(7, 9), Some(9)), Standing::Lives);
        assert_eq!(standing(&owner(7, 9), None), Standing::Dead);
        // The id is another process's now.
        assert_eq!(standing(&owner(7, 9), Some(10)), Standing::Dead);
        assert_eq!(standing(&Owner { boot: "c".into(), ..owner(7, 9) }, None), Standing::Unknown);
        assert_eq!(standing(&Owner { pid_namespace: "pid:[2]".into(), ..owner(7, 9) }, None), Standing::Unknown);
        assert_eq!(Owner::standing("", Some(&here), |_| None), Standing::Unknown);
    }

    #[test]
    fn the_name_of_a_program_confuses_nobody() {
        let fields = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        assert_eq!(start_in(&format!("7 (a) b) {fields}")), Some(4242));
        assert_eq!(start_in("7 (a) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242"), None);
        assert_eq!(start_in(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn we_live() {
        let here = Owner::of_process(std::process::id()).unwrap();
        assert_eq!(Owner::standing(&here.to_string(), Some(&here), start_of), Standing::Lives);
    }
}
