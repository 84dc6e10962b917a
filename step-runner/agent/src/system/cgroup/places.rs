//! Where groups may be made: for each controller, the group that we are in ourselves, if we may divide it.

use super::{MAIN, members};
use crate::limits::Version;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the kernel counts and limits, by its names of v2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Controller {
    Cpu,
    /// Only counts; v2 has it in `Cpu`.
    CpuAccounting,
    Memory,
    Pids,
    Io,
}

impl Controller {
    const ALL: [Self; 5] = [Self::Cpu, Self::CpuAccounting, Self::Memory, Self::Pids, Self::Io];

    fn of_v1(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::CpuAccounting => "cpuacct",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Io => "blkio",
        }
    }

    fn of_v2(self) -> Option<&'static str> {
        match self {
            Self::Cpu => Some("cpu"),
            Self::CpuAccounting => None,
            Self::Memory => Some("memory"),
            Self::Pids => Some("pids"),
            Self::Io => Some("io"),
        }
    }
}

/// A group in which groups may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub version: Version,
    pub directory: PathBuf,
}

/// For each controller where groups may be made, or why they may not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    places: BTreeMap<Controller, Result<Place, Arc<str>>>,
}

/// The trees of control groups that are mounted, and where in them we are.
#[derive(Debug, Default, PartialEq, Eq)]
struct Own {
    v1: BTreeMap<Controller, PathBuf>,
    v2: Option<PathBuf>,
}

impl Places {
    /// Looks below `root`, which is `/` but in tests. On v2 we move into a leaf of our group first, where that is needed and all in it is ours.
    pub fn find(root: &Path) -> Self {
        let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let own = own(&read("proc/self/cgroup"), &read("proc/self/mountinfo"));
        let v2 = own.v2.as_deref().map(|directory| divided(&below(root, directory)));
        let place = |controller: Controller| {
            if let Some(Ok((directory, enabled))) = &v2
                && controller.of_v2().is_some_and(|name| enabled.iter().any(|known| known == name))
            {
                return Ok(Place { version: Version::V2, directory: directory.clone() });
            }
            if let Some(directory) = own.v1.get(&controller) {
                let directory = below(root, directory);
                return writable(&directory)
                    .map(|()| Place { version: Version::V1, directory })
                    .map_err(|error| refused(controller, &error));
            }
            match &v2 {
                Some(Err(why)) => Err(Arc::clone(why)),
                _ => Err(format!("this system gives us no control group with `{}`", controller.of_v2().unwrap_or("cpu")).into()),
            }
        };
        Self { places: Controller::ALL.into_iter().map(|controller| (controller, place(controller))).collect() }
    }

    /// Which generation holds the limits of a controller.
    /// # Errors
    /// Why none does.
    pub fn version(&self, controller: Controller) -> Result<Version, Arc<str>> {
        match self.places.get(&controller) {
            Some(place) => place.as_ref().map(|place| place.version).map_err(Arc::clone),
            None => Err("control groups were not looked for".into()),
        }
    }

    pub fn each(&self) -> impl Iterator<Item = (Controller, &Place)> {
        self.places.iter().filter_map(|(controller, place)| Some((*controller, place.as_ref().ok()?)))
    }

    /// Nothing more is tried with this controller.
    pub fn give_up(&mut self, controller: Controller, error: &io::Error) {
        self.places.insert(controller, Err(refused(controller, error)));
    }

    /// Nothing more is tried with any.
    pub fn give_up_all(&mut self, error: &io::Error) {
        Controller::ALL.into_iter().for_each(|controller| self.give_up(controller, error));
    }
}

fn refused(controller: Controller, error: &io::Error) -> Arc<str> {
    let name = controller.of_v2().unwrap_or("cpu");
    format!("the control group `{name}` refuses us: {}", crate::system_error::text(error)).into()
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Where we are, by `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn own(cgroup: &str, mountinfo: &str) -> Own {
    let mut own = Own::default();
    for line in cgroup.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        if controllers.is_empty() {
            own.v2 = mounted(mountinfo, "cgroup2", None, path);
            continue;
        }
        for controller in Controller::ALL.into_iter().filter(|known| controllers.split(',').any(|name| name == known.of_v1())) {
            if let Some(directory) = mounted(mountinfo, "cgroup", Some(controller.of_v1()), path) {
                own.v1.insert(controller, directory);
            }
        }
    }
    own
}

/// Where a group is seen. What is mounted may begin at a group below the first.
fn mounted(mountinfo: &str, kind: &str, controller: Option<&str>, path: &str) -> Option<PathBuf> {
    mountinfo.lines().find_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        let mut source = source.split(' ');
        let (is_kind, options) = (source.next()? == kind, source.nth(1).unwrap_or_default());
        if !is_kind || controller.is_some_and(|controller| !options.split(',').any(|option| option == controller)) {
            return None;
        }
        let mut mount = mount.split(' ').skip(3);
        let (begin, point) = (unescaped(mount.next()?), unescaped(mount.next()?));
        let inside = Path::new(path).strip_prefix(begin).ok()?;
        // A group outside of our namespace.
        let is_above = inside.components().any(|part| part == std::path::Component::ParentDir);
        (!is_above).then(|| Path::new(&point).join(inside))
    })
}

/// Blanks in paths are written as `\040`.
fn unescaped(path: &str) -> String {
    path.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

fn writable(directory: &Path) -> io::Result<()> {
    Ok(rustix::fs::accessat(rustix::fs::CWD, directory, rustix::fs::Access::WRITE_OK, rustix::fs::AtFlags::EACCESS)?)
}

/// A group of v2 whose controllers its own groups have, and their names.
fn divided(own: &Path) -> Result<(PathBuf, Vec<String>), Arc<str>> {
    // A process of ours has moved before.
    let home = if own.file_name().is_some_and(|name| name == MAIN) { own.parent().unwrap_or(own) } else { own };
    let names = |file: &str| {
        let text = std::fs::read_to_string(home.join(file)).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let why = |what: &str, error: &io::Error| -> Arc<str> {
        format!("the control group that step-runner is in cannot be divided: {what}: {}", crate::system_error::text(error)).into()
    };
    let there = names("cgroup.controllers");
    let wanted = Controller::ALL.into_iter().filter_map(Controller::of_v2).filter(|name| there.iter().any(|known| known == name));
    let enabled = names("cgroup.subtree_control");
    let missing: Vec<String> = wanted.filter(|name| !enabled.iter().any(|known| known == name)).map(|name| format!("+{name}")).collect();
    if !there.is_empty() {
        writable(home).map_err(|error| why("it belongs to somebody else", &error))?;
    }
    if missing.is_empty() {
        return Ok((home.to_path_buf(), enabled));
    }
    let enable = || std::fs::write(home.join("cgroup.subtree_control"), missing.join(" "));
    if let Err(error) = enable() {
        if error.raw_os_error() != Some(libc::EBUSY) {
            return Err(why("its controllers are not given on", &error));
        }
        move_out(home).and_then(|()| enable()).map_err(|error| why("it holds processes that are not ours", &error))?;
    }
    Ok((home.to_path_buf(), names("cgroup.subtree_control")))
}

/// Moves all processes of a group into a leaf below it, if they run our own program.
fn move_out(home: &Path) -> io::Result<()> {
    let program = |pid: &str| std::fs::read_link(format!("/proc/{pid}/exe"));
    let own = program("self")?;
    let members = members(home);
    if members.iter().any(|pid| !program(&pid.to_string()).is_ok_and(|program| program == own)) {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    let leaf = home.join(MAIN);
    match std::fs::create_dir(&leaf) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    members.iter().try_for_each(|pid| std::fs::write(leaf.join("cgroup.procs"), pid.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As on the machines of GitHub and of systemd before 2021: all of v1, and v2 beside it for systemd alone.
    const HYBRID: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:5 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 /docker/ab\\040c /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn our_own_groups_are_found_wherever_they_are_mounted() {
        let own = own("4:memory:/docker/ab c/job\n2:cpu,cpuacct:/x\n1:name=systemd:/\n0::/user.slice\n", HYBRID);
        let v1: Vec<(Controller, &str)> = own.v1.iter().map(|(controller, path)| (*controller, path.to_str().expect("a path"))).collect();
        let expected = [
            (Controller::Cpu, "/sys/fs/cgroup/cpu,cpuacct/x"),
            (Controller::CpuAccounting, "/sys/fs/cgroup/cpu,cpuacct/x"),
            (Controller::Memory, "/sys/fs/cgroup/memory/job"),
        ];
        assert_eq!(v1, expected);
        assert_eq!(own.v2.as_deref(), Some(Path::new("/sys/fs/cgroup/unified/user.slice")));
    }

    #[test]
    fn a_group_that_is_not_in_our_namespace_is_none_of_ours() {
        assert_eq!(own("0::/../other\n", "41 31 0:38 / /c rw - cgroup2 cgroup2 rw\n"), Own::default());
        assert_eq!(own("4:memory:/elsewhere\n", HYBRID), Own::default());
        assert_eq!(own("nonsense\n:\n", "nonsense\n"), Own::default());
    }
}
