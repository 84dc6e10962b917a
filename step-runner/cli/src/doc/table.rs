//! What a step takes and gives, as Markdown.

use step_model::document::{Outputs, StepDocument};
use step_model::value::{Kind, Value};

/// Ends with a newline. A step that takes and gives nothing says so.
pub fn of(document: &StepDocument) -> String {
    let mut parts = Vec::new();
    if !document.spec.inputs.is_empty() {
        let mut table = String::from("| input | type | default | |\n|---|---|---|---|\n");
        for (name, input) in &document.spec.inputs {
            let default = input.default.as_ref().map_or_else(|| "required".into(), shown);
            let description = cell(input.description.as_deref().unwrap_or_default());
            table.push_str(&row(&[format!("`{name}`"), kind(input.kind, input.sensitive), default, description]));
        }
        parts.push(table);
    }
    match &document.spec.outputs {
        Outputs::Delegate => parts.push("The outputs are those of the step that it delegates to.\n".into()),
        Outputs::Declared(outputs) if outputs.is_empty() => {}
        Outputs::Declared(outputs) => {
            let mut table = String::from("| output | type | |\n|---|---|---|\n");
            for (name, output) in outputs {
                let description = cell(output.description.as_deref().unwrap_or_default());
                table.push_str(&row(&[format!("`{name}`"), kind(output.kind, output.sensitive), description]));
            }
            parts.push(table);
        }
    }
    if parts.is_empty() { "It takes no inputs and gives no outputs.\n".into() } else { parts.join("\n") }
}

fn row(cells: &[String]) -> String {
    let cells: String = cells.iter().map(|cell| if cell.is_empty() { " |".into() } else { format!(" {cell} |") }).collect();
    format!("|{cells}\n")
}

fn kind(kind: Kind, sensitive: bool) -> String {
    if sensitive { format!("{kind}, sensitive") } else { kind.to_string() }
}

fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_json().to_string(), str::to_owned);
    if text.is_empty() { "`\"\"`".into() } else { format!("`{}`", cell(&text).replace('`', "'")) }
}

/// On one line, and without what ends a cell or begins HTML.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', r"\|").replace('<', "&lt;")
}
