//! What is asked of artifacts, checked: every problem at once, and then a type that cannot be wrong.

use crate::inputs::Inputs;
use reqwest::Url;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use step_archive::Level;
use step_archive::unpack::OutsideLinks;
use step_sdk::Failure;

/// GitLab's limit (GitLab Runner v19.4, `functions/concrete/builder`).
const MOST_ATTEMPTS: f64 = 10.0;

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub action: Action,
    pub place: Place,
    pub timeout: Duration,
    pub attempts: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Upload(Upload),
    Download(Download),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    pub name: String,
    pub paths: Vec<String>,
    pub exclude: Vec<String>,
    pub untracked: bool,
    /// `archive`, `junit`, ... The server knows which there are.
    pub kind: String,
    pub format: Format,
    pub expire_in: String,
    pub level: Level,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// The job that made it, for people.
    pub name: String,
    pub filename: String,
    pub outside_links: OutsideLinks,
    /// The store of objects may be asked itself.
    pub direct: bool,
}

/// How files become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Zip,
    TarZstd,
    /// Each file compressed, one behind the other.
    Gzip,
    /// The one file as it is.
    Raw,
}

impl Format {
    /// What the server is told.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zip => "zip",
            Self::TarZstd => "tarzstd",
            Self::Gzip => "gzip",
            Self::Raw => "raw",
        }
    }

    fn of(text: &str) -> Option<Self> {
        match text {
            "" | "zip" => Some(Self::Zip),
            "tarzstd" => Some(Self::TarZstd),
            "gzip" => Some(Self::Gzip),
            "raw" => Some(Self::Raw),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    Server(Server),
    Directory {
        directory: PathBuf,
        job: String,
    },
    /// Nobody said where: nothing is kept.
    Nowhere,
}

#[derive(Clone, PartialEq)]
pub struct Server {
    /// `https://gitlab.example/api/v4/jobs/7/artifacts`
    pub artifacts: Url,
    pub token: String,
    pub tls_ca_file: Option<PathBuf>,
}

/// Nothing of the token is for a log.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({})", self.artifacts)
    }
}

impl Settings {
    /// # Errors
    /// Every input that makes no sense; none of the values that may be secret.
    pub fn of(inputs: Inputs) -> Result<Self, Failure> {
        let mut problems = Vec::new();
        let timeout = duration(&inputs.timeout).unwrap_or_else(|| {
            problems.push(format!("`timeout` is `{}`, expected a time such as `90s` or `1h`", inputs.timeout.escape_debug()));
            Duration::ZERO
        });
        let attempts = whole("attempts", inputs.attempts, 1.0, MOST_ATTEMPTS, &mut problems);
        let place = place(&inputs, &mut problems);
        let action = action(inputs, &mut problems);
        match (place, action, problems.as_slice()) {
            (Some(place), Some(action), []) => Ok(Self { action, place, timeout, attempts: u32::try_from(attempts).unwrap_or(1) }),
            (_, _, problems) => Err(Failure::bad_input(problems.join("; "))),
        }
    }
}

fn action(inputs: Inputs, problems: &mut Vec<String>) -> Option<Action> {
    match inputs.action.as_str() {
        "upload" => {
            let format = Format::of(&inputs.format);
            if format.is_none() {
                problems.push(format!("`format` is `{}`, expected `zip`, `gzip`, `raw` or `tarzstd`", inputs.format.escape_debug()));
            }
            let level = inputs.level.parse().map_err(|unknown| problems.push(format!("`level`: {unknown}")));
            Some(Action::Upload(Upload {
                name: inputs.name,
                paths: inputs.paths,
                exclude: inputs.exclude,
                untracked: inputs.untracked,
                kind: inputs.kind,
                format: format?,
                expire_in: inputs.expire_in,
                level: level.ok()?,
            }))
        }
        "download" => Some(Action::Download(Download {
            name: inputs.name,
            filename: inputs.filename,
            outside_links: if inputs.outside_links { OutsideLinks::Made } else { OutsideLinks::LeftOut },
            direct: inputs.direct,
        })),
        other => {
            problems.push(format!("`action` is `{}`, expected `upload` or `download`", other.escape_debug()));
            None
        }
    }
}

fn place(inputs: &Inputs, problems: &mut Vec<String>) -> Option<Place> {
    match (inputs.url.is_empty(), inputs.directory.is_empty()) {
        (true, true) => Some(Place::Nowhere),
        (true, false) => Some(Place::Directory { directory: inputs.directory.clone().into(), job: inputs.job.clone() }),
        (false, false) => {
            problems.push("`url` and `directory` exclude each other: artifacts are kept in one place".to_owned());
            None
        }
        (false, true) => {
            let id = whole("id", inputs.id, 1.0, 9_007_199_254_740_991.0, problems);
            let Some(artifacts) = artifacts_of(&inputs.url, id) else {
                problems.push("`url` is no address of a GitLab server".to_owned());
                return None;
            };
            let tls_ca_file = Some(&inputs.tls_ca_file).filter(|file| !file.is_empty()).map(PathBuf::from);
            Some(Place::Server(Server { artifacts, token: inputs.token.clone(), tls_ca_file }))
        }
    }
}

/// As GitLab's runner makes it of the `url` of its configuration (GitLab Runner v19.4, `network/client.go`).
fn artifacts_of(url: &str, id: u64) -> Option<Url> {
    let base = url.trim_end_matches('/');
    let base = base.strip_suffix("/ci").unwrap_or(base);
    let url = Url::parse(&format!("{base}/api/v4/jobs/{id}/artifacts")).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
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
    pub(crate) fn inputs(action: &str) -> Inputs {
        Inputs {
            action: action.into(),
            kind: "archive".into(),
            format: "zip".into(),
            level: "default".into(),
            timeout: "1h".into(),
            attempts: 1.0,
            direct: true,
            ..Inputs::default()
        }
    }

    #[test]
    fn the_address_is_made_as_gitlabs_runner_makes_it() {
        for url in ["https://gitlab.example", "https://gitlab.example/", "https://gitlab.example/ci", "https://gitlab.example/ci/"] {
            assert_eq!(artifacts_of(url, 7).map(String::from), Some("https://gitlab.example/api/v4/jobs/7/artifacts".into()), "{url}");
        }
        assert_eq!(
            artifacts_of("http://host:81/gitlab", 7).map(String::from),
            Some("http://host:81/gitlab/api/v4/jobs/7/artifacts".into())
        );
        assert_eq!((artifacts_of("ftp://gitlab.example", 7), artifacts_of("gitlab", 7)), (None, None));
    }

    #[test]
    fn every_problem_is_told_at_once_and_no_secret() {
        let wrong = Inputs {
            url: "gitlab".into(),
            token: "secret".into(),
            format: "rar".into(),
            timeout: "0s".into(),
            attempts: 1.5,
            level: "best".into(),
            ..inputs("upload")
        };
        insta::assert_snapshot!(Settings::of(wrong).unwrap_err().message.replace("; ", "\n"), @"
        `timeout` is `0s`, expected a time such as `90s` or `1h`
        `attempts` is 1.5, expected a whole number from 1 to 10
        `id` is 0, expected a whole number from 1 to 9007199254740991
        `url` is no address of a GitLab server
        `format` is `rar`, expected `zip`, `gzip`, `raw` or `tarzstd`
        `level`: `best` is none of `fastest`, `fast`, `default`, `slow`, `slowest`
        ");
        let two = Inputs { url: "https://a".into(), directory: "b".into(), ..inputs("download") };
        assert_eq!(Settings::of(two).unwrap_err().message, "`url` and `directory` exclude each other: artifacts are kept in one place");
    }

    #[test]
    fn a_token_is_in_no_debug_text() {
        let settings = Settings::of(Inputs { url: "https://a".into(), id: 7.0, token: "secret".into(), ..inputs("download") }).unwrap();
        assert!(!format!("{settings:?}").contains("secret"));
    }
}
