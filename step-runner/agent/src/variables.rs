//! Job variables: what their values are here, and which of them are secret.

use crate::system_error;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use step_model::masking::Secrets;
use step_model::request::Variable;
use step_model::value::{Data, Value};

/// The variables as a plan has them, by their names.
#[derive(Debug, Default)]
pub struct Variables {
    /// A file variable holds the path of its file.
    pub values: BTreeMap<Arc<str>, Value>,
    /// The contents of the file variables.
    pub files: BTreeMap<Arc<str>, Arc<str>>,
    /// The names of masked variables that are too short to be masked.
    pub in_clear: Vec<Arc<str>>,
}

/// Why there are no variables.
#[derive(Debug, thiserror::Error)]
pub enum VariablesFault {
    /// Each of these would leave the directory, or is none's name.
    #[error("{}", .0.iter().map(|name| format!("the file variable `{}` cannot be a file of that name", name.escape_debug())).collect::<Vec<_>>().join("; "))]
    Names(Vec<Arc<str>>),
    #[error("could not write the file variable `{name}`: {}", system_error::text(.source))]
    Unwritten { name: Arc<str>, source: std::io::Error },
}

/// Writes the file variables to `dir` (0600), and adds what is masked to `secrets`. The last of a name wins.
/// # Errors
/// A name that would leave the directory, or a file that cannot be written.
pub fn prepare(variables: &[Variable], dir: &Path, secrets: &mut Secrets) -> Result<Variables, VariablesFault> {
    let last: BTreeMap<&str, &Variable> = variables.iter().map(|variable| (&*variable.key, variable)).collect();
    let unsafe_names = last.values().filter(|variable| variable.file && !is_file_name(&variable.key));
    let unsafe_names: Vec<Arc<str>> = unsafe_names.map(|variable| variable.key.clone()).collect();
    if !unsafe_names.is_empty() {
        return Err(VariablesFault::Names(unsafe_names));
    }
    let mut prepared = Variables::default();
    for variable in last.into_values() {
        let is_kept = !(variable.masked || variable.file) || secrets.add(&variable.value).is_ok();
        if variable.masked && !is_kept {
            prepared.in_clear.push(variable.key.clone());
        }
        let value = if variable.file {
            let path = dir.join(&*variable.key);
            write_file(&path, variable.value.as_bytes())
                .map_err(|source| VariablesFault::Unwritten { name: variable.key.clone(), source })?;
            prepared.files.insert(variable.key.clone(), variable.value.clone());
            Value::from(path.to_string_lossy().into_owned())
        } else {
            Value::string(variable.value.clone()).marked(variable.masked)
        };
        prepared.values.insert(variable.key.clone(), value);
    }
    Ok(prepared)
}

/// Adds every text in a value. What is too short to be masked is left out.
pub fn add_secret(secrets: &mut Secrets, value: &Value) {
    let _ = match value.data() {
        Data::String(text) => secrets.add(text),
        Data::Number(_) => secrets.add(&value.to_json().to_string()),
        Data::Array(items) => return items.iter().for_each(|item| add_secret(secrets, item)),
        Data::Object(object) => return object.values().for_each(|item| add_secret(secrets, item)),
        Data::Null | Data::Boolean(_) => return,
    };
}

/// Not a path, and not a name that means a directory.
fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', '\0', ':'])
}

fn write_file(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(key: &str, value: &str, file: bool, masked: bool) -> Variable {
        Variable { key: key.into(), value: value.into(), file, masked }
    }

    #[test]
    fn a_file_variable_is_the_path_of_its_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut secrets = Secrets::default();
        let variables = [variable("KEY", "old", false, false), variable("KEY", "-----BEGIN-----", true, false)];
        let prepared = prepare(&variables, dir.path(), &mut secrets).expect("no problem");
        let path = dir.path().join("KEY");
        assert_eq!(prepared.values["KEY"].as_str(), path.to_str());
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), "-----BEGIN-----");
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&path.metadata().expect("a file").permissions()) & 0o777, 0o600);
        assert_eq!(secrets.mask("a -----BEGIN----- b"), "a [MASKED] b");
    }

    #[test]
    fn a_masked_variable_is_a_secret_and_a_plain_one_is_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut secrets = Secrets::default();
        let variables =
            [variable("A", "open sesame", false, true), variable("B", "plain text", false, false), variable("C", "x", false, true)];
        let prepared = prepare(&variables, dir.path(), &mut secrets).expect("no problem");
        assert!(prepared.values["A"].is_sensitive() && !prepared.values["B"].is_sensitive());
        assert_eq!(secrets.mask("open sesame, plain text"), "[MASKED], plain text");
        assert_eq!(prepared.in_clear, ["C".into()]);
    }

    #[test]
    fn a_name_that_leaves_the_directory_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let names = ["../x", "", "..", "a/b", "C:", "a\\b"];
        let variables = names.map(|name| variable(name, "", true, false));
        let Err(VariablesFault::Names(refused)) = prepare(&variables, dir.path(), &mut Secrets::default()) else { panic!("taken") };
        assert_eq!(refused.len(), names.len());
        let said = VariablesFault::Names(vec!["..".into()]).to_string();
        assert_eq!(said, "the file variable `..` cannot be a file of that name");
    }
}
