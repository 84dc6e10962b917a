use super::*;
use crate::limits::Version;
use step_model::result::{Means, Traffic, Usage};

/// A copy of what the kernel shows.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().expect("a directory"));
        tree.write(files);
        tree
    }

    fn write(&self, files: &[(&str, &str)]) {
        for (file, text) in files {
            let file = self.0.path().join(file);
            std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
            std::fs::write(file, text).expect("a file");
        }
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.path().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }
}

/// What systemd gives a unit with `Delegate=yes`.
fn delegated() -> Tree {
    Tree::new(&[
        ("proc/self/cgroup", "0::/ci.service\n"),
        ("proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"),
        ("sys/fs/cgroup/ci.service/cgroup.controllers", "cpu io memory pids\n"),
        ("sys/fs/cgroup/ci.service/cgroup.subtree_control", ""),
        ("sys/fs/cgroup/ci.service/cgroup.procs", ""),
    ])
}

fn limits() -> Limits {
    Limits::parse("cpu=1.5,memory=64MiB,pids=9").expect("limits")
}

#[test]
fn a_group_of_v2_gets_all_limits_in_one_directory() {
    let tree = delegated();
    let places = Places::find(tree.0.path());
    // A kernel lists what was enabled; a copy holds what was written.
    assert_eq!(tree.read("sys/fs/cgroup/ci.service/cgroup.subtree_control"), "+cpu +memory +pids +io");
    tree.write(&[("sys/fs/cgroup/ci.service/cgroup.subtree_control", "cpu io memory pids")]);
    assert!(places.each().next().is_none(), "nothing is believed that the kernel does not say");
    let places = Places::find(tree.0.path());
    assert_eq!(places.version(Controller::Memory), Ok(Version::V2));
    let group = Group::planned(&places, &name_of("m", 3));
    group.make(&limits()).expect("a group");
    let file = |name: &str| tree.read(&format!("sys/fs/cgroup/ci.service/step-runner-m-3/{name}"));
    assert_eq!([file("memory.max"), file("memory.swap.max"), file("pids.max"), file("cpu.max")], ["67108864", "0", "9", "150000 100000"]);
    assert_eq!(group.entrances().len(), 1);
}

#[test]
fn a_group_of_v1_is_one_directory_for_each_controller() {
    let tree = Tree::new(&[
        ("proc/self/cgroup", "4:memory:/a\n2:cpu,cpuacct:/\n8:pids:/\n0::/\n"),
        (
            "proc/self/mountinfo",
            "1 0 0:1 / /c/cpu rw - cgroup cgroup rw,cpu,cpuacct\n2 0 0:2 / /c/memory rw - cgroup cgroup rw,memory\n3 0 0:3 / /c/pids rw - cgroup cgroup rw,pids\n4 0 0:4 / /c/unified rw - cgroup2 cgroup2 rw\n",
        ),
        ("c/cpu/cgroup.procs", ""),
        ("c/memory/a/cgroup.procs", ""),
        ("c/pids/cgroup.procs", ""),
        ("c/unified/cgroup.controllers", "hugetlb\n"),
    ]);
    let places = Places::find(tree.0.path());
    assert_eq!([Controller::Memory, Controller::Cpu].map(|controller| places.version(controller)), [Ok(Version::V1), Ok(Version::V1)]);
    assert_eq!(places.version(Controller::Io), Err("this system gives us no control group with `io`".into()));
    let group = Group::planned(&places, "step-runner-m-1");
    group.make(&limits()).expect("a group");
    assert_eq!(group.entrances().len(), 3);
    assert_eq!(tree.read("c/memory/a/step-runner-m-1/memory.limit_in_bytes"), "67108864");
    assert_eq!(tree.read("c/pids/step-runner-m-1/pids.max"), "9");
    assert_eq!(tree.read("c/cpu/step-runner-m-1/cpu.cfs_quota_us"), "150000");
}

#[test]
fn what_a_group_counted_goes_over_what_was_waited_for() {
    let tree = delegated();
    tree.write(&[("sys/fs/cgroup/ci.service/cgroup.subtree_control", "cpu io memory pids")]);
    let group = Group::planned(&Places::find(tree.0.path()), "g");
    group.make(&Limits::default()).expect("a group");
    tree.write(&[
        ("sys/fs/cgroup/ci.service/g/cpu.stat", "usage_usec 30\nuser_usec 20\nsystem_usec 10\n"),
        ("sys/fs/cgroup/ci.service/g/memory.peak", "4096\n"),
        ("sys/fs/cgroup/ci.service/g/memory.events", "low 0\nmax 7\noom 2\noom_kill 1\n"),
        ("sys/fs/cgroup/ci.service/g/pids.events", "max 0\n"),
        ("sys/fs/cgroup/ci.service/g/io.stat", "8:0 rbytes=1 wbytes=5 rios=1\n8:16 rbytes=2 wbytes=0\n"),
    ]);
    let counters = group.counters();
    assert_eq!(counters.reached, [LimitName::Memory].into());
    let waited = Usage {
        cpu_user: Duration::from_micros(25),
        peak_memory: 9000,
        disk: Some(Traffic { incoming: 7, outgoing: 0 }),
        ..Usage::default()
    };
    let expected = Usage {
        cpu_user: Duration::from_micros(25),
        cpu_system: Duration::from_micros(10),
        peak_memory: 4096,
        disk: Some(Traffic { incoming: 7, outgoing: 5 }),
        network: None,
        means: Means::Cgroup,
    };
    assert_eq!(counters.over(waited), expected);
}

#[test]
fn counters_of_v1_are_in_files_of_their_own() {
    let tree = Tree::new(&[
        ("g/cpuacct.usage_user", "2000\n"),
        ("g/cpuacct.usage_sys", "1000\n"),
        ("g/memory.max_usage_in_bytes", "8192\n"),
        ("g/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n"),
        ("g/pids.events", "max 3\n"),
        ("g/blkio.throttle.io_service_bytes", "8:0 Read 10\n8:0 Write 20\n8:0 Total 30\nTotal 30\n"),
    ]);
    let all = [Controller::CpuAccounting, Controller::Memory, Controller::Pids, Controller::Io].into();
    let counters = Counters::read(&tree.0.path().join("g"), Version::V1, &all);
    assert_eq!(counters.reached, [LimitName::Pids].into());
    let usage = counters.over(Usage::default());
    assert_eq!(
        (usage.cpu_user, usage.peak_memory, usage.disk),
        (Duration::from_nanos(2000), 8192, Some(Traffic { incoming: 10, outgoing: 20 }))
    );
}

#[test]
fn only_groups_of_the_job_are_removed() {
    let tree = Tree::new(&[]);
    let there = |name: &str| tree.0.path().join(name);
    for name in ["step-runner-abc-1", "step-runner-abd-1", "user.slice"] {
        std::fs::create_dir(there(name)).expect("a directory");
        remove_marked(&there(name), "abc");
        remove_marked(&there(name), "");
    }
    assert!(!there("step-runner-abc-1").exists() && there("step-runner-abd-1").exists() && there("user.slice").exists());
}
