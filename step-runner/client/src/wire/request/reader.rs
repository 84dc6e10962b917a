//! The JSON of a run request as its message, field by field, so that one wrong field hides no other.

use super::{Finding, Segment};
use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use ci_proto::step_runner::{Job, RunRequest, Variable};
use prost::Message;
use prost_reflect::{DeserializeOptions, DynamicMessage};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use step_model::diagnostic::Problem;
use step_model::expression::nearest;

/// Both names of each field; what is unknown in between is only warned about.
const REQUEST: &[(&str, &str)] = &[
    ("id", "id"),
    ("workDir", "work_dir"),
    ("env", "env"),
    ("job", "job"),
    ("steps", "steps"),
    ("timeout", "timeout"),
    ("plan", "plan"),
    ("traceparent", "traceparent"),
    ("ownerRecord", "owner_record"),
    ("policy", "policy"),
    ("jobSteps", "job_steps"),
    ("limits", "limits"),
];
const JOB: &[(&str, &str)] = &[("variables", "variables"), ("buildDir", "build_dir")];
const VARIABLE: &[(&str, &str)] = &[("key", "key"), ("value", "value"), ("file", "file"), ("masked", "masked")];

/// The message as far as it could be read, and what could not.
pub(super) fn read(json: &Json) -> (RunRequest, Vec<Finding>) {
    let mut reader = Reader { path: Vec::new(), findings: Vec::new() };
    let request = reader.request(json);
    (request, reader.findings)
}

struct Reader {
    /// Where the reader is.
    path: Vec<Segment>,
    findings: Vec<Finding>,
}

impl Reader {
    fn request(&mut self, json: &Json) -> RunRequest {
        let Some(fields) = self.object(json, REQUEST) else { return RunRequest::default() };
        RunRequest {
            id: self.field(fields, REQUEST[0], Self::text),
            work_dir: self.field(fields, REQUEST[1], Self::text),
            env: self.field(fields, REQUEST[2], Self::texts),
            job: self.field(fields, REQUEST[3], |reader, json| Some(reader.job(json))),
            steps: self.field(fields, REQUEST[4], Self::text),
            timeout: self.field(fields, REQUEST[5], |reader, json| reader.duration(json).map(Some)),
            plan: self.field(fields, REQUEST[6], Self::bytes),
            traceparent: self.field(fields, REQUEST[7], Self::text),
            owner_record: self.field(fields, REQUEST[8], Self::bytes),
            policy: self.field(fields, REQUEST[9], Self::bytes),
            job_steps: self.field(fields, REQUEST[10], |reader, json| reader.message(json, "JobSteps", "no list of steps").map(Some)),
            limits: self.field(fields, REQUEST[11], |reader, json| reader.message(json, "Limits", "no limits").map(Some)),
        }
    }

    fn job(&mut self, json: &Json) -> Option<Job> {
        let fields = self.object(json, JOB)?;
        Some(Job {
            variables: self.field(fields, JOB[0], |reader, json| {
                let Json::Array(items) = json else { return reader.expected("a list", json) };
                let mut variables = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    reader.path.push(Segment::Index(index));
                    variables.extend(reader.variable(item));
                    reader.path.pop();
                }
                Some(variables)
            }),
            build_dir: self.field(fields, JOB[1], Self::text),
        })
    }

    fn variable(&mut self, json: &Json) -> Option<Variable> {
        let fields = self.object(json, VARIABLE)?;
        Some(Variable {
            key: self.field(fields, VARIABLE[0], Self::text),
            value: self.field(fields, VARIABLE[1], Self::text),
            file: self.field(fields, VARIABLE[2], Self::boolean),
            masked: self.field(fields, VARIABLE[3], Self::boolean),
        })
    }

    /// What no person writes comes from a program of ours: the first fault is enough.
    fn message<M: Message + Default>(&mut self, json: &Json, name: &str, otherwise: &str) -> Option<M> {
        let options = DeserializeOptions::new().deny_unknown_fields(false);
        let message = DynamicMessage::deserialize_with_options(ci_proto::message(name)?, json.clone(), &options);
        match message.map_err(|fault| fault.to_string()).and_then(|message| message.transcode_to().map_err(|fault| fault.to_string())) {
            Ok(message) => Some(message),
            Err(fault) => {
                let message = format!("`{}` is {otherwise}: {fault}", super::written(&self.path));
                self.report(Problem::error("bad-field", message, None))
            }
        }
    }

    /// A field under either of its names. Absent and null are its default.
    fn field<T: Default>(
        &mut self,
        fields: &Map<String, Json>,
        (camel, snake): (&str, &str),
        read: impl FnOnce(&mut Self, &Json) -> Option<T>,
    ) -> T {
        let name = if fields.contains_key(camel) { camel } else { snake };
        let Some(json) = fields.get(name).filter(|json| !json.is_null()) else { return T::default() };
        self.path.push(name.into());
        if camel != snake && name == camel && fields.contains_key(snake) {
            let problem = Problem::error("duplicate-field", format!("the field is given twice, as `{camel}` and as `{snake}`"), None);
            self.report::<()>(problem);
        }
        let value = read(self, json).unwrap_or_default();
        self.path.pop();
        value
    }

    fn object<'j>(&mut self, json: &'j Json, known: &[(&str, &str)]) -> Option<&'j Map<String, Json>> {
        let Json::Object(fields) = json else { return self.expected("an object", json) };
        for name in fields.keys().filter(|name| !known.iter().any(|(camel, snake)| name == camel || name == snake)) {
            let mut problem = Problem::warning("unknown-field", format!("the field `{name}` is not known and has no effect"), None);
            if let Some(near) = nearest(name, known.iter().map(|(camel, _)| *camel)) {
                problem = problem.with_hint(format!("did you mean `{near}`?"));
            }
            self.path.push(name.as_str().into());
            self.report::<()>(problem);
            self.path.pop();
        }
        Some(fields)
    }

    fn text(&mut self, json: &Json) -> Option<String> {
        match json {
            Json::String(text) => Some(text.clone()),
            other => self.expected("a text", other),
        }
    }

    fn boolean(&mut self, json: &Json) -> Option<bool> {
        json.as_bool().or_else(|| self.expected("true or false", json))
    }

    fn texts(&mut self, json: &Json) -> Option<BTreeMap<String, String>> {
        let Json::Object(fields) = json else { return self.expected("an object", json) };
        let mut texts = BTreeMap::new();
        for (name, json) in fields {
            self.path.push(name.as_str().into());
            if let Some(text) = self.text(json) {
                texts.insert(name.clone(), text);
            }
            self.path.pop();
        }
        Some(texts)
    }

    /// Either alphabet, with or without padding, as readers of protobuf JSON take it.
    fn bytes(&mut self, json: &Json) -> Option<Vec<u8>> {
        let text = self.text(json)?;
        let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
        let standard: String = text.chars().map(|letter| if letter == '-' { '+' } else { letter }).collect();
        let standard = standard.replace('_', "/");
        match GeneralPurpose::new(&base64::alphabet::STANDARD, config).decode(standard) {
            Ok(bytes) => Some(bytes),
            Err(_) => self.expected("bytes in base64", json),
        }
    }

    /// Seconds and up to nine digits of a fraction: `3600s`, `1.5s`.
    fn duration(&mut self, json: &Json) -> Option<prost_types::Duration> {
        let text = self.text(json)?;
        let parsed = text.strip_suffix('s').and_then(|number| {
            let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
            let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            let is_number = digits(whole.strip_prefix('-').unwrap_or(whole)) && digits(fraction) && fraction.len() <= 9;
            let nanos = format!("{fraction:0<9}").parse::<i32>().ok()?;
            let sign = if whole.starts_with('-') { -1 } else { 1 };
            is_number.then_some(prost_types::Duration { seconds: whole.parse().ok()?, nanos: sign * nanos })
        });
        parsed.or_else(|| self.expected("a duration such as `3600s`", json))
    }

    fn expected<T>(&mut self, what: &str, json: &Json) -> Option<T> {
        let is = match json {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Number(_) => "a number",
            Json::String(_) => "another text",
            Json::Array(_) => "a list",
            Json::Object(_) => "an object",
        };
        let place = match super::written(&self.path) {
            path if path.is_empty() => "a run request".to_owned(),
            path => format!("`{path}`"),
        };
        self.report(Problem::error("bad-field", format!("{place} must be {what}, but is {is}"), None))
    }

    fn report<T>(&mut self, problem: Problem) -> Option<T> {
        self.findings.push(Finding::at(&self.path, problem));
        None
    }
}
