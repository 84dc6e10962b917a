//! Checkouts from real servers: git over HTTP with a password, and over SSH.

use ci_tests::kit::Component;
use ci_tests::workshop::{Ends, Workshop};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};

/// The password of `kit` at the private repositories of the component.
const TOKEN: &str = "kit";

fn git(dir: &Path, words: &[&str]) -> String {
    let author =
        ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"];
    let output = Command::new("git").args(author).args(words).current_dir(dir).stdin(Stdio::null()).output().expect("git is installed");
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Makes `NAME.git` with one commit below `root`, and returns the commit.
fn publish(workshop: &Workshop, root: &Path, name: &str, submodules: &[(&str, &str)]) -> String {
    let work = workshop.path(&format!("work-{name}"));
    std::fs::create_dir_all(&work).expect("a directory can be made");
    git(&work, &["init", "--quiet", "."]);
    std::fs::write(work.join("hello.txt"), format!("hello from {name}\n")).expect("a file can be written");
    for (path, url) in submodules {
        // The work tree is never there: only the commit and the address are recorded.
        let (url, file) = url.split_once(' ').expect("an address, and where it lies");
        git(&work, &["submodule", "--quiet", "add", file, path]);
        git(&work, &["config", "-f", ".gitmodules", &format!("submodule.{path}.url"), url]);
    }
    git(&work, &["add", "."]);
    git(&work, &["commit", "--quiet", "-m", "first"]);
    let bare = root.join(format!("{name}.git"));
    git(&work, &["clone", "--quiet", "--bare", ".", &bare.to_string_lossy()]);
    git(&work, &["rev-parse", "HEAD"])
}

fn payload(url: &str, sha: &str, variables: &[(&str, &str)]) -> String {
    let mut all = vec![json!({"key": "CI_JOB_TOKEN", "value": "[MASKED CI_JOB_TOKEN]", "masked": true})];
    all.extend(variables.iter().map(|(key, value)| json!({"key": key, "value": value})));
    let payload: Value = json!({
        "id": 7, "token": "ended", "job_info": {"name": "build", "stage": "test"}, "allow_git_fetch": true,
        "git_info": {"repo_url": url, "ref": "main", "sha": sha, "refspecs": ["+refs/heads/main:refs/remotes/origin/main"], "depth": 20},
        "runner_info": {"timeout": 60},
        "variables": all,
        "steps": [{"name": "script", "script": ["cat hello.txt", "cat lib/hello.txt 2>/dev/null || true", "pwd"], "timeout": 60, "when": "on_success"}],
    });
    payload.to_string()
}

/// Where a saved payload would be fetched from: with the token of a job that has ended.
fn private_url(component: &Component, name: &str) -> String {
    let url = component.get("GIT_PRIVATE_URL").replace("kit:kit@", "gitlab-ci-token:ended@");
    format!("{url}/{name}.git")
}

/// Nobody is called `gitlab-ci-token` at the component, so the user is given.
fn definition(url: &str, sha: &str, more: &str) -> String {
    format!(
        "spec:\n  inputs:\n    token: {{type: string, sensitive: true}}\n---\nrun:\n  - name: sources\n    func: builtin://checkout\n    inputs:\n      repo_url: \"{url}\"\n      \
         username: kit\n      token: ${{{{ inputs.token }}}}\n      sha: {sha}\n      ref: main\n      directory: tree\n{more}  - name: show\n    script: cat tree/hello.txt; cat tree/lib/hello.txt 2>/dev/null || true\n"
    )
}

fn run(workshop: &Workshop, definition: &str, token: &str) -> ci_tests::program::Invocation {
    workshop.file("job/func.yml", definition);
    workshop.step_runner(&["run", "./job", "--input", &format!("token={token}")])
}

#[test]
fn a_token_opens_a_private_repository_and_is_in_no_log_argument_or_file() {
    let Some(server) = Component::start("git-http") else { return };
    let workshop = Workshop::new();
    let sha = publish(&workshop, Path::new(server.get("GIT_ROOT")), "app", &[]);
    let url = format!("{}/app.git", server.get("GIT_PRIVATE_URL").replace("kit:kit@", ""));
    let token = "kit";
    let ended = run(&workshop, &definition(&url, &sha, ""), token).ends(0);
    assert_eq!(ended.stdout().lines().last(), Some("hello from app"), "{}", ended.stderr());
    let config = workshop.read("tree/.git/config");
    assert!(config.contains(&url) && !config.contains("kit:"), "{config}");
}

#[test]
fn a_wrong_token_is_refused_with_the_way_out() {
    let Some(server) = Component::start("git-http") else { return };
    let workshop = Workshop::new();
    let sha = publish(&workshop, Path::new(server.get("GIT_ROOT")), "app", &[]);
    let url = format!("{}/app.git", server.get("GIT_PRIVATE_URL").replace("kit:kit@", ""));
    let ended = run(&workshop, &definition(&url, &sha, ""), "wrong-and-secret").ends(1);
    let said = format!("{}{}", ended.stdout(), ended.stderr());
    assert!(said.contains("`git fetch` has failed") && said.contains("a refused token"), "{said}");
    assert!(!said.contains("wrong-and-secret"), "{said}");
}

#[test]
fn submodules_of_the_same_server_are_fetched_with_the_same_token() {
    let Some(server) = Component::start("git-http") else { return };
    let workshop = Workshop::new();
    let root = Path::new(server.get("GIT_ROOT"));
    publish(&workshop, root, "lib", &[]);
    let lib = format!("../lib.git {}", root.join("lib.git").display());
    let sha = publish(&workshop, root, "app", &[("lib", &lib)]);
    let url = format!("{}/app.git", server.get("GIT_PRIVATE_URL").replace("kit:kit@", ""));
    let recursive = definition(&url, &sha, "      submodules: recursive\n      submodule_depth: 1\n");
    let twice = [TOKEN, TOKEN].map(|token| run(&workshop, &recursive, token).ends(0));
    for ended in twice {
        assert!(ended.stdout().ends_with("hello from app\nhello from lib\n"), "{}{}", ended.stdout(), ended.stderr());
    }
    run(&workshop, &definition(&url, &sha, ""), TOKEN).ends(0);
    assert!(!workshop.path("tree/lib/hello.txt").exists(), "submodules that are no longer wanted are emptied");
}

#[test]
fn a_payload_is_checked_out_into_a_directory_of_its_own() {
    let Some(server) = Component::start("git-http") else { return };
    let workshop = Workshop::new();
    let sha = publish(&workshop, Path::new(server.get("GIT_ROOT")), "app", &[]);
    workshop.file("mine.txt", "not to be touched");
    workshop
        .file("job.json", payload(&format!("{}/app.git", server.get("GIT_URL").replace("://", "://gitlab-ci-token:ended@")), &sha, &[]));
    workshop.file("secrets", "CI_JOB_TOKEN=ended\n");
    let run = || workshop.step_runner(&["run", "job.json", "--secrets", "secrets", "--checkout"]).ends(0);
    for ended in [run(), run()] {
        let printed = ended.stdout();
        assert!(
            printed.contains("hello from app\n") && printed.trim_end().ends_with(".step-runner/checkout"),
            "{printed}{}",
            ended.stderr()
        );
        assert!(!ended.stderr().contains("not checked out"), "{}", ended.stderr());
    }
    assert_eq!(workshop.read("mine.txt"), "not to be touched");
    assert_eq!(workshop.read(".step-runner/.gitignore"), "*\n");
}

#[test]
fn without_the_flag_the_work_tree_stands_in() {
    let Some(server) = Component::start("git-http") else { return };
    let workshop = Workshop::new();
    workshop.file("hello.txt", "hello from here\n");
    workshop.file("job.json", payload(&private_url(&server, "app"), &"0".repeat(40), &[]));
    workshop.file("secrets", "CI_JOB_TOKEN=x\n");
    let ended = workshop.step_runner(&["run", "job.json", "--secrets", "secrets"]).ends(0);
    assert!(ended.stdout().contains("hello from here\n") && ended.stderr().contains("is not checked out"), "{}", ended.stderr());
    assert!(!workshop.path(".step-runner").exists());
}

#[test]
fn a_key_and_known_hosts_open_a_repository_behind_ssh() {
    let Some(farm) = Component::start("sshd-farm") else { return };
    let workshop = Workshop::new();
    let root = workshop.path("repositories");
    std::fs::create_dir_all(&root).expect("a directory can be made");
    let sha = publish(&workshop, &root, "app", &[]);
    let host = farm.get("SSH_HOSTS").trim_matches('\'').split(' ').next().expect("a host").to_owned();
    let key = std::fs::read_to_string(farm.get("SSH_KEY")).expect("the key of the farm");
    let known = format!("{host} {}", farm.get("SSH_HOST_KEY").trim_matches('\''));
    let url = format!("ssh://{}@{host}{}", farm.get("SSH_USER"), root.join("app.git").display());
    let inputs =
        json!({"repo_url": url, "sha": sha, "ref": "main", "directory": "tree", "ssh_key": key, "ssh_known_hosts": known, "depth": 1});
    let step = json!([{"name": "sources", "func": "builtin://checkout", "inputs": inputs}]);
    workshop.file("job/func.yml", format!("{{}}\n---\n{}", json!({"run": step})));
    let ended = workshop.step_runner(&["run", "./job"]).ends(0);
    assert_eq!(workshop.read("tree/hello.txt"), "hello from app\n", "{}", ended.stderr());
    assert_eq!(workshop.left_behind(), [""; 0]);
    let stranger = json!([{"name": "sources", "func": "builtin://checkout", "inputs": {
        "repo_url": url, "sha": sha, "directory": "other", "ssh_key": key, "ssh_known_hosts": format!("{host} ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
    }}]);
    workshop.file("job/func.yml", format!("{{}}\n---\n{}", json!({"run": stranger})));
    workshop.step_runner(&["run", "./job"]).ends(1);
}
