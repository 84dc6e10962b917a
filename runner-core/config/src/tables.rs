//! The keys of a configuration file as data: one table here for each table there, with type, default, meaning, and what becomes of it.
//!
//! The names, types and defaults are those of gitlab-runner 19.4. Everything that knows a key asks these tables: the check, the
//! settings (for defaults) and the reference page.

mod autoscaler;
mod cache;
mod custom;
mod docker;
mod feature_flags;
mod global;
mod kubernetes;
mod kubernetes_placement;
mod kubernetes_pod;
mod machine;
mod remote;
mod runner;

pub use feature_flags::FEATURE_FLAGS;
pub use global::GLOBAL;

use crate::schedule::Form;

/// One table of the file.
#[derive(Debug)]
pub struct Table {
    /// As its header names it: `runners.docker`. Empty for the file itself.
    pub name: &'static str,
    /// Whether it may stand more than once: `[[runners]]`.
    pub is_list: bool,
    pub about: &'static str,
    /// What becomes of its keys, but for those that say so themselves.
    pub standing: Standing,
    pub keys: &'static [Key],
}

impl Table {
    /// As it stands in a file: `[runners.docker]`, `[[runners]]`.
    pub fn header(&self) -> String {
        match (self.name, self.is_list) {
            ("", _) => "the global section".to_owned(),
            (name, true) => format!("[[{name}]]"),
            (name, false) => format!("[{name}]"),
        }
    }

    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// The tables inside this one, and those inside them, this one first.
    pub fn all(&'static self) -> Vec<&'static Table> {
        let inner = self.keys.iter().filter_map(|key| key.kind.table()).flat_map(Table::all);
        std::iter::once(self).chain(inner).collect()
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub default: Default,
    pub meaning: &'static str,
    standing: Option<Standing>,
}

impl Key {
    /// What becomes of it, in its table.
    pub fn standing(&self, table: &Table) -> Standing {
        self.standing.unwrap_or(table.standing)
    }

    const fn default(self, text: &'static str) -> Self {
        Self { default: Default::Is(text), ..self }
    }

    const fn unset(self, text: &'static str) -> Self {
        Self { default: Default::Unset(text), ..self }
    }

    const fn mapped(self, to: &'static str) -> Self {
        Self { standing: Some(Standing::Mapped(to)), ..self }
    }

    const fn not_yet(self, missing: &'static str) -> Self {
        Self { standing: Some(Standing::NotYet(missing)), ..self }
    }

    const fn without_effect(self, instead: &'static str) -> Self {
        Self { standing: Some(Standing::WithoutEffect(instead)), ..self }
    }

    const fn old_name_of(self, name: &'static str) -> Self {
        Self { standing: Some(Standing::OldNameOf(name)), ..self }
    }
}

const fn key(name: &'static str, kind: Kind, meaning: &'static str) -> Key {
    Key { name, kind, default: Default::Unset(""), meaning, standing: None }
}

/// What the value of a key has to be.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Text,
    /// A text that nobody prints.
    Secret,
    /// A text with commands, which may hold anything.
    Script,
    /// An address, which may name an account with its password.
    Address,
    Flag,
    Whole,
    /// A number with a point.
    Number,
    /// Go's way to write a time: `15m`, `1h30m`.
    Duration,
    /// A number of seconds.
    Seconds,
    /// A date with a time.
    Time,
    Texts,
    /// A list of texts of which some may hold passwords.
    SecretTexts,
    Wholes,
    Numbers,
    OneOf(&'static [&'static str]),
    /// A text or a list of them, each one of these.
    SomeOf(&'static [&'static str]),
    /// Names with texts.
    Map,
    /// Names with texts that may hold passwords.
    SecretMap,
    /// Names with booleans: feature flags, known by name.
    Flags,
    /// Names with lists of texts.
    Lists,
    /// Names with numbers.
    Counts,
    /// Cron patterns of so many fields.
    Periods(Form),
    /// The name of a time zone; empty and `Local` are the host's.
    Zone,
    /// A table that is handed on as it stands.
    Free,
    Table(&'static Table),
    Tables(&'static Table),
}

impl Kind {
    fn table(self) -> Option<&'static Table> {
        match self {
            Self::Table(table) | Self::Tables(table) => Some(table),
            _ => None,
        }
    }

    /// Whether its values may hold what nobody should see.
    pub fn is_secret(self) -> bool {
        matches!(self, Self::Secret | Self::Script | Self::SecretTexts | Self::SecretMap | Self::Free)
    }

    /// With its article, as messages and the reference page name it.
    pub fn expected(self) -> String {
        match self {
            Self::Text | Self::Secret | Self::Script | Self::Address => "a string".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Whole => "an integer".to_owned(),
            Self::Number => "a floating-point number".to_owned(),
            Self::Duration => "a duration such as \"1h30m\"".to_owned(),
            Self::Seconds => "an integer, in seconds".to_owned(),
            Self::Time => "a date with a time".to_owned(),
            Self::Texts | Self::SecretTexts => "an array of strings".to_owned(),
            Self::Wholes => "an array of integers".to_owned(),
            Self::Numbers => "an array of floating-point numbers".to_owned(),
            Self::OneOf(choices) => format!("one of {}", quoted(choices)),
            Self::SomeOf(choices) => format!("one or an array of {}", quoted(choices)),
            Self::Map | Self::SecretMap => "a table of strings".to_owned(),
            Self::Flags => "a table of booleans".to_owned(),
            Self::Lists => "a table of arrays of strings".to_owned(),
            Self::Counts => "a table of integers".to_owned(),
            Self::Periods(Form::Five) => "an array of cron patterns with 5 fields".to_owned(),
            Self::Periods(Form::Seven) => "an array of cron patterns with 7 fields".to_owned(),
            Self::Zone => "the name of a time zone".to_owned(),
            Self::Free | Self::Table(_) => "a table".to_owned(),
            Self::Tables(_) => "an array of tables".to_owned(),
        }
    }
}

fn quoted(choices: &[&str]) -> String {
    choices.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(", ")
}

/// What counts when a key is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Default {
    /// A value, as text: `3`, `true`, `15m`.
    Is(&'static str),
    /// None, and what that means; empty when it needs no words.
    Unset(&'static str),
}

/// What becomes of a key that stands in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Same meaning and same default as in GitLab's runner.
    Honoured,
    /// Its meaning is kept by handing it to something else, which is named.
    Mapped(&'static str),
    /// Known, and has no effect so far.
    NotYet(&'static str),
    /// Known, and will have no effect: what takes its place.
    WithoutEffect(&'static str),
    /// An earlier name of this key.
    OldNameOf(&'static str),
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_key_stands_twice_and_every_old_name_has_a_new_one() {
        for table in GLOBAL.all() {
            let mut seen = BTreeSet::new();
            for key in table.keys {
                assert!(seen.insert(key.name.to_lowercase()), "{} {}", table.header(), key.name);
                assert!(!key.meaning.is_empty(), "{} {} says nothing", table.header(), key.name);
                if let Some(Standing::OldNameOf(name)) = key.standing {
                    assert!(table.key(name).is_some(), "{} {name}", table.header());
                }
                if let Some(inner) = key.kind.table() {
                    let expected = [table.name, key.name].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(".");
                    let is_used_twice = inner.name.contains('*');
                    assert!(is_used_twice || inner.name == expected, "{} is in {expected}", inner.name);
                    assert_eq!(inner.is_list, matches!(key.kind, Kind::Tables(_)), "{}", inner.name);
                }
            }
        }
    }
}
