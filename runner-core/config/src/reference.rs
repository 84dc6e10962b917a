//! The reference page of all keys, out of the same tables that the check uses.

use crate::tables::{Default, FEATURE_FLAGS, GLOBAL, Key, Kind, Standing, Table};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The page as Markdown.
pub fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut seen = BTreeSet::new();
    for table in GLOBAL.all() {
        if seen.insert(table.name) {
            section(&mut page, table);
        }
    }
    feature_flags(&mut page);
    page
}

const INTRODUCTION: &str = "\
# The configuration file

`runner-core` reads GitLab's `config.toml` as it stands. This page is made from the tables of keys that `runner-core config check` uses; a test keeps them equal.

- The file is the one that `--config` names, else `CONFIG_FILE`, else `/etc/gitlab-runner/config.toml` for root, `~/.gitlab-runner/config.toml` for others, and
  `config.toml` beside the program's directory on Windows.
- A duration is Go's: `15m`, `1h30m`, `-1.5s`; an integer in its place counts as nanoseconds, with a notice. Other times are integers of the unit that the table names.
- A number with a point may be written without one, with a notice; GitLab's runner refuses that.
- `$NAME` and `${NAME}` in `url` and `token` are replaced from the environment.
- A key is found by its exact name first, then in other letter case, with a notice. An unknown key is ignored with a warning that says what was probably meant.
- An entry of `[[runners]]` that cannot work is refused by name and the others are served. A file that breaks TOML's grammar, or whose global section is wrong, cannot be used;
  at a reload the old one stays.
- Tokens, keys and passwords are in no message, no quoted line and no log.

What becomes of a key:

| word | meaning |
|---|---|
| honoured | same meaning, same default as in GitLab's runner |
| mapped | its meaning is kept by handing it to something else, which is named |
| not yet | known, and has no effect so far |
| no effect | known, and something else takes its place |
| old name | an earlier name of another key, which is honoured |

## What jobs run in

| `executor` | environment | what runs the job's image |
|---|---|---|
| `instance` | the plugin of `[runners.autoscaler]` | none: the machine itself |
| `docker-autoscaler` | the plugin of `[runners.autoscaler]` | the docker step |
| `docker+machine` | the plugin `docker-machine`, by `[runners.machine]` | the docker step |
| `docker`, `docker-windows` | this machine | the docker step |
| `shell` | this machine | none |
| `ssh` | the plugin `static` with the machine of `[runners.ssh]` | none |
| `custom` | the plugin `exec` with the programs of `[runners.custom]` | whatever they make |
| `docker-ssh`, `docker-ssh+machine` | as `docker`, `docker+machine`, with a notice | |
| `kubernetes` | refused: there is no plugin `kubernetes` yet | |
| `parallels`, `virtualbox`, anything else | refused, with a way out | |
";

fn section(page: &mut String, table: &Table) {
    let header = if table.name.is_empty() { "The global section".to_owned() } else { format!("`{}`", table.header()) };
    // Writing to a string cannot fail.
    let _ = write!(page, "\n## {header}\n\n{}\n\n| key | value | default | meaning | here |\n|---|---|---|---|---|\n", table.about);
    for key in table.keys.iter().filter(|key| !matches!(key.kind, Kind::Table(_) | Kind::Tables(_))) {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} |",
            key.name,
            escaped(&key.kind.expected()),
            default(key),
            escaped(key.meaning),
            standing(key.standing(table))
        );
    }
    for key in table.keys {
        if let Kind::Table(inner) | Kind::Tables(inner) = key.kind {
            let _ = writeln!(page, "| `{}` | see `{}` | | {} | |", key.name, inner.header(), escaped(key.meaning));
        }
    }
}

fn default(key: &Key) -> String {
    match key.default {
        Default::Is(text) => format!("`{text}`"),
        Default::Unset(text) => escaped(text),
    }
}

fn standing(standing: Standing) -> String {
    match standing {
        Standing::Honoured => "honoured".to_owned(),
        Standing::Mapped(to) => format!("mapped: {}", escaped(to)),
        Standing::NotYet(missing) => format!("not yet: {}", escaped(missing)),
        Standing::WithoutEffect(instead) => format!("no effect: {}", escaped(instead)),
        Standing::OldNameOf(name) => format!("old name of `{name}`"),
    }
}

/// A bar inside a cell would end it.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

fn feature_flags(page: &mut String) {
    *page += "\n## Feature flags\n\nIn `feature_flags` of an entry, or in the environment of the program.\n\n| flag | default | here |\n|---|---|---|\n";
    for flag in FEATURE_FLAGS {
        let _ = writeln!(page, "| `{}` | {} | {} |", flag.name, if flag.is_on { "on" } else { "off" }, standing(flag.standing));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_the_tables_say() {
        let written = include_str!("../../../docs/reference/config.md").replace("\r\n", "\n");
        let page = page();
        let differs = page.lines().zip(written.lines()).find(|(page, written)| page != written);
        assert!(
            page == written,
            "write the page anew: `cargo run -p runner-config --example reference > docs/reference/config.md`\n{differs:#?}"
        );
    }
}
