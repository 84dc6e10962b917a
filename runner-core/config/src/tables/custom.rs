//! The keys of `[runners.custom]`: programs that make environments.

use super::{Kind, Standing, Table, key};

pub(super) static CUSTOM: Table = Table {
    name: "runners.custom",
    is_list: false,
    about: "Programs that make an environment, run scripts in it and remove it.",
    standing: Standing::Mapped("the plugin `exec`, whose hooks are these programs"),
    keys: &[
        key("config_exec", Kind::Text, "prints JSON that replaces settings before the job"),
        key("config_args", Kind::Texts, "its arguments"),
        key("config_exec_timeout", Kind::Seconds, "its limit").default("3600"),
        key("prepare_exec", Kind::Text, "makes the environment"),
        key("prepare_args", Kind::Texts, "its arguments"),
        key("prepare_exec_timeout", Kind::Seconds, "its limit").default("3600"),
        key("run_exec", Kind::Text, "runs a script in the environment; must be there"),
        key("run_args", Kind::Texts, "its arguments"),
        key("cleanup_exec", Kind::Text, "removes the environment"),
        key("cleanup_args", Kind::Texts, "its arguments"),
        key("cleanup_exec_timeout", Kind::Seconds, "its limit").default("3600"),
        key("graceful_kill_timeout", Kind::Seconds, "how long a program may take to end after it was asked to").default("600"),
        key("force_kill_timeout", Kind::Seconds, "how long it is waited for after it was killed").default("600"),
    ],
};
