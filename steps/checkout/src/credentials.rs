//! How git learns who we are: settings for one call each, and values in its environment. Nothing secret is an argument, a file of the repository or a line
//! of a log.

use crate::remote::Transport;
use crate::settings::Source;
use std::path::{Path, PathBuf};

/// The variables that the helper below reads.
pub const USERNAME: &str = "STEP_CHECKOUT_USERNAME";
pub const PASSWORD: &str = "STEP_CHECKOUT_PASSWORD";

/// Git runs it by its own shell and asks it to `get`; what it is asked to keep, it does not.
const HELPER: &str = "!f() { if test \"$1\" = get; then printf 'username=%s\\npassword=%s\\n' \"$STEP_CHECKOUT_USERNAME\" \"$STEP_CHECKOUT_PASSWORD\"; fi; }; f";

/// Settings of git for a source, as `-c` has them. They hold for submodules too.
pub fn configuration(source: &Source) -> Vec<(String, String)> {
    let mut settings: Vec<(String, String)> = [
        // Hooks and settings of the machine are for people: a job's files are the same everywhere.
        ("core.hooksPath", if cfg!(windows) { "NUL" } else { "/dev/null" }),
        ("init.defaultBranch", "none"),
        ("fetch.recurseSubmodules", "false"),
        ("advice.detachedHead", "false"),
        // A collection in the background would outlive the step.
        ("gc.autoDetach", "false"),
        ("maintenance.autoDetach", "false"),
        ("credential.interactive", "never"),
        // The directory is the job's, whoever of this machine's users made it.
        ("safe.directory", "*"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    if let Some(agent) = &source.user_agent {
        settings.push(("http.userAgent".to_owned(), agent.clone()));
    }
    let Transport::Http { origin } = &source.remote.transport else { return settings };
    if source.login.is_some() {
        // An empty one first: helpers of the machine have nothing to say here, and must not store a job's token.
        settings.push((format!("credential.{origin}.helper"), String::new()));
        settings.push((format!("credential.{origin}.helper"), HELPER.to_owned()));
    }
    if let Some(file) = &source.tls_ca_file {
        settings.push((format!("http.{origin}.sslCAInfo"), file.display().to_string()));
    }
    if source.submodules.as_ref().is_some_and(|submodules| submodules.force_https)
        && let Some(host) = host_of(origin)
    {
        let key = format!("url.{origin}/.insteadOf");
        settings.push((key.clone(), format!("git@{host}:")));
        settings.push((key, format!("ssh://git@{host}/")));
    }
    settings
}

fn host_of(origin: &str) -> Option<&str> {
    let authority = origin.split_once("://")?.1;
    let end = authority.rfind(':').filter(|colon| authority[*colon + 1..].bytes().all(|byte| byte.is_ascii_digit()));
    Some(&authority[..end.unwrap_or(authority.len())])
}

/// What only the environment of git holds.
pub fn environment(source: &Source, ssh: Option<&SshFiles>) -> Vec<(&'static str, String)> {
    let mut variables = Vec::new();
    if let Some(login) = &source.login {
        variables.push((USERNAME, login.username.clone()));
        variables.push((PASSWORD, login.password.clone()));
    }
    if !source.lfs || source.checkout {
        // All large files are fetched at once after the checkout, and not one by one during it.
        variables.push(("GIT_LFS_SKIP_SMUDGE", "1".to_owned()));
    }
    if let Some(ssh) = ssh {
        variables.push(("GIT_SSH_COMMAND", ssh.command()));
    }
    variables
}

/// Where the key and the known hosts of a source were written; both below a directory that nobody else reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SshFiles {
    pub key: Option<PathBuf>,
    pub known_hosts: Option<PathBuf>,
}

impl SshFiles {
    /// Git hands it to a shell.
    fn command(&self) -> String {
        let mut words = vec!["ssh".to_owned(), "-o BatchMode=yes".to_owned()];
        if let Some(key) = &self.key {
            words.push(format!("-i {} -o IdentitiesOnly=yes", quoted(key)));
        }
        if let Some(known_hosts) = &self.known_hosts {
            words.push(format!("-o UserKnownHostsFile={} -o StrictHostKeyChecking=yes", quoted(known_hosts)));
        }
        words.join(" ")
    }
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::Inputs;
    use crate::settings::tests::{inputs, source_of};

    /// Those that depend on the source.
    fn of(inputs: Inputs) -> String {
        let settings = configuration(&source_of(inputs));
        let own = settings.iter().skip(8).map(|(key, value)| format!("{key} = {value}"));
        own.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_token_is_given_to_its_own_server_alone_and_stands_nowhere() {
        insta::assert_snapshot!(of(inputs()), @r#"
        credential.https://git.example.helper = 
        credential.https://git.example.helper = !f() { if test "$1" = get; then printf 'username=%s\npassword=%s\n' "$STEP_CHECKOUT_USERNAME" "$STEP_CHECKOUT_PASSWORD"; fi; }; f
        "#);
        assert!(!format!("{:?}", configuration(&source_of(inputs()))).contains("secret"));
        let environment = environment(&source_of(inputs()), None);
        assert_eq!(environment[..2], [(USERNAME, "gitlab-ci-token".to_owned()), (PASSWORD, "secret".to_owned())]);
    }

    #[test]
    fn without_a_token_the_helpers_of_the_machine_are_asked() {
        assert_eq!(of(Inputs { repo_url: "https://git.example/a.git".into(), ..inputs() }), "");
    }

    #[test]
    fn own_certificates_an_agent_and_submodules_by_https_are_settings() {
        let wanted = Inputs {
            repo_url: "https://git.example:8443/a.git".into(),
            tls_ca_file: "/ca.pem".into(),
            user_agent: "runner 1.0".into(),
            submodules: "normal".into(),
            submodule_force_https: true,
            ..inputs()
        };
        insta::assert_snapshot!(of(wanted), @"
        http.userAgent = runner 1.0
        http.https://git.example:8443.sslCAInfo = /ca.pem
        url.https://git.example:8443/.insteadOf = git@git.example:
        url.https://git.example:8443/.insteadOf = ssh://git@git.example/
        ");
    }

    #[test]
    fn a_key_and_known_hosts_are_files_that_ssh_is_told_of() {
        let files = SshFiles { key: Some("/tmp/it's/key".into()), known_hosts: Some("/tmp/hosts".into()) };
        insta::assert_snapshot!(files.command(), @r"ssh -o BatchMode=yes -i '/tmp/it'\''s/key' -o IdentitiesOnly=yes -o UserKnownHostsFile='/tmp/hosts' -o StrictHostKeyChecking=yes");
    }
}
