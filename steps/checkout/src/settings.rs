//! What a checkout is asked to do, checked: every problem at once, and then a type that cannot be wrong.

use crate::inputs::Inputs;
use crate::remote::{Login, Remote, Transport};
use std::path::{Component, Path, PathBuf};
use step_sdk::Failure;

/// GitLab's limits (GitLab Runner v19.4, `functions/concrete/builder`).
const MOST_ATTEMPTS: f64 = 10.0;
const DEEPEST_SUBMODULE: f64 = 10_000.0;
/// What git itself can count.
const DEEPEST: f64 = 2_147_483_647.0;

/// How the work tree comes to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// What is there is used again.
    Fetch,
    /// Everything is fetched anew.
    Clone,
    /// An empty directory.
    Empty,
    /// Nothing is touched.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    Whole,
    Commits(u32),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submodules {
    pub recursive: bool,
    pub depth: Depth,
    pub paths: Vec<String>,
    pub update_flags: Vec<String>,
    pub force_https: bool,
}

/// What is to be checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// This commit; with the name that it has for people.
    Commit { sha: String, reference: String },
    /// Whatever this branch, tag or other ref is now.
    Reference(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub strategy: Strategy,
    pub source: Option<Source>,
    pub attempts: u32,
    /// Below the work directory of the step.
    pub directory: PathBuf,
    pub take_over: bool,
}

/// What is fetched. Missing for the strategies that fetch nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub remote: Remote,
    pub login: Option<Login>,
    pub ssh_key: Option<SshKey>,
    pub ssh_known_hosts: Option<String>,
    pub tls_ca_file: Option<PathBuf>,
    pub wanted: Wanted,
    pub refspecs: Vec<String>,
    pub depth: Depth,
    pub object_format: ObjectFormat,
    /// `false`: fetched, and the files stay as they are.
    pub checkout: bool,
    pub submodules: Option<Submodules>,
    /// `None`: nothing is cleaned.
    pub clean_flags: Option<Vec<String>>,
    pub fetch_flags: Vec<String>,
    pub lfs: bool,
    pub user_agent: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectFormat {
    Sha1,
    Sha256,
}

impl ObjectFormat {
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }
}

/// The text of a private key.
#[derive(Clone, PartialEq, Eq)]
pub struct SshKey(pub String);

/// Nothing of it is for a log.
impl std::fmt::Debug for SshKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SshKey")
    }
}

impl Settings {
    /// # Errors
    /// Every input that makes no sense; none of the values that may be secret.
    pub fn of(inputs: Inputs) -> Result<Self, Failure> {
        let mut problems = Vec::new();
        let strategy = match inputs.strategy.as_str() {
            "fetch" => Strategy::Fetch,
            "clone" => Strategy::Clone,
            "empty" => Strategy::Empty,
            "none" => Strategy::None,
            other => {
                problems.push(format!("`strategy` is `{other}`, expected `fetch`, `clone`, `empty` or `none`"));
                Strategy::Fetch
            }
        };
        let attempts = whole("attempts", inputs.attempts, 1.0, MOST_ATTEMPTS, &mut problems);
        let directory = below("directory", &inputs.directory, &mut problems);
        let take_over = inputs.take_over;
        let fetches = matches!(strategy, Strategy::Fetch | Strategy::Clone);
        let source = if fetches { source(inputs, &mut problems) } else { None };
        match problems.as_slice() {
            [] => Ok(Self { strategy, source, attempts, directory, take_over }),
            problems => Err(Failure::bad_input(problems.join("; "))),
        }
    }
}

fn source(inputs: Inputs, problems: &mut Vec<String>) -> Option<Source> {
    let parsed = Remote::parse(&inputs.repo_url).map_err(|bad| problems.push(format!("`repo_url` cannot be fetched from: {bad}"))).ok();
    let object_format = match inputs.object_format.as_str() {
        "" | "sha1" => ObjectFormat::Sha1,
        "sha256" => ObjectFormat::Sha256,
        other => {
            problems.push(format!("`object_format` is `{other}`, expected `sha1` or `sha256`"));
            ObjectFormat::Sha1
        }
    };
    let depth = depth("depth", inputs.depth, DEEPEST, problems);
    let wanted = wanted(&inputs, object_format, problems);
    let submodules = submodules(&inputs, problems);
    for (name, values) in [("refspecs", &inputs.refspecs), ("submodule_paths", &inputs.submodule_paths)] {
        for value in values.iter().filter(|value| value.is_empty() || value.starts_with('-') || value.contains(char::is_control)) {
            problems.push(format!("`{name}` holds `{}`, which git would not take for one", value.escape_debug()));
        }
    }
    let (remote, written) = parsed?;
    let given = (!inputs.token.is_empty()).then(|| Login { username: inputs.username.clone(), password: inputs.token.clone() });
    let login = given.or(written).filter(|_| matches!(remote.transport, Transport::Http { .. }));
    if login.as_ref().is_some_and(|login| [&login.username, &login.password].into_iter().any(|text| text.contains(['\n', '\r', '\0']))) {
        problems.push("the token or the user holds a line break".to_owned());
    }
    let wanted = wanted?;
    let refspecs = if inputs.refspecs.is_empty() { vec![refspec_of(&wanted)] } else { inputs.refspecs };
    let text = |text: String| Some(text).filter(|text| !text.trim().is_empty());
    Some(Source {
        remote,
        login,
        ssh_key: text(inputs.ssh_key).map(SshKey),
        ssh_known_hosts: text(inputs.ssh_known_hosts),
        tls_ca_file: text(inputs.tls_ca_file).map(PathBuf::from),
        wanted,
        refspecs,
        depth,
        object_format,
        checkout: inputs.checkout,
        submodules,
        clean_flags: Some(inputs.clean_flags).filter(|flags| !flags.is_empty()),
        fetch_flags: inputs.fetch_flags,
        lfs: inputs.lfs,
        user_agent: text(inputs.user_agent),
    })
}

fn wanted(inputs: &Inputs, format: ObjectFormat, problems: &mut Vec<String>) -> Option<Wanted> {
    let length = match format {
        ObjectFormat::Sha1 => 40,
        ObjectFormat::Sha256 => 64,
    };
    let is_sha = |text: &str| text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let reference = &inputs.reference;
    if reference.starts_with('-') || reference.contains(|each: char| each.is_control() || each == ' ') {
        problems.push(format!("`ref` is `{}`, which is no name that git has", reference.escape_debug()));
        return None;
    }
    match (inputs.sha.as_str(), reference.as_str()) {
        ("", "") => {
            problems.push("neither `sha` nor `ref` says what to check out".to_owned());
            None
        }
        ("", reference) => Some(Wanted::Reference(reference.to_owned())),
        (sha, reference) if is_sha(sha) => Some(Wanted::Commit { sha: sha.to_ascii_lowercase(), reference: reference.to_owned() }),
        (sha, _) => {
            problems.push(format!("`sha` is `{}`, expected {length} hexadecimal digits", sha.escape_debug()));
            None
        }
    }
}

/// What brings it when nobody says how it is fetched.
fn refspec_of(wanted: &Wanted) -> String {
    match wanted {
        Wanted::Commit { sha, .. } => sha.clone(),
        Wanted::Reference(reference) if reference.starts_with("refs/") => format!("+{reference}:{reference}"),
        // A branch or a tag: git finds out which.
        Wanted::Reference(reference) => reference.clone(),
    }
}

fn submodules(inputs: &Inputs, problems: &mut Vec<String>) -> Option<Submodules> {
    let recursive = match inputs.submodules.as_str() {
        "" | "none" => return None,
        "normal" => false,
        "recursive" => true,
        other => {
            problems.push(format!("`submodules` is `{other}`, expected `none`, `normal` or `recursive`"));
            return None;
        }
    };
    Some(Submodules {
        recursive,
        depth: depth("submodule_depth", inputs.submodule_depth, DEEPEST_SUBMODULE, problems),
        paths: inputs.submodule_paths.clone(),
        update_flags: inputs.submodule_update_flags.clone(),
        force_https: inputs.submodule_force_https,
    })
}

fn depth(name: &str, value: f64, most: f64, problems: &mut Vec<String>) -> Depth {
    match whole(name, value, 0.0, most, problems) {
        0 => Depth::Whole,
        commits => Depth::Commits(commits),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked")]
fn whole(name: &str, value: f64, least: f64, most: f64, problems: &mut Vec<String>) -> u32 {
    if value.fract() != 0.0 || !(least..=most).contains(&value) {
        problems.push(format!("`{name}` is {value}, expected a whole number from {least} to {most}"));
        return least as u32;
    }
    value as u32
}

fn below(name: &str, text: &str, problems: &mut Vec<String>) -> PathBuf {
    let path = Path::new(text);
    if path.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        problems.push(format!("`{name}` is `{text}`, expected a path below the work directory"));
    }
    path.to_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const SHA: &str = "2f4b1c0d9e8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c";

    /// What a person writes at least, with the defaults of the definition.
    pub(crate) fn inputs() -> Inputs {
        Inputs {
            repo_url: "https://gitlab-ci-token:secret@git.example/group/app.git".into(),
            username: "gitlab-ci-token".into(),
            sha: SHA.into(),
            reference: "main".into(),
            strategy: "fetch".into(),
            checkout: true,
            submodules: "none".into(),
            clean_flags: vec!["-ffdx".into()],
            fetch_flags: vec!["--prune".into(), "--quiet".into()],
            lfs: true,
            attempts: 1.0,
            ..Inputs::default()
        }
    }

    pub(crate) fn source_of(inputs: Inputs) -> Source {
        Settings::of(inputs).unwrap().source.unwrap()
    }

    fn complaint(inputs: Inputs) -> String {
        Settings::of(inputs).unwrap_err().message
    }

    #[test]
    fn a_token_wins_over_the_login_of_the_address() {
        assert_eq!(source_of(inputs()).login, Some(Login { username: "gitlab-ci-token".into(), password: "secret".into() }));
        let given = source_of(Inputs { token: "other".into(), username: "me".into(), ..inputs() });
        assert_eq!(given.login, Some(Login { username: "me".into(), password: "other".into() }));
    }

    #[test]
    fn a_token_is_for_http_alone() {
        let ssh = Inputs { repo_url: "git@git.example:group/app.git".into(), token: "t".into(), ..inputs() };
        assert_eq!(source_of(ssh).login, None);
    }

    #[test]
    fn without_refspecs_the_wanted_is_fetched_by_its_name() {
        assert_eq!(source_of(inputs()).refspecs, [SHA.to_owned()]);
        let of = |reference: &str| source_of(Inputs { sha: String::new(), reference: reference.into(), ..inputs() }).refspecs;
        assert_eq!(of("main"), ["main"]);
        assert_eq!(of("refs/merge-requests/1/head"), ["+refs/merge-requests/1/head:refs/merge-requests/1/head"]);
    }

    #[test]
    fn every_problem_is_told_at_once_and_no_secret() {
        let wrong = Inputs {
            repo_url: "nope://gitlab-ci-token:secret@x/y".into(),
            sha: "main".into(),
            strategy: "steal".into(),
            depth: 1.5,
            attempts: 11.0,
            submodules: "some".into(),
            object_format: "md5".into(),
            refspecs: vec!["--upload-pack=x".into()],
            directory: "../other".into(),
            ..inputs()
        };
        insta::assert_snapshot!(complaint(wrong).replace("; ", "\n"), @"
        `strategy` is `steal`, expected `fetch`, `clone`, `empty` or `none`
        `attempts` is 11, expected a whole number from 1 to 10
        `directory` is `../other`, expected a path below the work directory
        `repo_url` cannot be fetched from: it has a scheme that is not fetched from
        `object_format` is `md5`, expected `sha1` or `sha256`
        `depth` is 1.5, expected a whole number from 0 to 2147483647
        `sha` is `main`, expected 40 hexadecimal digits
        `submodules` is `some`, expected `none`, `normal` or `recursive`
        `refspecs` holds `--upload-pack=x`, which git would not take for one
        ");
    }

    #[test]
    fn what_fetches_nothing_needs_no_address() {
        for strategy in ["none", "empty"] {
            let settings = Settings::of(Inputs { strategy: strategy.into(), attempts: 1.0, ..Inputs::default() }).unwrap();
            assert_eq!(settings.source, None);
        }
    }

    #[test]
    fn a_token_with_a_line_break_could_say_more_to_git_than_a_token() {
        assert_eq!(complaint(Inputs { token: "a\nhost=evil".into(), ..inputs() }), "the token or the user holds a line break");
    }

    #[test]
    fn the_hash_decides_how_long_a_commit_is() {
        let sha256 = Inputs { sha: SHA.repeat(2)[..64].into(), object_format: "sha256".into(), ..inputs() };
        assert_eq!(source_of(sha256).object_format, ObjectFormat::Sha256);
        assert_eq!(
            complaint(Inputs { object_format: "sha256".into(), ..inputs() }),
            format!("`sha` is `{SHA}`, expected 64 hexadecimal digits")
        );
    }
}
