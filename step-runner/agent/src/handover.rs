//! Steps that were handed over are taken in: a plan that travelled gets the places of this machine.
//!
//! What lies in the sender's directories is looked for in ours, file variables become files here, and texts that hold the path of one of them get the
//! new path. Nothing else of a value is changed.

use crate::system_error;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use step_model::masking::Secrets;
use step_model::plan::{HandedOver, Places, Plan, PlannedDocument, Target};
use step_model::value::{Data, Value};

/// Where handed-over steps run.
#[derive(Debug, Clone)]
pub struct Inside {
    /// All absolute.
    pub places: Places,
    /// Where the file variables are written: private, and there.
    pub variables_dir: PathBuf,
    /// The environment of this machine's processes: that of the image, in a container.
    pub process_env: BTreeMap<Arc<str>, Value>,
}

/// A file variable that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("could not write the file variable `{name}`: {}", system_error::text(.source))]
pub struct Unwritten {
    pub name: Arc<str>,
    pub source: std::io::Error,
}

/// The plan as it runs here, and what has to be masked from its first step on.
/// # Errors
/// A file variable cannot be written.
pub fn take_in(plan: Plan, inside: Inside) -> Result<(Plan, Secrets), Unwritten> {
    let mut secrets = Secrets::default();
    let mut moved = Moved::default();
    for (name, content) in &plan.file_variables {
        let path = inside.variables_dir.join(&**name);
        write(&path, content).map_err(|source| Unwritten { name: Arc::clone(name), source })?;
        let before = plan.variables.get(name).and_then(Value::as_str).filter(|path| path.starts_with('/'));
        moved.files.extend(before.map(|before| (before.to_owned(), path.to_string_lossy().into_owned())));
        let _ = secrets.add(content);
    }
    let relocation = Relocation { from: plan.places.clone(), to: inside.places.clone() };
    let root = relocation.document(&plan.root, &mut BTreeMap::new());
    let environment = |values: BTreeMap<Arc<str>, Value>| -> BTreeMap<Arc<str>, Value> {
        values.into_iter().map(|(name, value)| (name, moved.value(&value))).collect()
    };
    let handed_over = plan.handover.unwrap_or_default();
    let plan = Plan {
        root,
        places: inside.places,
        process_env: inside.process_env,
        request_env: environment(plan.request_env),
        variables: environment(plan.variables),
        handover: Some(HandedOver {
            inputs: handed_over.inputs.into_iter().map(|(name, value)| (name, moved.value(&value))).collect(),
            enclosing_env: environment(handed_over.enclosing_env),
        }),
        ..plan
    };
    let handed_over = plan.handover.iter().flat_map(|handed_over| handed_over.inputs.values().chain(handed_over.enclosing_env.values()));
    for value in plan.variables.values().chain(plan.request_env.values()).chain(handed_over) {
        add_marked(&mut secrets, value, false);
    }
    Ok((plan, secrets))
}

/// The sender's paths of file variables, and ours.
#[derive(Debug, Default)]
struct Moved {
    files: Vec<(String, String)>,
}

impl Moved {
    fn value(&self, value: &Value) -> Value {
        if self.files.is_empty() {
            return value.clone();
        }
        let moved = match value.data() {
            Data::Null | Data::Boolean(_) | Data::Number(_) => return value.clone(),
            Data::String(text) => match self.files.iter().any(|(before, _)| text.contains(before.as_str())) {
                true => Value::from(self.files.iter().fold(text.to_string(), |text, (before, after)| text.replace(before, after))),
                false => return value.clone(),
            },
            Data::Array(items) => Value::array(items.iter().map(|item| self.value(item))),
            Data::Object(object) => Value::object(object.iter().map(|(key, member)| (Arc::clone(key), self.value(member)))),
        };
        moved.marked(value.is_sensitive())
    }
}

/// Directories of the sender become ours.
struct Relocation {
    from: Places,
    to: Places,
}

impl Relocation {
    fn document(
        &self,
        planned: &Arc<PlannedDocument>,
        known: &mut BTreeMap<*const PlannedDocument, Arc<PlannedDocument>>,
    ) -> Arc<PlannedDocument> {
        let key = Arc::as_ptr(planned);
        if let Some(known) = known.get(&key) {
            return Arc::clone(known);
        }
        let mut moved = (**planned).clone();
        moved.dir = self.dir(&planned.dir);
        for target in &mut moved.targets {
            match target {
                Target::Document(inner) | Target::Hole { seen: Some(inner) } => *inner = self.document(inner, known),
                Target::Script | Target::Hole { seen: None } => {}
            }
        }
        for inner in moved.handovers.values_mut() {
            *inner = self.document(inner, known);
        }
        let moved = Arc::new(moved);
        known.insert(key, Arc::clone(&moved));
        moved
    }

    fn dir(&self, dir: &Arc<str>) -> Arc<str> {
        let pairs = [(&self.from.build_dir, &self.to.build_dir), (&self.from.work_dir, &self.to.work_dir)];
        for (from, to) in pairs {
            match dir.strip_prefix(&**from) {
                Some("") => return Arc::clone(to),
                Some(rest) if rest.starts_with('/') => return format!("{}{rest}", to.trim_end_matches('/')).into(),
                _ => {}
            }
        }
        Arc::clone(dir)
    }
}

/// Adds every text of what is marked. What is too short to be masked is left out.
fn add_marked(secrets: &mut Secrets, value: &Value, is_inherited: bool) {
    let is_marked = is_inherited || value.is_sensitive();
    match value.data() {
        Data::String(text) if is_marked => drop(secrets.add(text)),
        Data::Number(_) if is_marked => drop(secrets.add(&value.to_json().to_string())),
        Data::Array(items) => items.iter().for_each(|item| add_marked(secrets, item, is_marked)),
        Data::Object(object) => object.values().for_each(|item| add_marked(secrets, item, is_marked)),
        _ => {}
    }
}

fn write(path: &Path, content: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(content.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use step_model::document::{Dialect, StepDocument};

    fn places(dir: &str) -> Places {
        Places { work_dir: dir.into(), build_dir: dir.into(), files_dir: format!("{dir}/.files").into() }
    }

    fn values(pairs: &[(&str, Value)]) -> BTreeMap<Arc<str>, Value> {
        pairs.iter().map(|(name, value)| ((*name).into(), value.clone())).collect()
    }

    fn inside(variables_dir: &Path) -> Inside {
        let process_env = values(&[("PATH", "/image/bin".into())]);
        Inside { places: places("/workspace"), variables_dir: variables_dir.to_path_buf(), process_env }
    }

    fn plan(dir: &str) -> Plan {
        let document = Arc::new(StepDocument::of_steps(Dialect::Functions, []));
        Plan {
            handover: Some(HandedOver::default()),
            ..Plan::of(Arc::new(PlannedDocument::of_job(document, dir.into())), places("/builds/a"))
        }
    }

    #[test]
    fn directories_of_the_sender_become_ours() {
        let dir = tempfile::tempdir().unwrap();
        let moved = |from: &str| take_in(plan(from), inside(dir.path())).unwrap().0.root.dir.clone();
        assert_eq!(&*moved("/builds/a/steps/compile"), "/workspace/steps/compile");
        assert_eq!(&*moved("/builds/a"), "/workspace");
        assert_eq!(&*moved("/builds/abc"), "/builds/abc", "another directory that begins alike");
    }

    #[test]
    fn a_file_variable_is_a_file_here_and_its_path_is_the_new_one_wherever_it_stands() {
        let dir = tempfile::tempdir().unwrap();
        let mut plan = plan("/builds/a");
        plan.variables = values(&[("KEY", "/tmp/job/KEY".into()), ("TOKEN", Value::from("masked-token").sensitive())]);
        plan.file_variables = BTreeMap::from([("KEY".into(), "-----BEGIN-----".into())]);
        plan.request_env = values(&[("CONFIG", "--key=/tmp/job/KEY".into())]);
        let (plan, secrets) = take_in(plan, inside(dir.path())).unwrap();
        let path = dir.path().join("KEY");
        assert_eq!(plan.variables["KEY"].as_str(), path.to_str());
        assert_eq!(plan.request_env["CONFIG"].as_str(), Some(&*format!("--key={}", path.display())));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "-----BEGIN-----");
        assert_eq!(secrets.mask("-----BEGIN----- masked-token"), "[MASKED] [MASKED]");
        assert_eq!(plan.process_env["PATH"], "/image/bin".into());
    }
}
