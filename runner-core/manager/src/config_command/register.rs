//! `register`: a server accepts a runner, and the configuration gets an entry for it.

use super::entry_file::EntryFile;
use super::{WhichFile, questions, server};
use clap::Args;
use runner_config::Severity;
use runner_config::edit::{self, NewRunner, NewToken};
use runner_config::secret::{Secret, short_token};
use runner_config::settings::Tls;
use runner_gitlab::answer::{Account, NoAccount, Verified};
use runner_gitlab::request::{RunnerOptions, RunnerScope};
use runner_gitlab::{Client, Token};
use serde_json::{Value, json};
use std::io::Write as _;
use step_console::complaint::plain;
use step_console::exit::{Complaint, Exit, Stop};
use step_model::time::Timestamp;

#[derive(Debug, Clone, Args)]
#[command(after_help = "Exactly one of these tokens is needed:\n\
--token               of a runner that was created in GitLab (glrt-...): it is verified\n\
--user-token          of a user, with the scope create_runner: the runner is created, see --for\n\
--registration-token  of old: the runner is registered\n\
A token on the command line can be seen by others on this machine; the environment is safer.")]
pub struct RegisterArguments {
    #[command(flatten)]
    which: WhichFile,
    /// Address of the GitLab server.
    #[arg(short, long, env = "CI_SERVER_URL", value_name = "URL")]
    url: Option<String>,
    /// Authentication token of a runner that was created in GitLab.
    #[arg(short, long, env = "CI_SERVER_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Registration token of old.
    #[arg(short, long, env = "REGISTRATION_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    registration_token: Option<String>,
    /// Token of a user who may create runners.
    #[arg(long, env = "GITLAB_USER_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    user_token: Option<String>,
    /// Whose runner a user creates: `instance`, `group:ID`, `project:ID`.
    #[arg(long = "for", value_name = "WHOM", default_value = "instance")]
    whom: String,
    /// How logs and metrics call the runner. [default: the name of this machine]
    #[arg(long, visible_alias = "description", env = "RUNNER_NAME")]
    name: Option<String>,
    /// What jobs run in: shell, docker, instance, ...
    #[arg(long, env = "RUNNER_EXECUTOR")]
    executor: Option<String>,
    /// Image of jobs that name none.
    #[arg(long, env = "DOCKER_IMAGE", value_name = "IMAGE")]
    docker_image: Option<String>,
    /// A key of the entry: `limit=3`, `docker.privileged=true`, `environment=["A=b"]`. Repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    keys: Vec<String>,
    #[arg(long, env = "CI_SERVER_TLS_CA_FILE", value_name = "FILE")]
    tls_ca_file: Option<String>,
    #[arg(long, env = "CI_SERVER_TLS_CERT_FILE", value_name = "FILE")]
    tls_cert_file: Option<String>,
    #[arg(long, env = "CI_SERVER_TLS_KEY_FILE", value_name = "FILE")]
    tls_key_file: Option<String>,
    /// Tags, with commas. Like the next six, for a runner that is made by this command.
    #[arg(long, env = "RUNNER_TAG_LIST", value_name = "TAGS")]
    tag_list: Option<String>,
    /// Takes jobs without tags too. [default: when there is no tag]
    #[arg(long, env = "REGISTER_RUN_UNTAGGED")]
    run_untagged: Option<bool>,
    /// For its project alone.
    #[arg(long, env = "REGISTER_LOCKED")]
    locked: Option<bool>,
    /// `not_protected` or `ref_protected`.
    #[arg(long, env = "REGISTER_ACCESS_LEVEL")]
    access_level: Option<String>,
    /// Limit of its jobs, in seconds.
    #[arg(long, env = "REGISTER_MAXIMUM_TIMEOUT", value_name = "SECONDS")]
    maximum_timeout: Option<u64>,
    /// Takes no jobs yet.
    #[arg(long, env = "REGISTER_PAUSED")]
    paused: Option<bool>,
    /// A note for administrators.
    #[arg(long, env = "REGISTER_MAINTENANCE_NOTE")]
    maintenance_note: Option<String>,
    /// Asks nothing.
    #[arg(short, long, env = "REGISTER_NON_INTERACTIVE")]
    non_interactive: bool,
}

/// # Errors
/// No entry was written; why.
pub fn run(arguments: &RegisterArguments) -> anyhow::Result<Exit> {
    let mut file = EntryFile::read_or_begin(&arguments.which)?;
    if !file.text.is_empty() {
        // An entry is put into a file that is understood.
        file.settings()?;
    }
    let asks = !arguments.non_interactive;
    let url = questions::value(arguments.url.as_deref(), "address of the GitLab server", "url", None, asks)?;
    let means = Means::of(arguments, asks)?;
    let host = host_name();
    let name = questions::value(arguments.name.as_deref(), "name of the runner", "name", Some(&host), asks)?;
    let executor = questions::value(arguments.executor.as_deref(), "executor (shell, docker, instance, ...)", "executor", None, asks)?;
    let more = more_keys(arguments, &executor, asks)?;

    let tls = Tls {
        ca_file: arguments.tls_ca_file.clone(),
        cert_file: arguments.tls_cert_file.clone(),
        key_file: arguments.tls_key_file.clone(),
    };
    let mut new = NewRunner {
        name,
        url,
        id: 0,
        token: NewToken { token: Secret::new("not-yet"), obtained_at: Timestamp::default(), expires_at: None },
        executor,
        more,
    };
    // All that can be wrong is found before the server makes a runner.
    check(&file, &new)?;
    let aside = file.aside()?;
    let client = server::client(&new.url, &new.executor, &tls, &file.directory())?;
    let account = server::wait(means.account(&client, &options(arguments, &new.name)))??;
    new.id = account.id;
    new.token = NewToken { token: Secret::new(account.token.expose()), obtained_at: super::now(), expires_at: account.expires };
    let text = edit::register(&file.text, &new).map_err(|fault| not_changed(&file, &fault))?;
    file.replace(aside, text)?;

    let mut out = anstream::stdout();
    let short = short_token(account.token.expose());
    writeln!(out, "runner `{}` (id {}, token {}) is registered and stands in `{}`", plain(&new.name), new.id, plain(short), file.shown())?;
    Ok(Exit::Done)
}

/// By what right a runner comes to be.
enum Means {
    Created(Token),
    Registration(Token),
    User(Token, RunnerScope),
}

impl Means {
    fn of(arguments: &RegisterArguments, asks: bool) -> Result<Self, Stop> {
        let given = [&arguments.token, &arguments.registration_token, &arguments.user_token];
        let texts: Vec<Option<&str>> = given.iter().map(|text| text.as_deref().map(str::trim).filter(|text| !text.is_empty())).collect();
        let token = match texts[..] {
            [None, None, None] => questions::value(None, "token of the runner (glrt-...)", "token", None, asks)?,
            [Some(token), None, None] | [None, Some(token), None] => token.to_owned(),
            [None, None, Some(user)] => return Ok(Self::User(Token::new(user), scope(&arguments.whom)?)),
            _ => {
                return Err(Stop::usage("more than one kind of token is given")
                    .with_hint("give one of --token, --registration-token, --user-token"));
            }
        };
        let token = Token::new(token);
        if !token.is_of_created_runner() {
            return Ok(Self::Registration(token));
        }
        if has_options(arguments) {
            return Err(Stop::usage("tags, locks and the like of a runner that was created in GitLab stand there already").with_hint(
                "leave out --tag-list, --run-untagged, --locked, --access-level, --maximum-timeout, --paused and --maintenance-note",
            ));
        }
        Ok(Self::Created(token))
    }

    async fn account(&self, client: &Client, options: &RunnerOptions) -> Result<Account, Stop> {
        let server = client.settings().url.to_string();
        let no = |why: &NoAccount| {
            let stop = Stop::bad_input(format!("{server} did not accept the runner: {why}"));
            match why {
                NoAccount::NoRegistrationTokens { .. } => {
                    stop.with_hint("create the runner in GitLab, or give a user's token by --user-token")
                }
                _ => stop,
            }
        };
        match self {
            Self::Registration(token) => client.register(token, options).await.map_err(|why| no(&why)),
            Self::User(token, scope) => client.create(token, scope, options).await.map_err(|why| no(&why)),
            Self::Created(token) => match client.verify(token).await {
                Verified::Good(Some(account)) => Ok(account),
                Verified::Good(None) => Ok(Account { id: 0, token: token.clone(), expires: None }),
                Verified::Bad => Err(Stop::bad_input(format!("{server} does not know this token"))
                    .with_hint("was it copied as a whole, and is it for this server?")),
                Verified::Unknown { why } => Err(Stop::bad_input(format!("{server} could not be asked about the token: {why}"))),
            },
        }
    }
}

fn scope(whom: &str) -> Result<RunnerScope, Stop> {
    let number = |text: &str| text.parse::<u64>().ok();
    let found = match whom.split_once(':') {
        None if whom == "instance" => Some(RunnerScope::Instance),
        Some(("group", id)) => number(id).map(|group_id| RunnerScope::Group { group_id }),
        Some(("project", id)) => number(id).map(|project_id| RunnerScope::Project { project_id }),
        _ => None,
    };
    found.ok_or_else(|| {
        Stop::usage(format!("`--for {}` names nobody", plain(whom))).with_hint("write `instance`, `group:ID` or `project:ID`")
    })
}

fn has_options(arguments: &RegisterArguments) -> bool {
    let texts = [&arguments.tag_list, &arguments.access_level, &arguments.maintenance_note];
    let flags = [arguments.run_untagged, arguments.locked, arguments.paused];
    texts.iter().any(|text| text.is_some()) || flags.iter().any(Option::is_some) || arguments.maximum_timeout.is_some()
}

fn options(arguments: &RegisterArguments, name: &str) -> RunnerOptions {
    let tag_list = arguments.tag_list.clone().unwrap_or_default();
    RunnerOptions {
        description: name.to_owned(),
        maintenance_note: arguments.maintenance_note.clone().unwrap_or_default(),
        run_untagged: arguments.run_untagged.unwrap_or(tag_list.is_empty()),
        tag_list,
        locked: arguments.locked.unwrap_or(true),
        access_level: arguments.access_level.clone().unwrap_or_default(),
        maximum_timeout: arguments.maximum_timeout,
        paused: arguments.paused.unwrap_or(false),
    }
}

/// Keys of the entry beyond those that every runner has; `docker.image` becomes `image` of a table `docker`.
fn more_keys(arguments: &RegisterArguments, executor: &str, asks: bool) -> Result<Vec<(String, Value)>, Stop> {
    let mut all: Vec<(String, Value)> = Vec::new();
    let tls =
        [("tls-ca-file", &arguments.tls_ca_file), ("tls-cert-file", &arguments.tls_cert_file), ("tls-key-file", &arguments.tls_key_file)];
    all.extend(tls.iter().filter_map(|(key, file)| Some(((*key).to_owned(), json!(file.as_ref()?)))));
    if executor.starts_with("docker") {
        let image = questions::value(
            arguments.docker_image.as_deref(),
            "image of jobs that name none",
            "docker-image",
            Some("alpine:latest"),
            asks,
        )?;
        put(&mut all, "docker.image", json!(image));
    }
    for given in &arguments.keys {
        let Some((key, value)) = given.split_once('=') else {
            return Err(Stop::usage(format!("`--set {}` has no `=`", plain(given))).with_hint("write `--set limit=3`"));
        };
        // What is no JSON is a text: `builds_dir=/b`.
        put(&mut all, key.trim(), serde_json::from_str(value).unwrap_or_else(|_| json!(value)));
    }
    Ok(all)
}

fn put(all: &mut Vec<(String, Value)>, key: &str, value: Value) {
    let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let Some(rest) = rest else {
        all.push((key.to_owned(), value));
        return;
    };
    if !all.iter().any(|(known, _)| known == first) {
        all.push((first.to_owned(), json!({})));
    }
    if let Some((_, Value::Object(table))) = all.iter_mut().find(|(known, _)| known == first) {
        table.insert(rest.to_owned(), value);
    }
}

/// What would be wrong with the entry, or unknown in it.
fn check(file: &EntryFile, new: &NewRunner) -> Result<(), Stop> {
    let text = edit::register(&file.text, new).map_err(|fault| match &fault {
        // The rest of the entry is written here, so it is what was given with `--set`.
        edit::EditFault::BadEntry(reason) => Stop::usage(format!("the runner would not work: {}", plain(reason)))
            .with_hint("look at the keys of `--set`: one that stands there already, or that holds a value, takes no keys below it"),
        _ => not_changed(file, &fault),
    })?;
    let parsed = runner_config::parse(&text, &file.variables);
    let index = parsed.settings.as_ref().map_or(0, |settings| settings.entries().len().saturating_sub(1));
    let wrong = parsed.problems.iter().filter(|problem| problem.entry == Some(index) && problem.severity >= Severity::Warning);
    let complaints: Vec<Complaint> = wrong
        .map(|problem| {
            let complaint = Complaint::new(format!("the runner would not work: {}", problem.message));
            problem.hint.iter().fold(complaint, |complaint, hint| complaint.with_hint(hint))
        })
        .collect();
    if complaints.is_empty() { Ok(()) } else { Err(Stop::all(Exit::Usage, complaints)) }
}

pub(super) fn not_changed(file: &EntryFile, fault: &edit::EditFault) -> Stop {
    Stop::bad_input(format!("could not change `{}`: {fault}", file.shown()))
}

/// The name of this machine.
fn host_name() -> String {
    let by_file = ["/proc/sys/kernel/hostname", "/etc/hostname"].iter().find_map(|path| std::fs::read_to_string(path).ok());
    let name = by_file.or_else(|| std::env::var("COMPUTERNAME").ok()).unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "runner".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_a_dot_become_tables() {
        let mut all = Vec::new();
        for (key, value) in
            [("docker.image", json!("a")), ("limit", json!(3)), ("docker.privileged", json!(true)), ("cache.s3.BucketName", json!("b"))]
        {
            put(&mut all, key, value);
        }
        assert_eq!(
            all,
            [
                ("docker".to_owned(), json!({"image": "a", "privileged": true})),
                ("limit".to_owned(), json!(3)),
                ("cache".to_owned(), json!({"s3.BucketName": "b"})),
            ]
        );
    }

    #[test]
    fn a_scope_names_an_instance_a_group_or_a_project() {
        assert_eq!(scope("group:7").expect("a scope"), RunnerScope::Group { group_id: 7 });
        assert!(["", "group", "group:x", "user:1"].iter().all(|whom| scope(whom).is_err()));
    }
}
