//! The keys of the tables inside `[runners.kubernetes]` that describe a pod.

use super::kubernetes::POD;
use super::{Key, Kind, Table, key};

const fn table(name: &'static str, is_list: bool, about: &'static str, keys: &'static [Key]) -> Table {
    Table { name, is_list, about, standing: POD, keys }
}

pub(super) static POD_SECURITY: Table = table(
    "runners.kubernetes.pod_security_context",
    false,
    "Accounts and rights of a pod.",
    &[
        key("fs_group", Kind::Whole, "group of volumes"),
        key("run_as_group", Kind::Whole, "group of processes"),
        key("run_as_non_root", Kind::Flag, "refuses root"),
        key("run_as_user", Kind::Whole, "account of processes"),
        key("supplemental_groups", Kind::Wholes, "more groups"),
        key("selinux_type", Kind::Text, "SELinux type"),
        key("seccomp_profile", Kind::Table(&PROFILE), "which system calls"),
        key("app_armor_profile", Kind::Table(&PROFILE), "AppArmor profile"),
    ],
);

pub(super) static SECURITY: Table = table(
    "runners.kubernetes.*_container_security_context",
    false,
    "Accounts and rights of a container.",
    &[
        key("capabilities", Kind::Table(&CAPABILITIES), "capabilities"),
        key("privileged", Kind::Flag, "all rights of the node"),
        key("run_as_user", Kind::Whole, "account of processes"),
        key("run_as_group", Kind::Whole, "group of processes"),
        key("run_as_non_root", Kind::Flag, "refuses root"),
        key("read_only_root_filesystem", Kind::Flag, "the image cannot be written"),
        key("allow_privilege_escalation", Kind::Flag, "processes may gain rights"),
        key("selinux_type", Kind::Text, "SELinux type"),
        key("proc_mount", Kind::OneOf(&["default", "unmasked"]), "how /proc is mounted"),
        key("seccomp_profile", Kind::Table(&PROFILE), "which system calls"),
        key("app_armor_profile", Kind::Table(&PROFILE), "AppArmor profile"),
    ],
);

static CAPABILITIES: Table = table(
    "runners.kubernetes.*.capabilities",
    false,
    "Capabilities of a container.",
    &[key("add", Kind::Texts, "that are given"), key("drop", Kind::Texts, "that are taken")],
);

static PROFILE: Table = table(
    "runners.kubernetes.*.profile",
    false,
    "A profile of the node.",
    &[key("type", Kind::Text, "kind of profile"), key("localhost_profile", Kind::Text, "its name on the node")],
);

pub(super) static VOLUMES: Table = table(
    "runners.kubernetes.volumes",
    false,
    "Mounts by kind.",
    &[
        key("host_path", Kind::Tables(&VOLUME), "directories of the node"),
        key("pvc", Kind::Tables(&VOLUME), "persistent volumes"),
        key("config_map", Kind::Tables(&VOLUME), "configuration maps"),
        key("secret", Kind::Tables(&VOLUME), "secrets"),
        key("empty_dir", Kind::Tables(&VOLUME), "empty directories"),
        key("csi", Kind::Tables(&VOLUME), "volumes of drivers"),
        key("nfs", Kind::Tables(&VOLUME), "directories of file servers"),
    ],
);

static VOLUME: Table = table(
    "runners.kubernetes.volumes.*",
    true,
    "A mount; which keys apply depends on its kind.",
    &[
        key("name", Kind::Text, "name of the volume"),
        key("mount_path", Kind::Text, "where it is mounted"),
        key("sub_path", Kind::Text, "directory inside it"),
        key("read_only", Kind::Flag, "cannot be written"),
        key("host_path", Kind::Text, "directory of the node"),
        key("mount_propagation", Kind::Text, "whether mounts are shared"),
        key("items", Kind::Map, "files by key"),
        key("medium", Kind::Text, "`Memory` for one in memory"),
        key("size_limit", Kind::Text, "most storage"),
        key("driver", Kind::Text, "CSI driver"),
        key("fs_type", Kind::Text, "file system"),
        key("volume_attributes", Kind::SecretMap, "attributes for the driver"),
        key("server", Kind::Text, "NFS server"),
        key("path", Kind::Text, "its directory"),
    ],
);

pub(super) static HOST_ALIASES: Table = table(
    "runners.kubernetes.host_aliases",
    true,
    "Names of an address.",
    &[key("ip", Kind::Text, "address"), key("hostnames", Kind::Texts, "its names")],
);

pub(super) static DNS_CONFIG: Table = table(
    "runners.kubernetes.dns_config",
    false,
    "Name servers of pods.",
    &[
        key("nameservers", Kind::Texts, "addresses"),
        key("searches", Kind::Texts, "domains that are tried"),
        key("options", Kind::Tables(&DNS_OPTIONS), "options"),
    ],
);

static DNS_OPTIONS: Table = table(
    "runners.kubernetes.dns_config.options",
    true,
    "An option of the resolver.",
    &[key("name", Kind::Text, "name"), key("value", Kind::Text, "value")],
);

pub(super) static CONTAINER_LIFECYCLE: Table = table(
    "runners.kubernetes.container_lifecycle",
    false,
    "Hooks of the build container.",
    &[key("post_start", Kind::Table(&HANDLER), "after it started"), key("pre_stop", Kind::Table(&HANDLER), "before it stops")],
);

static HANDLER: Table = table(
    "runners.kubernetes.container_lifecycle.*",
    false,
    "A hook.",
    &[
        key("exec", Kind::Table(&EXEC), "runs a command"),
        key("http_get", Kind::Table(&HTTP_GET), "asks over HTTP"),
        key("tcp_socket", Kind::Table(&TCP_SOCKET), "connects"),
    ],
);

static EXEC: Table =
    table("runners.kubernetes.container_lifecycle.*.exec", false, "A command.", &[key("command", Kind::Texts, "program and arguments")]);

static HTTP_GET: Table = table(
    "runners.kubernetes.container_lifecycle.*.http_get",
    false,
    "A request.",
    &[
        key("host", Kind::Text, "host").unset("the pod's address"),
        key("http_headers", Kind::Tables(&HTTP_HEADERS), "headers"),
        key("path", Kind::Text, "path"),
        key("port", Kind::Whole, "port"),
        key("scheme", Kind::Text, "scheme").unset("HTTP"),
    ],
);

static HTTP_HEADERS: Table = table(
    "runners.kubernetes.container_lifecycle.*.http_headers",
    true,
    "A header.",
    &[key("name", Kind::Text, "name"), key("value", Kind::Secret, "value")],
);

static TCP_SOCKET: Table = table(
    "runners.kubernetes.container_lifecycle.*.tcp_socket",
    false,
    "A connection.",
    &[key("host", Kind::Text, "host").unset("the pod's address"), key("port", Kind::Whole, "port")],
);

pub(super) static POD_SPEC: Table = table(
    "runners.kubernetes.pod_spec",
    true,
    "A patch of the pod.",
    &[
        key("name", Kind::Text, "name"),
        key("patch_path", Kind::Text, "file of the patch"),
        key("patch", Kind::Script, "the patch itself"),
        key("patch_type", Kind::OneOf(&["json", "merge", "strategic"]), "kind of patch").unset("`strategic`"),
    ],
);
