//! Plans become messages.

use ci_proto::agent::reference::{Dist, Git, Kind as ReferenceKind, Local, Oci};
use ci_proto::agent::value::{Array, Kind as ValueKind, Object as ObjectMessage};
use ci_proto::agent::{self, invocation, step_document, target};
use std::collections::BTreeMap;
use std::sync::Arc;
use step_model::document::{Action, AllowFailure, Body, Dialect, Outputs, Step, StepDocument, ValueTemplate, When};
use step_model::expression::Template;
use step_model::limits::{Cores, Limits};
use step_model::plan::{Level, Plan, PlannedDocument, Target};
use step_model::reference::StepReference;
use step_model::value::{Data, Kind, Value};

pub(super) fn handover(plan: &Plan) -> agent::Handover {
    let mut documents = Documents::default();
    documents.add(&plan.root);
    let handed_over = plan.handover.clone().unwrap_or_default();
    agent::Handover {
        documents: documents.written,
        work_dir: plan.places.work_dir.to_string(),
        build_dir: plan.places.build_dir.to_string(),
        inputs: named(&handed_over.inputs),
        request_env: named(&plan.request_env),
        enclosing_env: named(&handed_over.enclosing_env),
        variables: named(&plan.variables),
        files: plan.file_variables.iter().map(|(name, content)| (name.to_string(), content.to_string())).collect(),
        grace_period: Some(duration(plan.grace_period)),
        level: match plan.level {
            Level::V0_12 => 12,
            Level::V0_44 => 44,
        },
        strict: plan.strict,
        limits: limits(plan.limits),
    }
}

/// Documents in the order in which they are written; what one refers to stands before it.
#[derive(Default)]
struct Documents {
    written: Vec<agent::Planned>,
    /// By where they are in memory: a document that several steps name is there once.
    known: BTreeMap<*const PlannedDocument, u32>,
}

impl Documents {
    /// The position of a document, counted from 1.
    fn add(&mut self, planned: &Arc<PlannedDocument>) -> u32 {
        let key = Arc::as_ptr(planned);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let targets = planned.targets.iter().map(|target| self.target(target)).collect();
        let given = planned
            .handovers
            .iter()
            .map(|(step, inner)| agent::Given { step: u32::try_from(*step).unwrap_or(u32::MAX), document: self.add(inner) });
        let given = given.collect();
        let provenance = planned.provenance.as_ref();
        self.written.push(agent::Planned {
            document: Some(document(&planned.document)),
            dir: planned.dir.to_string(),
            file: planned.file.to_string(),
            digest: planned.digest.map(|digest| digest.bytes().to_vec()).unwrap_or_default(),
            commit: provenance.map(|provenance| provenance.commit.to_string()).unwrap_or_default(),
            dirty: provenance.is_some_and(|provenance| provenance.dirty),
            targets,
            given,
        });
        let position = u32::try_from(self.written.len()).unwrap_or(u32::MAX);
        self.known.insert(key, position);
        position
    }

    /// The receiver has builtin steps of its own, or none.
    fn target(&mut self, target: &Target) -> agent::Target {
        let (kind, planned) = match target {
            Target::Script => (target::Kind::Script, None),
            Target::Document(planned) if planned.builtin => (target::Kind::Hole, None),
            Target::Document(planned) => (target::Kind::Document, Some(planned)),
            Target::Hole { seen } => (target::Kind::Hole, seen.as_ref()),
        };
        agent::Target { kind: kind.into(), planned: planned.map_or(0, |planned| self.add(planned)) }
    }
}

fn document(document: &StepDocument) -> agent::StepDocument {
    let (outputs, delegate_outputs) = match &document.spec.outputs {
        Outputs::Delegate => (&[][..], true),
        Outputs::Declared(declared) => (declared.as_slice(), false),
    };
    let declaration =
        |name: &Arc<str>, kind: Kind, default: Option<&Value>, sensitive, description: Option<&Arc<str>>, template| agent::Declaration {
            name: name.to_string(),
            r#type: kind.name().to_owned(),
            default: default.map(value),
            sensitive,
            description: description.map(|text| text.to_string()),
            template,
        };
    let inputs = document.spec.inputs.iter().map(|(name, input)| {
        declaration(name, input.kind, input.default.as_ref(), input.sensitive, input.description.as_ref(), input.template)
    });
    let outputs = outputs.iter().map(|(name, output)| {
        declaration(name, output.kind, output.default.as_ref(), output.sensitive, output.description.as_ref(), false)
    });
    let body = match &document.definition.body {
        Body::Exec(exec) => step_document::Body::Exec(agent::Exec {
            command: exec.command.iter().map(template).collect(),
            work_dir: exec.work_dir.as_ref().map(template),
        }),
        Body::Sequence(sequence) => step_document::Body::Sequence(agent::Sequence {
            steps: sequence.steps.iter().map(|step| invocation(step)).collect(),
            outputs: sequence
                .outputs
                .iter()
                .map(|(name, output)| agent::NamedValue { name: name.to_string(), value: Some(value_template(output)) })
                .collect(),
            delegate: sequence.delegate.as_ref().map(|name| name.to_string()),
        }),
    };
    agent::StepDocument {
        steps_dialect: document.dialect == Dialect::Steps,
        inputs: inputs.collect(),
        outputs: outputs.collect(),
        delegate_outputs,
        env: pairs(&document.definition.env),
        body: Some(body),
    }
}

fn invocation(step: &Step) -> agent::Invocation {
    let action = match &step.action {
        Action::Reference(named) => invocation::Action::Reference(reference(named)),
        Action::Script(script) => invocation::Action::Script(template(script)),
        Action::ScriptLegacy(script) => invocation::Action::ScriptLegacy(agent::LegacyScript {
            lines: script.lines.iter().map(|line| line.to_string()).collect(),
            echo: script.echo,
            debug_trace: script.debug_trace,
            job_status: script.job_status,
        }),
    };
    agent::Invocation {
        name: step.name.to_string(),
        action: Some(action),
        env: pairs(&step.env),
        inputs: step
            .inputs
            .iter()
            .map(|(name, value)| agent::GivenInput { name: Some(template(name)), value: Some(value_template(value)) })
            .collect(),
        when: match step.when {
            When::OnSuccess => 0,
            When::OnFailure => 1,
            When::Always => 2,
        },
        allow_failure: match &step.allow_failure {
            AllowFailure::No => None,
            AllowFailure::Any => Some(agent::AllowedFailure::default()),
            AllowFailure::ExitCodes(codes) => Some(agent::AllowedFailure { exit_codes: codes.clone() }),
        },
        timeout: step.timeout.map(duration),
        inner: step.inner.as_deref().map(document),
        limits: limits(step.limits),
    }
}

/// `None`: there are none.
fn limits(limits: Limits) -> Option<agent::StepLimits> {
    (!limits.is_empty()).then(|| agent::StepLimits {
        millicores: limits.cpus.map_or(0, Cores::thousandths),
        memory: limits.memory.unwrap_or_default(),
        pids: limits.pids.unwrap_or_default(),
        disk: limits.disk.unwrap_or_default(),
        no_network: limits.no_network,
    })
}

fn reference(reference: &StepReference) -> agent::Reference {
    let parts = |path: &[Arc<str>]| path.iter().map(|part| part.to_string()).collect();
    let file = |file: &Option<Arc<str>>| file.as_ref().map(|file| file.to_string());
    let kind = match reference {
        StepReference::Local(local) => ReferenceKind::Local(Local { path: parts(&local.path), file: file(&local.file) }),
        StepReference::Git(git) => ReferenceKind::Git(Git {
            url: Some(template(&git.url)),
            revision: git.revision.to_string(),
            path: parts(&git.path),
            file: file(&git.file),
        }),
        StepReference::Oci(oci) => ReferenceKind::Oci(Oci {
            registry: Some(template(&oci.registry)),
            repository: Some(template(&oci.repository)),
            tag: Some(template(&oci.tag)),
            path: parts(&oci.path),
            file: file(&oci.file),
        }),
        StepReference::Dist { path } => ReferenceKind::Dist(Dist { path: parts(path) }),
        StepReference::Builtin { name } => ReferenceKind::Builtin(name.to_string()),
        StepReference::Dynamic(named) => ReferenceKind::Dynamic(template(named)),
    };
    agent::Reference { kind: Some(kind) }
}

fn template(template: &Template) -> agent::Template {
    agent::Template {
        source: template.source().to_owned(),
        literal: template.as_literal() == Some(template.source()),
        steps_dialect: template.dialect() == Dialect::Steps,
    }
}

fn pairs(pairs: &[(Template, Template)]) -> Vec<agent::TemplatePair> {
    pairs.iter().map(|(name, value)| agent::TemplatePair { name: Some(template(name)), value: Some(template(value)) }).collect()
}

fn named<'v>(values: impl IntoIterator<Item = (&'v Arc<str>, &'v Value)>) -> Vec<agent::NamedValue> {
    values.into_iter().map(|(name, one)| agent::NamedValue { name: name.to_string(), value: Some(value(one)) }).collect()
}

fn value(value: &Value) -> agent::Value {
    let kind = match value.data() {
        Data::Null => ValueKind::Null(true),
        Data::Boolean(boolean) => ValueKind::Boolean(*boolean),
        Data::Number(number) => ValueKind::Number(*number),
        Data::String(text) => ValueKind::Text(text.to_string()),
        Data::Array(items) => ValueKind::Array(Array { items: items.iter().map(self::value).collect() }),
        Data::Object(object) => ValueKind::Object(ObjectMessage {
            keys: object.keys().map(|key| template(&Template::literal(Arc::clone(key)))).collect(),
            values: object.values().map(self::value).collect(),
        }),
    };
    agent::Value { kind: Some(kind), sensitive: value.is_sensitive(), whole: false }
}

fn value_template(given: &ValueTemplate) -> agent::Value {
    let kind = match given {
        ValueTemplate::Scalar(scalar) => return agent::Value { whole: true, ..value(scalar) },
        ValueTemplate::Text(text) => ValueKind::Template(template(text)),
        ValueTemplate::Array(items) => ValueKind::Array(Array { items: items.iter().map(value_template).collect() }),
        ValueTemplate::Object(entries) => ValueKind::Object(ObjectMessage {
            keys: entries.iter().map(|(key, _)| template(key)).collect(),
            values: entries.iter().map(|(_, member)| value_template(member)).collect(),
        }),
    };
    agent::Value { kind: Some(kind), sensitive: false, whole: false }
}

fn duration(duration: std::time::Duration) -> prost_types::Duration {
    let nanos = i32::try_from(duration.subsec_nanos()).unwrap_or_default();
    prost_types::Duration { seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX), nanos }
}
