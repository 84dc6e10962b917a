//! `include`: which files belong to a configuration.

use super::assemble::Fault;
use super::tree::{At, Tree};
use std::sync::Arc;

/// Local files that are included and have not been given yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// A path relative to the root of the repository, with `/`; or a pattern: `*` stands for any letters but `/`, `**` for any directories.
    pub pattern: Arc<str>,
    pub(super) at: At,
}

/// A local include that has a place in the order of its file.
#[derive(Debug)]
pub(super) struct Include {
    pub pattern: Arc<str>,
    pub at: At,
}

/// What a file includes.
#[derive(Debug, Default)]
pub(super) struct Includes {
    pub includes: Vec<Include>,
    pub needs: Vec<Need>,
    pub not_fetched: Vec<String>,
    /// Local ones with `rules`.
    pub unconditional: Vec<String>,
    pub faults: Vec<Fault>,
}

impl Need {
    /// Whether it stands for any number of files.
    pub fn is_pattern(&self) -> bool {
        self.pattern.contains('*')
    }

    /// Whether a file of the repository is meant; `path` is relative to its root, with `/`. As in GitLab, `*` does not stand for a leading dot.
    pub fn matches(&self, path: &str) -> bool {
        // `**.yml` is any file of that ending below: the same as `**/*.yml`.
        let whole = self.pattern.replace("**.", "**/*.");
        let pattern: Vec<&str> = whole.split('/').collect();
        let path: Vec<&str> = path.split('/').collect();
        parts_match(&pattern, &path)
    }
}

impl Includes {
    pub fn of(root: &Tree) -> Self {
        let mut read = Self::default();
        for item in root.get("include").map(Tree::one_or_several).unwrap_or_default() {
            read.item(item);
        }
        read
    }

    fn item(&mut self, item: &Tree) {
        if let Some(location) = item.as_text() {
            if location.starts_with("https://") || location.starts_with("http://") {
                self.not_fetched.push(format!("`{location}`"));
            } else {
                self.local(location, item.at);
            }
            return;
        }
        if item.as_map().is_none() {
            let message = format!("an include is a path or a map with `local`, and this is {}", item.kind_name());
            self.faults.push(Fault { at: item.at, message, hint: None });
            return;
        }
        let Some(local) = item.get("local") else {
            let other = ["project", "component", "template", "remote", "artifact"]
                .into_iter()
                .find_map(|kind| Some((kind, item.get(kind)?.as_text()?)));
            match other {
                Some((kind, name)) => self.not_fetched.push(format!("`{kind}: {name}`")),
                None => self.faults.push(Fault {
                    at: item.at,
                    message: "the include names nothing to include".to_owned(),
                    hint: Some("`local: /path/in/the/repository.yml`".to_owned()),
                }),
            }
            return;
        };
        match local.as_text() {
            Some(path) => {
                if item.get("rules").is_some() {
                    self.unconditional.push(format!("`local: {path}`"));
                }
                self.local(path, local.at);
            }
            None => {
                let message = format!("`local` takes a path, and this is {}", local.kind_name());
                self.faults.push(Fault { at: local.at, message, hint: None });
            }
        }
    }

    fn local(&mut self, written: &str, at: At) {
        if written.contains('$') {
            self.not_fetched.push(format!("`local: {written}`"));
            return;
        }
        let Some(path) = inside(written) else {
            let message = format!("the include `{written}` leaves the repository");
            self.faults.push(Fault { at, message, hint: Some("paths are relative to the root of the repository".to_owned()) });
            return;
        };
        if !path.ends_with(".yml") && !path.ends_with(".yaml") {
            let message = format!("Included file `{written}` does not have YAML extension!");
            self.faults.push(Fault { at, message, hint: None });
            return;
        }
        let pattern: Arc<str> = path.into();
        self.needs.push(Need { pattern: pattern.clone(), at });
        self.includes.push(Include { pattern, at });
    }
}

/// The path from the root of the repository, without `.` and `..`. `None`: it leads out of it, or nowhere.
fn inside(written: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in written.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop()?,
            _ if part.contains(['\\', '\0']) => return None,
            _ => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// Which beginnings of the path the pattern can have used up, part by part: the work is the product of both lengths, whatever the pattern.
fn parts_match(pattern: &[&str], path: &[&str]) -> bool {
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for part in pattern {
        let mut next = vec![false; path.len() + 1];
        for at in (0..=path.len()).filter(|at| reached[*at] || *part == "**") {
            if *part == "**" {
                next[at] = reached[at] || (at > 0 && next[at - 1] && !path[at - 1].starts_with('.'));
            } else if path.get(at).is_some_and(|name| letters_match(part, name)) {
                next[at + 1] = true;
            }
        }
        reached = next;
    }
    reached[path.len()]
}

/// `*` stands for any letters; greedy with one step back, so linear for one star and never exponential.
fn letters_match(pattern: &str, name: &str) -> bool {
    if pattern.starts_with('*') && name.starts_with('.') {
        return false;
    }
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(letter) if *letter == name[n] => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((after, tried)) => {
                    star = Some((after, tried + 1));
                    (p, n) = (after + 1, tried + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_within_and_across_directories() {
        let matches = |pattern: &str, path| Need { pattern: pattern.into(), at: At::default() }.matches(path);
        assert!(matches("ci/a.yml", "ci/a.yml") && !matches("ci/a.yml", "ci/b.yml"));
        assert!(matches("ci/*.yml", "ci/a.yml") && !matches("ci/*.yml", "ci/x/a.yml") && !matches("ci/*.yml", "ci/.a.yml"));
        assert!(matches("ci/**/*.yml", "ci/a.yml") && matches("ci/**/*.yml", "ci/x/y/a.yml") && !matches("ci/**/*.yml", "other/a.yml"));
        assert!(matches("ci/**.yml", "ci/a.yml") && matches("ci/**.yml", "ci/x/a.yml") && !matches("ci/**.yml", "ci/x/a.txt"));
        assert!(matches("*a*b*.yml", "xaybz.yml") && !matches("*a*b*.yml", "xbya.yml"));
        assert!(!matches("a*a*a*a*a*a*a*a*a*a*a*a*b", &"a".repeat(200)));
    }

    #[test]
    fn a_path_stays_inside() {
        assert_eq!(inside("/ci/./x/../a.yml").as_deref(), Some("ci/a.yml"));
        assert_eq!(inside("../a.yml"), None);
        assert_eq!(inside("ci/../../a.yml"), None);
        assert_eq!(inside("/"), None);
    }
}
