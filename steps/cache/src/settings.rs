//! What a cache is asked to be, checked: every problem at once, and then a type that cannot be wrong.

use crate::inputs::Inputs;
use crate::store::StoreSettings;
use std::time::Duration;
use step_archive::unpack::OutsideLinks;
use step_archive::{Format, Level};
use step_sdk::Failure;

/// GitLab's limits (GitLab Runner v19.4, `functions/concrete/builder`).
const MOST_ATTEMPTS: f64 = 10.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Restore,
    Archive,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub action: Action,
    /// The key itself first, then those that stand in for it.
    pub keys: Vec<Key>,
    pub paths: Vec<String>,
    pub untracked: bool,
    pub format: Format,
    pub level: Level,
    /// In bytes.
    pub max_size: Option<u64>,
    pub timeout: Duration,
    pub attempts: u32,
    pub outside_links: OutsideLinks,
    pub store: StoreSettings,
    pub warnings: Vec<String>,
}

/// The name of a cache: parts between slashes, none of which leads elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(String);

/// Why a text is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    #[error("it is empty, or has an empty part")]
    Empty,
    #[error("a part of it is `.` or `..`")]
    LeadsElsewhere,
    #[error("it holds a backslash or a control character")]
    BadLetter,
}

impl Key {
    /// # Errors
    /// It could lead to another place than its own.
    pub fn parse(text: &str) -> Result<Self, BadKey> {
        if text.contains('\\') || text.contains(char::is_control) {
            return Err(BadKey::BadLetter);
        }
        for part in text.split('/') {
            match part {
                "." | ".." => return Err(BadKey::LeadsElsewhere),
                part if part.trim().is_empty() => return Err(BadKey::Empty),
                _ => {}
            }
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Settings {
    /// # Errors
    /// Every input that makes no sense; none of the values that may be secret.
    pub fn of(inputs: Inputs) -> Result<Self, Failure> {
        let mut problems = Vec::new();
        let action = match inputs.action.as_str() {
            "restore" => Action::Restore,
            "archive" => Action::Archive,
            other => {
                problems.push(format!("`action` is `{other}`, expected `restore` or `archive`"));
                Action::Restore
            }
        };
        let key = [("key", &inputs.key)].into_iter();
        let names = key.chain(inputs.fallback_keys.iter().filter(|_| action == Action::Restore).map(|key| ("fallback_keys", key)));
        let keys: Vec<Key> = names
            .filter_map(|(name, text)| {
                Key::parse(text).map_err(|bad| problems.push(format!("`{name}`: `{}` is no key: {bad}", text.escape_debug()))).ok()
            })
            .collect();
        let format = match inputs.format.as_str() {
            "" | "zip" => Format::Zip,
            // Nobody but a cache of ours reads it, and this is the better Zstandard of the two.
            "tarzstd" | "zipzstd" => Format::TarZstd,
            other => {
                problems.push(format!("`format` is `{other}`, expected `zip` or `tarzstd`"));
                Format::Zip
            }
        };
        let level = inputs.level.parse().unwrap_or_else(|unknown| {
            problems.push(format!("`level`: {unknown}"));
            Level::Default
        });
        let timeout = duration(&inputs.timeout).unwrap_or_else(|| {
            problems.push(format!("`timeout` is `{}`, expected a time such as `90s` or `10m`", inputs.timeout.escape_debug()));
            Duration::ZERO
        });
        let attempts = whole("attempts", inputs.attempts, 1.0, MOST_ATTEMPTS, &mut problems);
        let max_size = whole("max_size", inputs.max_size, 0.0, 9_007_199_254_740_991.0, &mut problems);
        let outside_links = if inputs.outside_links { OutsideLinks::Made } else { OutsideLinks::LeftOut };
        let (paths, untracked, warnings) = (inputs.paths.clone(), inputs.untracked, inputs.warnings.clone());
        let store = StoreSettings::of(inputs, &mut problems);
        match (store, problems.as_slice()) {
            (Some(store), []) => Ok(Self {
                action,
                keys,
                paths,
                untracked,
                format,
                level,
                max_size: Some(max_size).filter(|most| *most > 0),
                timeout,
                attempts: u32::try_from(attempts).unwrap_or(1),
                outside_links,
                store,
                warnings,
            }),
            (_, problems) => Err(Failure::bad_input(problems.join("; "))),
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked")]
fn whole(name: &str, value: f64, least: f64, most: f64, problems: &mut Vec<String>) -> u64 {
    if value.fract() != 0.0 || !(least..=most).contains(&value) {
        problems.push(format!("`{name}` is {value}, expected a whole number from {least} to {most}"));
        return least as u64;
    }
    value as u64
}

/// `90s`, `10m`, `1h`.
fn duration(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let number: u64 = text[..text.len() - unit.len_utf8()].parse().ok().filter(|number| *number > 0)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        _ => return None,
    };
    number.checked_mul(seconds).map(Duration::from_secs)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// With the defaults of the definition.
    pub(crate) fn inputs() -> Inputs {
        Inputs {
            action: "restore".into(),
            key: "main".into(),
            format: "zip".into(),
            level: "default".into(),
            timeout: "10m".into(),
            attempts: 1.0,
            directory: "/caches".into(),
            ..Inputs::default()
        }
    }

    #[test]
    fn keys_that_stand_in_come_after_the_key_and_only_when_something_is_restored() {
        let keys = |action: &str| {
            let inputs = Inputs { action: action.into(), fallback_keys: vec!["other/x".into()], ..inputs() };
            Settings::of(inputs).unwrap().keys.iter().map(|key| key.as_str().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(keys("restore"), ["main", "other/x"]);
        assert_eq!(keys("archive"), ["main"]);
    }

    #[test]
    fn a_key_leads_to_its_own_place_alone() {
        for key in ["a", "a b", "a/b.c/d", "..a", "job name/main", "ä-protected"] {
            assert_eq!(Key::parse(key).map(|key| key.as_str().to_owned()), Ok(key.to_owned()));
        }
        for (key, bad) in [
            ("", BadKey::Empty),
            ("a//b", BadKey::Empty),
            ("/a", BadKey::Empty),
            ("a/", BadKey::Empty),
            ("a/ ", BadKey::Empty),
            ("../a", BadKey::LeadsElsewhere),
            ("a/./b", BadKey::LeadsElsewhere),
            ("a\\..\\b", BadKey::BadLetter),
            ("a\nb", BadKey::BadLetter),
        ] {
            assert_eq!(Key::parse(key), Err(bad), "{key:?}");
        }
    }

    #[test]
    fn every_problem_is_told_at_once_and_no_secret() {
        let wrong = Inputs {
            action: "burn".into(),
            key: "../other".into(),
            format: "rar".into(),
            level: "best".into(),
            timeout: "soon".into(),
            attempts: 0.0,
            max_size: -1.0,
            bucket: "b".into(),
            ..inputs()
        };
        insta::assert_snapshot!(Settings::of(wrong).unwrap_err().message.replace("; ", "\n"), @"
        `action` is `burn`, expected `restore` or `archive`
        `key`: `../other` is no key: a part of it is `.` or `..`
        `format` is `rar`, expected `zip` or `tarzstd`
        `level`: `best` is none of `fastest`, `fast`, `default`, `slow`, `slowest`
        `timeout` is `soon`, expected a time such as `90s` or `10m`
        `attempts` is 0, expected a whole number from 1 to 10
        `max_size` is -1, expected a whole number from 0 to 9007199254740991
        `directory` and `bucket` exclude each other: a cache is kept in one place
        ");
    }

    #[test]
    fn a_cache_is_kept_somewhere() {
        let nowhere = Inputs { directory: String::new(), ..inputs() };
        assert_eq!(Settings::of(nowhere).unwrap_err().message, "one of `directory`, `bucket` and `signed` says where caches are kept");
    }
}
