//! What jobs run in: the word `executor` of an entry, and what it means here.

/// What jobs run in. There is one way to run a job, an agent in an environment; the executors differ in where that comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Executor {
    /// The plugin of `[runners.autoscaler]`, on the instance itself.
    Instance,
    /// The plugin of `[runners.autoscaler]`, in a container.
    DockerAutoscaler,
    /// The plugin `docker-machine`, in a container.
    DockerMachine,
    /// This machine, in a container.
    Docker,
    DockerWindows,
    /// This machine.
    Shell,
    /// The plugin `static` with one machine.
    Ssh,
    Kubernetes,
    /// The plugin `exec`.
    Custom,
}

impl Executor {
    /// As it is written in a file.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, executor)| *executor == self).map_or("", |(name, _)| name)
    }

    /// Whether a job's image is made into a container by the docker step.
    pub fn has_containers(self) -> bool {
        matches!(self, Self::DockerAutoscaler | Self::DockerMachine | Self::Docker | Self::DockerWindows)
    }

    /// Whether jobs may choose their directory unless the file says otherwise.
    pub fn allows_build_directories(self) -> bool {
        !matches!(self, Self::Shell | Self::Ssh | Self::Custom)
    }
}

/// What a word means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Known(Executor),
    /// An old word for it.
    Old(Executor),
    /// Known, and not offered, with the way out.
    NotOffered(&'static str),
    Unknown,
}

pub(super) fn meaning(word: &str) -> Meaning {
    match word {
        "docker-ssh" => Meaning::Old(Executor::Docker),
        "docker-ssh+machine" => Meaning::Old(Executor::DockerMachine),
        "kubernetes" => Meaning::NotOffered("there is no plugin `kubernetes` yet: keep GitLab's runner for this entry"),
        "parallels" | "virtualbox" => {
            Meaning::NotOffered("use `instance` with `[runners.autoscaler.vm_isolation]`, or a plugin of your own by `exec`")
        }
        _ => NAMES.iter().find(|(name, _)| *name == word).map_or(Meaning::Unknown, |(_, executor)| Meaning::Known(*executor)),
    }
}

/// The words that can be written, for a hint.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, _)| *name)
}

const NAMES: [(&str, Executor); 9] = [
    ("shell", Executor::Shell),
    ("docker", Executor::Docker),
    ("docker-windows", Executor::DockerWindows),
    ("docker-autoscaler", Executor::DockerAutoscaler),
    ("docker+machine", Executor::DockerMachine),
    ("instance", Executor::Instance),
    ("ssh", Executor::Ssh),
    ("custom", Executor::Custom),
    ("kubernetes", Executor::Kubernetes),
];
