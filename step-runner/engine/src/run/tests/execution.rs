use super::*;
use step_model::result::Status;

const GREET: &str = r#"
spec:
  inputs:
    name: {type: string, default: ann}
    age: {type: number, default: 1}
    hungry: {type: boolean, default: false}
    likes: {type: struct, default: {color: red}}
  outputs:
    name: {type: string}
---
exec: {command: [greet, "${{ inputs.name }}", "${{ inputs.age }}", "${{ inputs.likes }}", "${{ output_file }}", "${{ export_file }}"]}
"#;

/// Writes its first argument as its output and its export.
fn greeting(_: &str, process: &crate::effect::Process) -> Reply {
    match process.command[0].as_str() {
        Some("greet") => {
            let name = process.command[1].to_json();
            writes(&format!("{{\"name\":\"name\",\"value\":{name}}}\n"), &format!("{{\"name\":\"NAME\",\"value\":{name}}}\n"))
        }
        _ => exits(0),
    }
}

fn greeting_job(run: &str) -> World {
    World::new(run).with_file("/job/greet/step.yml", GREET).behaving(greeting)
}

#[test]
fn run_01_a_step_without_inputs_uses_its_defaults() {
    let world = greeting_job("- {name: g, step: ./greet}").finished();
    assert_eq!(world.run().status(), Status::Success);
    assert_eq!(world.output("g", "name"), Some("ann".into()));
    assert_eq!(world.node("g").exports, [("NAME".into(), "ann".into())]);
}

#[test]
fn run_02_a_given_input_counts() {
    let world = greeting_job("- {name: g, step: ./greet, inputs: {name: bo}}").finished();
    assert_eq!(world.output("g", "name"), Some("bo".into()));
    assert_eq!(world.node("g").exports, [("NAME".into(), "bo".into())]);
}
