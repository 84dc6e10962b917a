//! References from the command line: of what is there, and of what is elsewhere.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use step_console::exit::Stop;
use step_model::document::Dialect;
use step_model::expression::Template;
use step_model::reference::{GitReference, LocalReference, OciReference, StepReference};

/// A directory that is there.
pub fn directory(path: &str) -> StepReference {
    StepReference::Local(LocalReference { path: parts(path), file: None })
}

/// A definition file that is there.
pub fn file(path: &str) -> StepReference {
    let (dir, name) = path.rsplit_once('/').unwrap_or((".", path));
    let dir = if dir.is_empty() { "/" } else { dir };
    StepReference::Local(LocalReference { path: parts(dir), file: Some(name.into()) })
}

/// A local path begins with `/`, `.` or `..`.
fn parts(path: &str) -> Vec<Arc<str>> {
    let mut parts: Vec<Arc<str>> = path.split('/').filter(|part| !part.is_empty()).map(Arc::from).collect();
    if path.starts_with('/') {
        parts.insert(0, "/".into());
    } else if !matches!(parts.first().map(|part| &**part), Some("." | "..")) {
        parts.insert(0, ".".into());
    }
    parts
}

/// Anything else.
/// # Errors
/// It is none of the forms, and nothing of that name is there.
pub fn short(text: &str) -> Result<StepReference, Stop> {
    let nothing = |why: &str| Stop::bad_input(format!("there is no file or directory `{text}`{why}"));
    match StepReference::parse(text, Dialect::Functions) {
        // One word could be an image too; whoever types one has mistaken the name of a file.
        Ok(StepReference::Oci(_)) if !text.contains('/') || [".json", ".yml", ".yaml"].into_iter().any(|end| text.ends_with(end)) => {
            Err(nothing("").with_hint("an image is `registry/repository:tag`, a step in Git `host/project@v1`"))
        }
        Ok(reference) => Ok(reference),
        Err(fault) => {
            let stop = nothing(&format!(", and as a reference: {fault}"));
            Err(match fault.hint() {
                Some(hint) => stop.with_hint(hint),
                None => stop,
            })
        }
    }
}

/// `--git-url`, `--git-rev`, `--git-dir`.
/// # Errors
/// The address holds an expression that cannot be read.
pub fn git(url: &str, revision: &str, dir: &str) -> Result<StepReference, Stop> {
    let url = if url.contains("://") { url.to_owned() } else { format!("https://{url}") };
    let path = dir.split('/').filter(|part| !part.is_empty()).map(Arc::from).collect();
    Ok(StepReference::Git(Box::new(GitReference { url: template(&url)?, revision: revision.into(), path, file: None })))
}

/// `--oci-registry` and its companions.
/// # Errors
/// A part holds an expression that cannot be read.
pub fn oci(registry: &str, repository: &str, tag: &str, dir: &str, file: &str) -> Result<StepReference, Stop> {
    Ok(StepReference::Oci(Box::new(OciReference {
        registry: template(registry)?,
        repository: template(repository)?,
        tag: template(tag)?,
        path: dir.split('/').filter(|part| !part.is_empty()).map(Arc::from).collect(),
        file: (!file.is_empty()).then(|| file.into()),
    })))
}

fn template(text: &str) -> Result<Template, Stop> {
    Template::parse(text, Dialect::Steps).map_err(|fault| Stop::bad_input(format!("`{text}`: {}", fault.message)))
}

/// The reference in a line of an invocation: `step: ./greet`.
pub fn in_line(line: &str) -> Option<String> {
    let line = line.trim();
    let text = line.strip_prefix("step:").or_else(|| line.strip_prefix("func:"))?.trim();
    (!text.is_empty()).then(|| text.trim_matches(['"', '\'']).to_owned())
}

/// The files that may hold a local definition, the first that is there wins.
pub fn files(reference: &StepReference, dir: &str) -> Option<Vec<PathBuf>> {
    let StepReference::Local(local) = reference else { return None };
    let dir = local.path.iter().fold(PathBuf::from(dir), |path, part| path.join(Path::new(&**part)));
    Some(match &local.file {
        Some(file) => vec![dir.join(&**file)],
        None => vec![dir.join("func.yml"), dir.join("step.yml")],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(reference: &StepReference) -> (String, Option<&str>) {
        let StepReference::Local(local) = reference else { panic!("not local: {reference:?}") };
        (local.path.join(" "), local.file.as_deref())
    }

    #[test]
    fn what_is_there_becomes_a_local_reference() {
        assert_eq!(local(&directory("./greet/")), (". greet".into(), None));
        assert_eq!(local(&directory("greet")), (". greet".into(), None));
        assert_eq!(local(&directory("../a/b")), (".. a b".into(), None));
        assert_eq!(local(&directory("/a")), ("/ a".into(), None));
        assert_eq!(local(&file("greet.yaml")), (".".into(), Some("greet.yaml")));
        assert_eq!(local(&file("a/x.yml")), (". a".into(), Some("x.yml")));
        assert_eq!(local(&file("/x.yml")), ("/".into(), Some("x.yml")));
    }

    #[test]
    fn a_name_that_is_nothing_is_told_so() {
        let refused = short("job.json").expect_err("nothing");
        insta::assert_snapshot!(refused, @"there is no file or directory `job.json`");
        insta::assert_snapshot!(refused.problems[0].hints.join("\n"), @"an image is `registry/repository:tag`, a step in Git `host/project@v1`");
        insta::assert_snapshot!(short("ftp://host/x").expect_err("nothing"), @"there is no file or directory `ftp://host/x`, and as a reference: `ftp://` is no way to name a step");
        assert!(matches!(short("registry.example/a/b:1"), Ok(StepReference::Oci(_))));
        assert!(matches!(short("host.example/a/b@v1"), Ok(StepReference::Git(_))));
    }

    #[test]
    fn definitions_are_looked_for_in_order() {
        let files = files(&directory("greet"), "/w").expect("local");
        assert_eq!(files, [PathBuf::from("/w/./greet/func.yml"), PathBuf::from("/w/./greet/step.yml")]);
        assert_eq!(in_line(" step: \"./x\" "), Some("./x".into()));
    }
}
