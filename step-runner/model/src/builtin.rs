//! Steps that are compiled into a program: what each takes and gives, and which command carries it out.
//!
//! Whoever composes a program registers them; a program that registers none knows `script` and `script_legacy`, which need no command.

use crate::diagnostic::Problem;
use crate::document::{Body, Exec, raw};
use crate::expression::{Template, nearest};
use crate::plan::PlannedDocument;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Builtin steps that are the shell.
const SCRIPTS: [&str; 2] = ["script", "script_legacy"];

/// The registered steps by name: `docker` for `builtin://docker`. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Builtins(Arc<BTreeMap<Arc<str>, Arc<PlannedDocument>>>);

/// A step as its author registers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Builtin {
    pub name: String,
    /// A `func.yml`. Its command only says what is run; `command` is what runs.
    pub definition: String,
    /// The program, absolute, and its arguments. No expressions.
    pub command: Vec<String>,
}

/// A definition of our own that is wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the builtin step `{name}` has no sound definition: {}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct Unsound {
    pub name: String,
    pub problems: Vec<Problem>,
}

/// `builtin://NAME` that nobody registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no builtin step `{name}` in this program")]
pub struct UnknownBuiltin {
    pub name: Arc<str>,
    /// The way out.
    pub hint: String,
}

impl Builtins {
    /// # Errors
    /// The first one whose definition has an error or is no `exec`, or that has no command.
    pub fn new(steps: impl IntoIterator<Item = Builtin>) -> Result<Self, Unsound> {
        let planned = steps.into_iter().map(|step| Ok((Arc::from(step.name.as_str()), Arc::new(planned(step)?))));
        Ok(Self(Arc::new(planned.collect::<Result<_, _>>()?)))
    }

    /// # Errors
    /// There is none of this name; the error names those that there are.
    pub fn get(&self, name: &str) -> Result<&Arc<PlannedDocument>, UnknownBuiltin> {
        self.0.get(name).ok_or_else(|| UnknownBuiltin { name: name.into(), hint: self.hint(name) })
    }

    /// Sorted by name; those that are the shell are not among them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<PlannedDocument>)> {
        self.0.iter().map(|(name, planned)| (&**name, planned))
    }

    fn hint(&self, name: &str) -> String {
        let known: Vec<&str> = self.0.keys().map(|name| &**name).chain(SCRIPTS).collect();
        if let Some(near) = nearest(name, known.iter().copied()) {
            return format!("did you mean `builtin://{near}`?");
        }
        let listed = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        if self.0.is_empty() { format!("this program has only {listed}; `step-runner` has more") } else { format!("it has {listed}") }
    }
}

fn planned(Builtin { name, definition, command }: Builtin) -> Result<PlannedDocument, Unsound> {
    let reading = raw::read(&definition, "func.yml");
    let unsound = |problem: Option<&str>| {
        let own = problem.map(|message| Problem::error("unsound-builtin", message, None));
        let problems = reading.problems.iter().filter(|problem| problem.is_error()).cloned().chain(own).collect();
        Unsound { name: name.clone(), problems }
    };
    let Some(document) = &reading.document else { return Err(unsound(None)) };
    if command.is_empty() {
        return Err(unsound(Some("it has no command")));
    }
    let mut document = (**document).clone();
    let Body::Exec(exec) = document.definition.body else { return Err(unsound(Some("it is a sequence"))) };
    document.definition.body = Body::Exec(Exec { command: command.into_iter().map(Template::literal).collect(), work_dir: exec.work_dir });
    let file = Arc::from(format!("builtin://{name}"));
    Ok(PlannedDocument { file, builtin: true, ..PlannedDocument::of_job(Arc::new(document), "".into()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builtin(name: &str, definition: &str) -> Builtin {
        Builtin { name: name.into(), definition: definition.into(), command: vec!["/bin/step-runner".into(), name.into()] }
    }

    const DOCKER: &str = "spec: {inputs: {run: {type: array, template: true}}, outputs: delegate}\n---\nexec: {command: [docker]}\n";

    #[test]
    fn a_registered_step_runs_its_command_and_keeps_its_face() {
        let builtins = Builtins::new([builtin("docker", DOCKER)]).unwrap();
        let planned = builtins.get("docker").unwrap();
        let Body::Exec(exec) = &planned.document.definition.body else { panic!("a command") };
        assert_eq!(exec.command.iter().map(Template::source).collect::<Vec<_>>(), ["/bin/step-runner", "docker"]);
        assert!(planned.builtin && planned.document.spec.inputs[0].1.template);
        assert_eq!(planned.digest, None);
    }

    #[test]
    fn a_name_that_nobody_registered_is_an_error_that_lists_the_others() {
        let builtins = Builtins::new([builtin("docker", DOCKER), builtin("service", DOCKER)]).unwrap();
        let said = |builtins: &Builtins, name| builtins.get(name).map_err(|fault| format!("{fault}; {}", fault.hint)).unwrap_err();
        insta::assert_snapshot!(said(&builtins, "dokcer"), @"there is no builtin step `dokcer` in this program; did you mean `builtin://docker`?");
        insta::assert_snapshot!(said(&builtins, "kaniko"), @"there is no builtin step `kaniko` in this program; it has `docker`, `service`, `script`, `script_legacy`");
        insta::assert_snapshot!(said(&Builtins::default(), "docker"), @"there is no builtin step `docker` in this program; this program has only `script`, `script_legacy`; `step-runner` has more");
    }

    #[test]
    fn a_definition_that_is_wrong_is_named_with_its_problems() {
        let fault = Builtins::new([builtin("x", "{}\n---\nexec: {command: []}\n")]).unwrap_err();
        insta::assert_snapshot!(fault, @"the builtin step `x` has no sound definition: line 3, column 17: `command` is empty: minimum 1 items required");
        let fault = Builtins::new([builtin("x", "{}\n---\nrun: [{name: a, script: b}]\n")]).unwrap_err();
        insta::assert_snapshot!(fault, @"the builtin step `x` has no sound definition: it is a sequence");
    }
}
