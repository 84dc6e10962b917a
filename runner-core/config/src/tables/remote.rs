//! The keys of the executors that use machines which are there already.

use super::{Kind, Standing, Table, key};

pub(super) static INSTANCE: Table = Table {
    name: "runners.instance",
    is_list: false,
    about: "Jobs that run on an instance itself.",
    standing: Standing::Mapped("the policy that binds a job"),
    keys: &[
        key("allowed_images", Kind::Texts, "patterns of the nested machines' images that a job may name")
            .unset("only the configured image"),
        key("use_common_build_dir", Kind::Flag, "all jobs share one directory; only with VM isolation or `max_use_count = 1`")
            .default("false")
            .mapped("an input of the checkout step"),
    ],
};

pub(super) static SSH: Table = Table {
    name: "runners.ssh",
    is_list: false,
    about: "One machine that is reached over SSH.",
    standing: Standing::Mapped("the plugin `static`, with this machine as its only instance"),
    keys: &[
        key("user", Kind::Text, "account on the machine"),
        key("password", Kind::Secret, "its password"),
        key("host", Kind::Text, "name or address of the machine"),
        key("port", Kind::Text, "its port").default("22"),
        key("identity_file", Kind::Text, "file of a private key that is not encrypted"),
        key("disable_strict_host_key_checking", Kind::Flag, "accepts any host key").default("false"),
        key("known_hosts_file", Kind::Text, "file of the host keys").default("~/.ssh/known_hosts"),
    ],
};

const NESTING: Standing = Standing::WithoutEffect(
    "such a runner is refused; nested machines (`[runners.autoscaler.vm_isolation]`) and the plugin `exec` take its place",
);

pub(super) static PARALLELS: Table = Table {
    name: "runners.parallels",
    is_list: false,
    about: "Machines of Parallels.",
    standing: NESTING,
    keys: &[
        key("base_name", Kind::Text, "machine that is cloned"),
        key("template_name", Kind::Text, "template that is made of it"),
        key("disable_snapshots", Kind::Flag, "removes the machine instead of going back"),
        key("time_server", Kind::Text, "where its clock is set").default("time.apple.com"),
        key("allowed_images", Kind::Texts, "regular expressions of machines that a job may name"),
    ],
};

pub(super) static VIRTUALBOX: Table = Table {
    name: "runners.virtualbox",
    is_list: false,
    about: "Machines of VirtualBox.",
    standing: NESTING,
    keys: &[
        key("base_name", Kind::Text, "machine that is cloned"),
        key("base_snapshot", Kind::Text, "snapshot of it that is cloned"),
        key("base_folder", Kind::Text, "where the clone lies"),
        key("disable_snapshots", Kind::Flag, "removes the machine instead of going back"),
        key("allowed_images", Kind::Texts, "regular expressions of machines that a job may name"),
        key("start_type", Kind::Text, "kind of its window"),
    ],
};
