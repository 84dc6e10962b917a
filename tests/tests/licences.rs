//! What may be compiled: `deny.toml` read and checked. Licences, bans and sources fail; second versions of a crate are only listed.

use cargo_metadata::Package;
use ci_tests::repository;
use std::collections::{BTreeMap, BTreeSet};

struct Rules {
    licences: BTreeSet<String>,
    /// Crate and reason.
    bans: BTreeMap<String, String>,
}

fn rules() -> Rules {
    let table: toml::Table = toml::from_str(&repository::read("deny.toml")).expect("deny.toml is TOML");
    let allowed = table["licenses"]["allow"].as_array().expect("licenses.allow is a list");
    let denied = table["bans"]["deny"].as_array().expect("bans.deny is a list");
    let text = |value: &toml::Value| value.as_str().expect("a text").to_owned();
    Rules {
        licences: allowed.iter().map(text).collect(),
        bans: denied.iter().map(|ban| (text(&ban["crate"]), text(&ban["reason"]))).collect(),
    }
}

/// Everything that is compiled on any system, with what its manifest says. `cargo metadata` alone also follows options that nothing
/// switches on, so what is compiled comes from `cargo tree`.
fn compiled() -> Vec<Package> {
    let tree = repository::cargo_tree(&["--workspace", "--target", "all", "-e", "normal,build,dev", "--format", "{p}"]);
    let named: BTreeSet<(String, String)> = tree
        .iter()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.to_owned(), words.next()?.trim_start_matches('v').to_owned()))
        })
        .collect();
    let packages: Vec<Package> = repository::metadata()
        .packages
        .into_iter()
        .filter(|package| named.contains(&(package.name.to_string(), package.version.to_string())))
        .collect();
    assert_eq!(packages.len(), named.len(), "cargo tree and cargo metadata disagree");
    packages
}

#[test]
fn every_licence_is_allowed() {
    let allowed = rules().licences;
    let refused: Vec<String> = compiled()
        .iter()
        .filter(|package| !package.license.as_deref().is_some_and(|licence| is_allowed(licence, &allowed)))
        .map(|package| format!("{} {}: {:?}", package.name, package.version, package.license))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn nothing_banned_is_compiled() {
    let bans = rules().bans;
    let found: Vec<String> = compiled()
        .iter()
        .filter_map(|package| bans.get(package.name.as_str()).map(|reason| format!("{}: {reason}", package.name)))
        .collect();
    assert!(found.is_empty(), "{found:#?}");
    // These three must not even be somebody's option.
    let lock = repository::read("Cargo.lock");
    for name in ["openssl", "openssl-sys", "native-tls"] {
        assert!(!lock.contains(&format!("name = \"{name}\"\n")), "{name} is in Cargo.lock");
    }
}

#[test]
fn everything_comes_from_the_registry_or_from_here() {
    let strange: Vec<String> = compiled()
        .iter()
        .filter_map(|package| package.source.as_ref().map(|source| (package, source.to_string())))
        .filter(|(_, source)| source != "registry+https://github.com/rust-lang/crates.io-index")
        .map(|(package, source)| format!("{}: {source}", package.name))
        .collect();
    assert!(strange.is_empty(), "{strange:#?}");
}

#[test]
fn second_versions_are_listed() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in compiled() {
        versions.entry(package.name.to_string()).or_default().insert(package.version.to_string());
    }
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        println!("two versions of {name}: {versions:?}");
    }
}

/// Reads an SPDX expression: OR, AND, parentheses, WITH; an old `/` means OR.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest, allowed) && rest.is_empty()
}

fn any_of(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut good = all_of(rest, allowed);
    while let Some(("OR", after)) = rest.split_first().map(|(word, after)| (*word, after)) {
        *rest = after;
        good |= all_of(rest, allowed);
    }
    good
}

fn all_of(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut good = one(rest, allowed);
    while let Some(("AND", after)) = rest.split_first().map(|(word, after)| (*word, after)) {
        *rest = after;
        good &= one(rest, allowed);
    }
    good
}

fn one(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let Some((first, after)) = rest.split_first() else { return false };
    *rest = after;
    if *first == "(" {
        let good = any_of(rest, allowed);
        *rest = rest.strip_prefix(&[")"]).unwrap_or(rest);
        return good;
    }
    if let ["WITH", exception, after @ ..] = *rest {
        *rest = after;
        return allowed.contains(&format!("{first} WITH {exception}")) || allowed.contains(*first);
    }
    allowed.contains(*first)
}

#[test]
fn licence_expressions_are_read_as_spdx_means_them() {
    let allowed = BTreeSet::from(["MIT".to_owned(), "Apache-2.0".to_owned(), "Apache-2.0 WITH LLVM-exception".to_owned()]);
    for good in ["MIT", "GPL-3.0 OR MIT", "MIT/GPL-3.0", "(GPL-3.0 OR MIT) AND Apache-2.0", "Apache-2.0 WITH LLVM-exception"] {
        assert!(is_allowed(good, &allowed), "{good}");
    }
    for bad in ["GPL-3.0", "GPL-3.0 AND MIT", "MIT AND (GPL-3.0 OR AGPL-3.0)", "GPL-2.0 WITH Classpath-exception-2.0", "", "MIT Apache-2.0"]
    {
        assert!(!is_allowed(bad, &allowed), "{bad}");
    }
}
