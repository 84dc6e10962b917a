//! A run request as it may be kept: what is masked, and what is in files, is replaced by its name.
//!
//! `[MASKED NAME]` stands for each value, in its own variable and wherever else it stands in the request; so a request that was kept runs again
//! where the values are supplied. Where a value stands in an encoding or in part, nobody can put it back: `[MASKED]` is there then. A value that is
//! too short to be masked stays where it is a part of other texts.

use ci_proto::step_runner::{JobSteps, RunRequest, Step};
use prost::Message as _;
use prost_types::Value;
use prost_types::value::Kind;
use std::borrow::Cow;
use step_model::masking::{MINIMUM, Secrets};

/// A request without its secrets.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptRequest {
    pub request: RunRequest,
    /// The names of the variables whose values were replaced.
    pub withheld: Vec<String>,
}

/// What stands for the value of a variable.
fn mark(name: &str) -> String {
    format!("[MASKED {name}]")
}

/// Replaces what may not be kept. A plan of a handover is left out: it holds values in clear, and whoever handed it over has its parts.
pub fn kept(mut request: RunRequest) -> KeptRequest {
    request.plan.clear();
    // The longest first: of two values of which one is in the other, the whole one is named.
    let variables = request.job.iter().flat_map(|job| &job.variables).filter(|variable| variable.masked || variable.file);
    let mut named: Vec<(String, String)> = variables.map(|variable| (variable.key.clone(), variable.value.clone())).collect();
    let withheld: Vec<String> = named.iter().map(|(name, _)| name.clone()).collect();
    named.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
    named.retain(|(_, value)| value.chars().count() >= MINIMUM);
    let mut secrets = Secrets::default();
    for (_, value) in &named {
        // Too short without the white space around it.
        let _ = secrets.add(value);
    }
    Replacing { named, secrets }.request(&mut request);
    for variable in request.job.iter_mut().flat_map(|job| &mut job.variables).filter(|variable| variable.masked || variable.file) {
        variable.value = mark(&variable.key);
    }
    KeptRequest { request, withheld }
}

/// Reads a request that was kept, and which values are missing in it.
/// # Errors
/// The bytes are no request.
pub fn read(bytes: &[u8]) -> Result<KeptRequest, prost::DecodeError> {
    let request = RunRequest::decode(bytes)?;
    let variables = request.job.iter().flat_map(|job| &job.variables);
    let withheld = variables.filter(|variable| variable.value == mark(&variable.key)).map(|variable| variable.key.clone()).collect();
    Ok(KeptRequest { request, withheld })
}

struct Replacing {
    /// Names and values.
    named: Vec<(String, String)>,
    secrets: Secrets,
}

impl Replacing {
    fn request(&self, request: &mut RunRequest) {
        let RunRequest { work_dir, env, steps, job, job_steps, .. } = request;
        self.texts(env.values_mut().chain([work_dir, steps]));
        if let Some(job) = job {
            self.texts([&mut job.build_dir]);
            // Others may hold a masked value, and a masked one is replaced as a whole.
            self.texts(job.variables.iter_mut().filter(|variable| !(variable.masked || variable.file)).map(|variable| &mut variable.value));
        }
        if let Some(job_steps) = job_steps {
            self.job_steps(job_steps);
        }
        // An opaque record is its writer's own.
    }

    fn job_steps(&self, steps: &mut JobSteps) {
        self.texts(steps.env.values_mut());
        for step in &mut steps.steps {
            if let Some(inner) = &mut step.step {
                self.step(inner);
            }
            if let Some(script) = &mut step.script_legacy {
                self.texts(&mut script.lines);
            }
        }
    }

    fn step(&self, step: &mut Step) {
        self.texts(step.env.values_mut());
        step.inputs.values_mut().for_each(|value| self.value(value));
        if let Some(reference) = &mut step.step {
            self.texts([&mut reference.url]);
        }
    }

    fn value(&self, value: &mut Value) {
        match &mut value.kind {
            None | Some(Kind::NullValue(_) | Kind::BoolValue(_) | Kind::NumberValue(_)) => {}
            Some(Kind::StringValue(text)) => self.texts([text]),
            Some(Kind::ListValue(list)) => list.values.iter_mut().for_each(|item| self.value(item)),
            Some(Kind::StructValue(object)) => object.fields.values_mut().for_each(|field| self.value(field)),
        }
    }

    fn texts<'t>(&self, texts: impl IntoIterator<Item = &'t mut String>) {
        for text in texts {
            for (name, value) in &self.named {
                if text.contains(value) {
                    *text = text.replace(value, &mark(name));
                }
            }
            if let Cow::Owned(masked) = self.secrets.mask(text) {
                *text = masked;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ci_proto::step_runner::{Job, Variable};

    fn variable(key: &str, value: &str, file: bool, masked: bool) -> Variable {
        Variable { key: key.into(), value: value.into(), file, masked }
    }

    fn request() -> RunRequest {
        let variables = vec![
            variable("TOKEN", "swordfish", false, true),
            variable("LONGER", "swordfish-2", false, true),
            variable("KEY_FILE", "line one\nline two\n", true, false),
            variable("PIN", "12", false, true),
            variable("URL", "https://u:swordfish@h/12?c3dvcmRmaXNo", false, false),
        ];
        RunRequest {
            id: "7".into(),
            env: [("A".to_owned(), "swordfish-2 swordfish".to_owned())].into(),
            steps: "{}\n---\nrun: [{name: a, script: 'echo swordfish line two'}]".into(),
            job: Some(Job { variables, build_dir: String::new() }),
            plan: b"swordfish".to_vec(),
            ..RunRequest::default()
        }
    }

    #[test]
    fn every_value_is_replaced_by_its_name_wherever_it_stands() {
        let KeptRequest { request, withheld } = kept(request());
        assert_eq!(withheld, ["TOKEN", "LONGER", "KEY_FILE", "PIN"]);
        let variables = request.job.as_ref().unwrap().variables.iter().map(|variable| variable.value.as_str()).collect::<Vec<_>>();
        let expected = ["[MASKED TOKEN]", "[MASKED LONGER]", "[MASKED KEY_FILE]", "[MASKED PIN]", "https://u:[MASKED TOKEN]@h/12?[MASKED]"];
        assert_eq!(variables, expected);
        assert_eq!(request.env["A"], "[MASKED LONGER] [MASKED TOKEN]");
        assert!(request.steps.contains("echo [MASKED TOKEN] [MASKED]"), "{}", request.steps);
        let bytes = request.encode_to_vec();
        assert!(!bytes.windows(9).any(|window| window == b"swordfish"));
        let again = read(&bytes).unwrap();
        assert_eq!((&again.request, again.withheld.len()), (&request, 4));
    }

    #[test]
    fn a_request_without_secrets_is_kept_as_it_is() {
        let request = RunRequest { steps: "[MASKED]".into(), ..RunRequest::default() };
        assert_eq!(kept(request.clone()), KeptRequest { request, withheld: Vec::new() });
    }
}
