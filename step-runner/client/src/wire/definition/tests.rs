use super::*;
use ci_proto::step_runner::step::Reference;
use ci_proto::step_runner::step::reference::StepPath;
use ci_proto::step_runner::{Definition, OutputMethod, PathParts, SpecDefinition, Step as StepMessage, StepReferenceProtocol, ValueType};
use std::sync::Arc;
use step_model::document::raw;
use step_model::document::{Action, Body, Dialect, Step, StepDocument};
use step_model::expression::Template;
use step_model::reference::StepReference;

fn document(text: &str, file: &str) -> Arc<StepDocument> {
    let reading = raw::read(text, file);
    reading.document.unwrap_or_else(|| panic!("{text}: {:?}", reading.problems))
}

fn compiled(text: &str) -> SpecDefinition {
    compile(&document(text, "step.yml"))
}

/// As one line of protobuf JSON, by the descriptors and not by our own writer.
fn json(message: &impl prost::Message, name: &str) -> serde_json::Value {
    let mut dynamic = prost_reflect::DynamicMessage::new(ci_proto::message(name).unwrap());
    dynamic.transcode_from(message).unwrap();
    serde_json::to_value(&dynamic).unwrap()
}

fn definition_json(text: &str) -> serde_json::Value {
    json(&compiled(text), "SpecDefinition")
}

fn first_step(message: &SpecDefinition) -> &StepMessage {
    &message.definition.as_ref().unwrap().steps[0]
}

#[test]
fn cmp_01_a_spec_is_optional_and_a_script_is_a_bundled_step() {
    assert_eq!(
        definition_json("{}\n---\nrun: [{name: a, script: echo 1}]\n"),
        serde_json::json!({
            "spec": {"spec": {"outputMethod": "outputs"}},
            "definition": {"type": "steps", "steps": [{
                "name": "a",
                "step": {"protocol": "dist", "path": ["script"], "filename": "step.yml"},
                "inputs": {"script": "echo 1"},
            }]},
        })
    );
}

#[test]
fn cmp_02_a_command_is_kept_as_it_was_written() {
    assert_eq!(
        definition_json("spec: {inputs: {x: {type: string}}}\n---\nexec: {command: [printf, \"${{inputs.x}}\"]}\n"),
        serde_json::json!({
            "spec": {"spec": {"inputs": {"x": {"type": "string"}}, "outputMethod": "outputs"}},
            "definition": {"type": "exec", "exec": {"command": ["printf", "${{inputs.x}}"]}},
        })
    );
}

#[test]
fn cmp_04_every_type_and_default_is_carried_over() {
    let text = "spec:
  inputs:
    n: {type: number, default: 2}
    o: {type: struct, default: {k: v}}
    b: {type: boolean, default: false}
    s: {type: string, default: s, sensitive: true}
    l: {type: array}
  outputs: {colour: {type: string, default: brown}}
---
exec: {command: [a, b, c, d, e], work_dir: \"${{work_dir}}/x\"}
";
    assert_eq!(
        definition_json(text),
        serde_json::json!({
            "spec": {"spec": {
                "inputs": {
                    "n": {"type": "number", "default": 2.0},
                    "o": {"type": "struct", "default": {"k": "v"}},
                    "b": {"type": "boolean", "default": false},
                    "s": {"type": "string", "default": "s", "sensitive": true},
                    "l": {"type": "array"},
                },
                "outputs": {"colour": {"type": "string", "default": "brown"}},
                "outputMethod": "outputs",
            }},
            "definition": {"type": "exec", "exec": {"command": ["a", "b", "c", "d", "e"], "workDir": "${{work_dir}}/x"}},
        })
    );
}

#[test]
fn cmp_05_environment_outputs_and_references_are_kept() {
    let text = "spec: {outputs: {o: {type: string}}}
---
env: {A: x}
run:
  - name: remote
    step: h.example/g/p@v1
    env: {B: \"${{ env.A }}\"}
    inputs: {nested: {list: [1, \"${{ inputs.x }}\", null]}}
  - {name: near, step: ../dir/two}
outputs: {o: v}
";
    assert_eq!(
        definition_json(text)["definition"],
        serde_json::json!({
            "type": "steps",
            "env": {"A": "x"},
            "outputs": {"o": "v"},
            "steps": [
                {
                    "name": "remote",
                    "step": {"protocol": "git", "url": "https://h.example/g/p", "path": ["steps"], "filename": "step.yml", "version": "v1"},
                    "env": {"B": "${{ env.A }}"},
                    "inputs": {"nested": {"list": [1.0, "${{ inputs.x }}", null]}},
                },
                {"name": "near", "step": {"protocol": "local", "path": ["..", "dir", "two"], "filename": "step.yml"}},
            ],
        })
    );
}

#[test]
fn cmp_07_delegated_outputs_are_a_method_and_a_name() {
    let message = compiled("spec: {outputs: delegate}\n---\nrun: [{name: d, step: h.example/g/p@v1}]\ndelegate: d\n");
    assert_eq!(message.spec.unwrap().spec.unwrap().output_method(), OutputMethod::Delegate);
    assert_eq!(message.definition.unwrap().delegate, "d");
}

#[test]
fn cmp_08_a_definition_has_something_to_do() {
    let reading = raw::read("{}\n---\nname: n\nstep: ./x\n", "step.yml");
    assert!(reading.document.is_none());
    let said = reading.problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>().join("\n");
    assert!(said.contains("at least one of"), "{said}");

    let nothing = document_of(&SpecDefinition::default(), Dialect::Steps).unwrap_err();
    assert_eq!(nothing, [DefinitionFault::NothingToDo]);
    assert!(nothing[0].to_string().contains("at least one of"));
}

#[test]
fn ref_37_an_image_is_fetched_by_a_bundled_step_and_used_as_a_directory() {
    let message = compiled("{}\n---\nrun: [{name: w, step: {oci: {registry: r, repository: g/i, tag: t}}, inputs: {a: 1}}]\n");
    assert_eq!(
        json(first_step(&message), "Step"),
        serde_json::json!({"name": "w", "step": {"protocol": "spec_def", "specDef": {
            "spec": {"spec": {"outputMethod": "delegate"}},
            "definition": {"type": "steps", "delegate": "w", "steps": [
                {
                    "name": "fetch_step_w",
                    "step": {"protocol": "dist", "path": ["step", "oci", "fetch"], "filename": "step.yml"},
                    "inputs": {"registry": "r", "repository": "g/i", "tag": "t"},
                },
                {
                    "name": "w",
                    "step": {"protocol": "local", "filename": "step.yml", "pathExp": "${{steps.fetch_step_w.outputs.fetched_step_path}}"},
                    "inputs": {"a": 1.0},
                },
            ]},
        }}})
    );
}

#[test]
fn an_image_comes_back_as_an_image() {
    let text = "{}\n---\nrun: [{name: w, step: {oci: {registry: r, repository: g/i, tag: t, dir: a/b, file: x.yml}}, inputs: {a: \"${{ env.B }}\"}}]\n";
    assert_round_trip(text);
}

fn reference_of(reference: Reference) -> Result<StepReference, Vec<DefinitionFault>> {
    step_of(&StepMessage { name: "s".into(), step: Some(reference), ..StepMessage::default() }, Dialect::Steps).map(|step| {
        match step.action {
            Action::Reference(reference) => reference,
            other => panic!("{other:?} is no reference"),
        }
    })
}

#[test]
fn ld_08_local_paths_in_the_old_field_in_parts_and_as_an_expression() {
    let local = Reference { protocol: StepReferenceProtocol::Local.into(), filename: "step.yml".into(), ..Reference::default() };
    let path = |reference| match reference_of(reference).unwrap() {
        StepReference::Local(local) => local.path.join(" "),
        other => panic!("{other:?} is not local"),
    };
    assert_eq!(path(Reference { path: vec!["a/b".into(), "c".into()], ..local.clone() }), ". a b c");
    assert_eq!(path(Reference { path: vec!["/".into(), "opt".into()], ..local.clone() }), "/ opt");
    let parts = PathParts { parts: vec!["..".into(), "c".into()] };
    assert_eq!(path(Reference { path: vec!["x".into()], step_path: Some(StepPath::Paths(parts)), ..local.clone() }), ".. c");
    let expression = Some(StepPath::PathExp("${{ env.P }}".into()));
    match reference_of(Reference { step_path: expression, ..local }).unwrap() {
        StepReference::Dynamic(template) => assert_eq!(template.source(), "${{ env.P }}"),
        other => panic!("{other:?} is not dynamic"),
    }
}

#[test]
fn protocols_that_cannot_run_are_refused() {
    let refused = |protocol: StepReferenceProtocol| {
        reference_of(Reference { protocol: protocol.into(), ..Reference::default() }).unwrap_err()[0].to_string()
    };
    assert_eq!(refused(StepReferenceProtocol::Oci), "step \"s\": unknown step reference protocol: oci");
    assert_eq!(refused(StepReferenceProtocol::Zip), "step \"s\": unknown step reference protocol: zip");
    assert_eq!(refused(StepReferenceProtocol::SpecDef), "step \"s\": a definition inside a reference is only known for an image");
}

/// What is written, read and written again is the same.
fn assert_round_trip(text: &str) {
    let first = compiled(text);
    let back = document_of(&first, Dialect::Steps).unwrap();
    assert_eq!(compile(&back), first, "{text}");
}

#[test]
fn a_document_survives_the_wire() {
    assert_round_trip("{}\n---\nrun: [{name: a, script: \"echo ${{ job.X }}\", env: {A: b}}, {name: b, step: ./x/y.yml}]\n");
    assert_round_trip("{}\n---\nrun: [{name: a, step: \"${{ env.REF }}\"}, {name: b, step: h.example/g/p/-/d@v1}]\ndelegate: a\n");
    assert_round_trip("spec: {inputs: {a: {type: array, default: [1]}}, outputs: delegate}\n---\nenv: {A: b}\nexec: {command: [x]}\n");
}

#[test]
fn the_script_of_a_gitlab_job_survives_the_wire() {
    let legacy = step_model::document::ScriptLegacy {
        lines: vec!["make ${{ not an expression".into(), "make test".into()],
        echo: true,
        ..Default::default()
    };
    let step = Step::new("script", Action::ScriptLegacy(legacy));
    let message = compile_step(&step, Dialect::Steps);
    assert_eq!(step_of(&message, Dialect::Steps).unwrap().action, step.action);
}

#[test]
fn plain_text_does_not_become_an_expression_on_the_way() {
    let step = Step {
        env: vec![(Template::literal("A"), Template::literal("${{ no }}"))],
        ..Step::new("a", Action::Script(Template::literal("x")))
    };
    let message = compile_step(&step, Dialect::Steps);
    assert_eq!(message.env["A"], "${{ '${{' }} no }}");
}

#[test]
fn every_fault_of_a_message_is_found() {
    let step = |name: &str, protocol: StepReferenceProtocol| StepMessage {
        name: name.into(),
        step: Some(Reference { protocol: protocol.into(), ..Reference::default() }),
        env: [("E".to_owned(), "${{ (".to_owned())].into(),
        ..StepMessage::default()
    };
    let definition =
        Definition { steps: vec![step("a", StepReferenceProtocol::Zip), step("b", StepReferenceProtocol::Local)], ..Definition::default() };
    let faults = document_of(&SpecDefinition { spec: None, definition: Some(definition) }, Dialect::Steps).unwrap_err();
    let said: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(said[0], "step \"a\": unknown step reference protocol: zip");
    assert!(said[1].starts_with("step \"b\": env \"E\": "), "{said:?}");
}

#[test]
fn a_definition_is_read_from_protobuf_text() {
    let text = r#"
        type: steps
        steps { name: "a" step { protocol: dist path: "script" filename: "step.yml" } inputs { key: "script" value { string_value: "echo 1" } } }
        steps: {name: "b", step: {protocol: local, path: [".", "x"]}}
        env { key: "A" value: "b" }
    "#;
    let document = read_text(text).unwrap();
    let Body::Sequence(sequence) = &document.definition.body else { panic!("{document:?}") };
    assert!(matches!(&sequence.steps[0].action, Action::Script(script) if script.source() == "echo 1"));
    assert_eq!(sequence.steps.len(), 2);
    let whole =
        read_text("spec { spec { inputs { key: \"a\" value { type: string } } } } definition { type: exec exec { command: \"x\" } }");
    assert_eq!(whole.unwrap().spec.inputs.len(), 1);
}

#[test]
fn a_text_that_is_no_definition_says_why() {
    let fault = read_text("type: stepz").unwrap_err().to_string();
    assert!(fault.contains("stepz"), "{fault}");
    assert_eq!(read_text("").unwrap_err().to_string(), "at least one of `script`, `action`, `run` or `exec` must be provided");
    assert_eq!(read_text("type: exec").unwrap_err().to_string(), "`exec.command` needs at least one item");
}

#[test]
fn kinds_have_the_numbers_of_the_wire() {
    let message = compiled("spec: {inputs: {a: {type: struct}}}\n---\nexec: {command: [x]}\n");
    assert_eq!(message.spec.unwrap().spec.unwrap().inputs["a"].r#type(), ValueType::Struct);
}
