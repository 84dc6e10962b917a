//! Runs on values, from a job to its result.

use crate::effect::{Effect, Process, StepFiles};
use crate::event::{Event, Exit, FileContent, SpawnFault, SpawnFaultKind};
use crate::world::{Reply, World, at, exits, pairs, runs_on, writes};
use std::sync::Arc;
use step_model::result::{FailureKind, ResultTree, Status, StepId, Usage};
use step_model::value::Value;

mod always;
mod checks;
mod environment;
mod execution;
mod files;
mod handovers;
mod holes;
mod limits;
mod results;
mod secrets;
mod stop;

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

/// `greet` writes its first argument as its output and its export; everything else succeeds.
fn greeting(_: &str, process: &Process) -> Reply {
    match process.command.first().and_then(Value::as_str) {
        Some("greet") => {
            let name = process.command[1].to_json();
            writes(&format!("{{\"name\":\"name\",\"value\":{name}}}\n"), &format!("{{\"name\":\"NAME\",\"value\":{name}}}\n"))
        }
        _ => exits(0),
    }
}

/// A job in which `./greet` can be called.
fn greeting_job(run: &str) -> World {
    World::new(run).with_file("/job/greet/step.yml", GREET).behaving(greeting)
}

/// A definition of one command.
fn exec(command: &str) -> String {
    format!("{{}}\n---\nexec: {{command: {command}}}\n")
}
