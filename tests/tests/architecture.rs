//! Who may know whom. The table of `docs/ARCHITECTURE.md` as a test: everything may know the nouns, nobody who decides knows anybody who acts.

use cargo_metadata::{DependencyKind, Metadata, Package};
use ci_tests::repository;
use std::collections::{BTreeMap, BTreeSet};

/// Each crate, its directory, and what it may depend on inside the workspace.
const ARROWS: [(&str, &str, &[&str]); 24] = [
    // wire
    ("ci-proto", "proto", &[]),
    // nouns
    ("step-model", "step-runner/model", &[]),
    // decide
    ("step-payload", "step-runner/payload", &["step-model"]),
    ("step-engine", "step-runner/engine", &["step-model"]),
    ("runner-control", "runner-core/control", &["step-model"]),
    ("runner-config", "runner-core/config", &["step-model", "runner-control"]),
    // plugs
    ("step-client", "step-runner/client", &["ci-proto", "step-model"]),
    ("runner-fleeting", "runner-core/fleeting", &["ci-proto"]),
    // act
    ("step-agent", "step-runner/agent", &["step-engine", "step-client", "ci-proto", "step-model"]),
    ("step-console", "step-runner/console", &["step-model", "step-payload"]),
    ("step-testing", "step-runner/testing", &["step-agent", "step-engine", "step-model"]),
    ("runner-gitlab", "runner-core/gitlab", &["step-model", "runner-mock-gitlab"]),
    ("runner-mock-gitlab", "runner-core/mock-gitlab", &["ci-proto"]),
    // guests
    ("step-sdk", "steps/sdk", &["ci-proto", "step-client"]),
    ("step-docker", "steps/docker", &["step-sdk"]),
    ("step-service", "steps/service", &["step-docker", "step-sdk"]),
    ("step-archive", "steps/archive", &[]),
    ("step-checkout", "steps/checkout", &["step-sdk"]),
    ("step-cache", "steps/cache", &["step-archive", "step-sdk"]),
    ("step-artifact", "steps/artifact", &["step-archive", "step-sdk"]),
    ("fleeting-plugin-local", "runner-core/plugins/local", &["runner-fleeting"]),
    // compose
    (
        "step-runner",
        "step-runner/cli",
        &[
            "step-agent",
            "step-client",
            "step-console",
            "step-engine",
            "step-payload",
            "step-model",
            "step-testing",
            "step-docker",
            "step-service",
            "step-checkout",
            "step-cache",
            "step-artifact",
        ],
    ),
    (
        "runner-manager",
        "runner-core/manager",
        &[
            "ci-proto",
            "step-model",
            "step-payload",
            "step-client",
            "step-console",
            "runner-control",
            "runner-config",
            "runner-fleeting",
            "runner-gitlab",
            "runner-mock-gitlab",
            "fleeting-plugin-local",
        ],
    ),
    // watch
    (
        "ci-tests",
        "tests",
        &[
            "ci-proto",
            "step-model",
            "step-payload",
            "step-engine",
            "step-client",
            "step-agent",
            "runner-control",
            "runner-config",
            "runner-fleeting",
            "runner-gitlab",
            "runner-mock-gitlab",
        ],
    ),
];

/// The crates that decide and the nouns: no runtime, no world.
const PURE: [&str; 5] = ["step-model", "step-payload", "step-engine", "runner-control", "runner-config"];

const PURE_DIRECTORIES: [&str; 5] =
    ["step-runner/model", "step-runner/payload", "step-runner/engine", "runner-core/control", "runner-core/config"];

/// What has no place in a pure crate, however deep: runtimes, files, sockets, processes, dice, clocks that log.
const NOT_IN_PURE: [&str; 25] = [
    "tokio",
    "tokio-util",
    "async-std",
    "smol",
    "mio",
    "socket2",
    "hyper",
    "tonic",
    "reqwest",
    "rustls",
    "rusqlite",
    "tempfile",
    "rustix",
    "nix",
    "cap-std",
    "notify",
    "tracing-subscriber",
    "clap",
    "anstream",
    "rand",
    "fastrand",
    "getrandom",
    "uuid",
    "procfs",
    "sysinfo",
];

/// What opens a network connection. The library of the agent talks over the byte stream that it is given.
const NOT_IN_AGENT: [&str; 10] = [
    "reqwest",
    "gix",
    "oci-client",
    "sigstore-verify",
    "rustls",
    "native-tls",
    "openssl",
    "opentelemetry_sdk",
    "bollard",
    "hickory-resolver",
];

#[test]
fn the_workspace_has_exactly_the_crates_of_the_picture() {
    let metadata = repository::metadata();
    let found: BTreeMap<&str, String> =
        metadata.workspace_packages().iter().map(|package| (package.name.as_str(), directory(&metadata, package))).collect();
    let expected: BTreeMap<&str, String> = ARROWS.iter().map(|(name, directory, _)| (*name, (*directory).to_owned())).collect();
    assert_eq!(found, expected, "add the crate to ARROWS and to docs/ARCHITECTURE.md");
}

#[test]
fn crates_know_only_whom_the_arrows_allow() {
    let metadata = repository::metadata();
    let members: BTreeSet<&str> = metadata.workspace_packages().iter().map(|package| package.name.as_str()).collect();
    let mut wrong = Vec::new();
    for (name, _, allowed) in ARROWS {
        let package = member(&metadata, name);
        for dependency in &package.dependencies {
            // Also dev and build dependencies: what a test needs is no exception.
            let known = dependency.name.as_str();
            if members.contains(known) && known != name && !allowed.contains(&known) {
                wrong.push(format!("{name} knows {known} ({:?})", dependency.kind));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn pure_crates_have_no_runtime_and_no_world() {
    for name in PURE {
        refuse(name, &NOT_IN_PURE);
    }
}

#[test]
fn the_agent_opens_no_network_connection() {
    refuse("step-agent", &NOT_IN_AGENT);
    let doors = ["TcpStream", "TcpListener", "UdpSocket", "ToSocketAddrs", "lookup_host"];
    let named: Vec<String> = repository::rust_files()
        .iter()
        .filter(|file| file.path.starts_with("step-runner/agent/src"))
        .flat_map(|file| {
            doors.iter().filter(|door| file.text.contains(**door)).map(|door| format!("{}: {door}", file.path)).collect::<Vec<_>>()
        })
        .collect();
    assert!(named.is_empty(), "{named:#?}");
}

/// What only people, networks and C compilers need. Ends with a `-` where a whole family is meant.
const NOT_IN_STEP_AGENT: [&str; 17] = [
    "clap",
    "annotate-snippets",
    "anstream",
    "step-payload",
    "step-docker",
    "step-service",
    "bollard",
    "rustls",
    "native-tls",
    "openssl-",
    "ring",
    "aws-lc-",
    "reqwest",
    "opentelemetry",
    "opentelemetry-",
    "zstd-sys",
    "libsqlite3-sys",
];

#[test]
fn the_program_for_containers_is_built_without_tls_without_c_and_without_a_command_line_library() {
    let tree =
        repository::cargo_tree(&["-p", "step-runner", "--no-default-features", "-e", "normal", "--target", "all", "--format", "{p}"]);
    let compiled: BTreeSet<&str> = tree.iter().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(compiled.contains("step-agent"), "cargo tree says nothing about step-agent");
    let unwanted = |name: &str| NOT_IN_STEP_AGENT.iter().any(|no| name == *no || (no.ends_with('-') && name.starts_with(no)));
    let found: Vec<&&str> = compiled.iter().filter(|name| unwanted(name)).collect();
    assert!(found.is_empty(), "step-agent is compiled with {found:?}: make it optional in step-runner/cli/Cargo.toml");
    // Crates that run a C compiler name `cc` as their build dependency.
    let tree = repository::cargo_tree(&[
        "-p",
        "step-runner",
        "--no-default-features",
        "-e",
        "normal,build",
        "--target",
        "x86_64-unknown-linux-gnu",
        "--format",
        "{p}",
    ]);
    assert!(
        !tree.iter().any(|line| line.starts_with("cc v")),
        "step-agent is compiled with C: `cargo tree -p step-runner --no-default-features -e normal,build -i cc`"
    );
}

#[test]
fn pure_crates_ban_clocks_files_environment_and_threads() {
    let lists: Vec<String> = PURE_DIRECTORIES.iter().map(|directory| repository::read(&format!("{directory}/clippy.toml"))).collect();
    assert!(lists.iter().all(|list| *list == lists[0]), "the clippy.toml of the pure crates must be the same");
    let bans: toml::Table = toml::from_str(&lists[0]).expect("clippy.toml is TOML");
    for (list, banned) in [
        ("disallowed-methods", "std::time::Instant::now"),
        ("disallowed-methods", "std::env::var"),
        ("disallowed-methods", "std::fs::read"),
        ("disallowed-methods", "std::thread::spawn"),
        ("disallowed-types", "std::fs::File"),
    ] {
        let entries = bans[list].as_array().expect("a list");
        let entry = entries.iter().find(|entry| entry["path"].as_str() == Some(banned)).unwrap_or_else(|| panic!("{banned} is not banned"));
        assert!(entry["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{banned} is banned without a reason");
    }
    // clippy looks towards the parents, so a crate inside a pure one would inherit its bans, and one above would loosen them.
    assert!(!repository::root().join("clippy.toml").exists() && !repository::root().join("step-runner/clippy.toml").exists());
}

#[test]
fn every_crate_takes_its_versions_and_lints_from_the_workspace() {
    for (name, directory, _) in ARROWS {
        let manifest: toml::Table = toml::from_str(&repository::read(&format!("{directory}/Cargo.toml"))).expect("a manifest is TOML");
        assert_eq!(manifest["lints"]["workspace"].as_bool(), Some(true), "{name}: [lints] workspace = true");
        for table in dependency_tables(&manifest) {
            for (dependency, value) in table {
                assert!(
                    value.get("workspace").and_then(toml::Value::as_bool) == Some(true),
                    "{name}: {dependency} must take its version from the workspace"
                );
            }
        }
    }
}

fn dependency_tables(manifest: &toml::Table) -> Vec<&toml::Table> {
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let mut tables: Vec<&toml::Table> = kinds.iter().filter_map(|kind| manifest.get(*kind)?.as_table()).collect();
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        tables.extend(
            targets
                .values()
                .filter_map(toml::Value::as_table)
                .flat_map(|target| kinds.iter().filter_map(|kind| target.get(*kind)?.as_table())),
        );
    }
    tables
}

/// Fails when a crate has one of `unwanted` among what it is compiled with, on any system.
fn refuse(name: &str, unwanted: &[&str]) {
    let tree = repository::cargo_tree(&["-p", name, "-e", "normal", "--target", "all", "--format", "{p}"]);
    let compiled: BTreeSet<&str> = tree.iter().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(compiled.contains(name), "cargo tree says nothing about {name}");
    let found: Vec<&&str> = unwanted.iter().filter(|unwanted| compiled.contains(**unwanted)).collect();
    assert!(found.is_empty(), "{name} is compiled with {found:?}; see `cargo tree -p {name} -e normal --target all -i {}`", found[0]);
}

fn member<'a>(metadata: &'a Metadata, name: &str) -> &'a Package {
    metadata.workspace_packages().into_iter().find(|package| package.name == name).unwrap_or_else(|| panic!("no crate {name}"))
}

fn directory(metadata: &Metadata, package: &Package) -> String {
    let directory = package.manifest_path.parent().expect("a manifest lies in a directory");
    directory.strip_prefix(&metadata.workspace_root).expect("inside the workspace").to_string()
}

#[test]
fn dependencies_without_a_version_are_only_our_own() {
    for package in repository::metadata().workspace_packages() {
        for dependency in package.dependencies.iter().filter(|dependency| dependency.kind != DependencyKind::Unknown) {
            assert!(dependency.req.to_string() != "*", "{} takes any version of {}", package.name, dependency.name);
        }
    }
}
