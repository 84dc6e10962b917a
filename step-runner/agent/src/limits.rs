//! By what means the limits of a step are held, decided from what was asked for and what the system offers.
//!
//! ```text
//! cpu       cgroup, else whole cores (affinity)
//! memory    cgroup, else what each process may allocate (rlimit)
//! pids      cgroup, else what all processes of the user may be (rlimit); the kernel does not count root's
//! disk      what each file may grow to (rlimit): no counter of the kernel sees what is written before it reaches a disk
//! network   a namespace with a loopback device only
//! ```

use std::sync::Arc;
use step_model::limits::{AppliedLimit, LimitName, Limits};

/// The generations of control groups.
#[cfg_attr(not(any(test, target_os = "linux")), expect(dead_code, reason = "only Linux has control groups"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    V1,
    V2,
}

/// What there is to hold limits with. `Err`: why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub cpu: Result<Version, Arc<str>>,
    pub memory: Result<Version, Arc<str>>,
    pub pids: Result<Version, Arc<str>>,
    pub network: Result<(), Arc<str>>,
    pub rlimits: Result<(), Arc<str>>,
    pub affinity: Result<(), Arc<str>>,
    /// Cores that we may use.
    pub processors: u32,
    /// We are root, whose processes the kernel does not count.
    pub is_root: bool,
    /// What whoever made the environment holds all of it to: a container.
    pub held_around: Vec<LimitName>,
}

/// Who holds a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Means {
    Cgroup(Version),
    /// And what exactly is counted.
    Rlimit(&'static str),
    /// On so many whole cores.
    Affinity(u32),
    Namespace,
    /// The environment that the steps were handed over to.
    Around,
    /// Nobody, for this reason.
    Nobody(Arc<str>),
}

/// A limit, and who is to hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    pub name: LimitName,
    pub value: String,
    pub means: Means,
}

impl Offer {
    /// What a system offers of which nothing is used.
    pub fn nothing(why: &str) -> Self {
        let no = || Err(Arc::from(why));
        Self {
            cpu: no(),
            memory: no(),
            pids: no(),
            network: Err(Arc::from(why)),
            rlimits: Err(Arc::from(why)),
            affinity: Err(Arc::from(why)),
            processors: 1,
            is_root: false,
            held_around: Vec::new(),
        }
    }
}

/// Who holds each limit that is asked for.
pub fn plan(limits: &Limits, offer: &Offer) -> Vec<Planned> {
    let planned = |(name, value): (LimitName, String)| {
        let means = match name {
            name if offer.held_around.contains(&name) => Means::Around,
            LimitName::Cpu => cpu(limits.cpus.map_or(1, |cores| cores.whole()), offer),
            LimitName::Memory => cgroup_or(&offer.memory, || rlimit(offer, "what each process allocates")),
            LimitName::Pids => cgroup_or(&offer.pids, || pids(offer)),
            LimitName::Disk => rlimit(offer, "the size of each file"),
            LimitName::Network => offer.network.clone().map_or_else(Means::Nobody, |()| Means::Namespace),
        };
        Planned { name, value, means }
    };
    limits.each().map(planned).collect()
}

fn cgroup_or(offered: &Result<Version, Arc<str>>, otherwise: impl FnOnce() -> Means) -> Means {
    offered.as_ref().map_or_else(|_| otherwise(), |version| Means::Cgroup(*version))
}

fn rlimit(offer: &Offer, counted: &'static str) -> Means {
    offer.rlimits.clone().map_or_else(Means::Nobody, |()| Means::Rlimit(counted))
}

fn pids(offer: &Offer) -> Means {
    match &offer.pids {
        Err(why) if offer.is_root => Means::Nobody(format!("{why}, and an rlimit does not count the processes of root").into()),
        _ => rlimit(offer, "with all other processes of the user"),
    }
}

fn cpu(whole: u32, offer: &Offer) -> Means {
    cgroup_or(&offer.cpu, || match &offer.affinity {
        Ok(()) => Means::Affinity(whole.min(offer.processors)),
        Err(why) => Means::Nobody(Arc::clone(why)),
    })
}

impl Means {
    fn text(&self) -> Arc<str> {
        match self {
            Self::Cgroup(Version::V1) => "cgroup v1".into(),
            Self::Cgroup(Version::V2) => "cgroup v2".into(),
            Self::Rlimit(counted) => format!("rlimit: {counted}").into(),
            Self::Affinity(1) => "affinity: 1 whole core".into(),
            Self::Affinity(cores) => format!("affinity: {cores} whole cores").into(),
            Self::Namespace => "namespace".into(),
            Self::Around => "container: all its steps together".into(),
            Self::Nobody(why) => format!("none: {why}").into(),
        }
    }
}

impl Planned {
    /// As it stands in the result.
    pub fn told(&self) -> AppliedLimit {
        AppliedLimit { name: self.name, value: self.value.as_str().into(), means: self.means.text(), reached: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Offer {
        Offer {
            cpu: Ok(Version::V2),
            memory: Ok(Version::V2),
            pids: Ok(Version::V1),
            network: Ok(()),
            rlimits: Ok(()),
            affinity: Ok(()),
            processors: 2,
            is_root: false,
            held_around: Vec::new(),
        }
    }

    fn held(limits: &str, offer: &Offer) -> String {
        let limits = Limits::parse(limits).expect("limits");
        plan(&limits, offer).iter().map(|planned| format!("{} by {}", planned.name, planned.told().means)).collect::<Vec<_>>().join(", ")
    }

    const EACH: &str = "cpu=1.5,memory=512MiB,pids=100,disk=1GiB,network=none";

    #[test]
    fn control_groups_come_first() {
        assert_eq!(
            held(EACH, &all()),
            "cpu by cgroup v2, memory by cgroup v2, pids by cgroup v1, disk by rlimit: the size of each file, network by namespace"
        );
        assert_eq!(held("pids=5", &all()), "pids by cgroup v1", "and nothing that was not asked for");
    }

    #[test]
    fn without_control_groups_the_process_itself_is_limited() {
        let why: Arc<str> = "no cgroup".into();
        let offer = Offer { cpu: Err(why.clone()), memory: Err(why.clone()), pids: Err(why), ..all() };
        assert_eq!(
            held("cpu=1.5,memory=1g,pids=9", &offer),
            "cpu by affinity: 2 whole cores, memory by rlimit: what each process allocates, pids by rlimit: with all other processes of the user"
        );
        assert_eq!(held("cpu=0.5", &offer), "cpu by affinity: 1 whole core");
        assert_eq!(held("cpu=64", &offer), "cpu by affinity: 2 whole cores", "there are no more");
        let root = Offer { is_root: true, ..offer };
        assert_eq!(held("pids=9", &root), "pids by none: no cgroup, and an rlimit does not count the processes of root");
    }

    #[test]
    fn what_a_container_holds_is_not_held_twice() {
        let offer = Offer { held_around: vec![LimitName::Memory, LimitName::Network], ..all() };
        assert_eq!(
            held("memory=1g,pids=5,network=none", &offer),
            "memory by container: all its steps together, pids by cgroup v1, network by container: all its steps together"
        );
    }

    #[test]
    fn what_nobody_holds_says_why() {
        let offer = Offer::nothing("not on this system");
        let held = held(EACH, &offer);
        assert_eq!(held.matches("none: not on this system").count(), 5, "{held}");
    }
}
