//! Documents as `SpecDefinition` messages, the way GitLab's step-runner compiles them, and back.

mod compile;
mod parse;
#[cfg(test)]
mod tests;
mod text;

pub use compile::{compile, compile_step, environment};
pub use parse::{DefinitionFault, document_of, environment_of, step_of};
pub use text::{TextFault, read_text};

/// The file that a reference means when it names none (original.md A.5).
const STEP_FILE: &str = "step.yml";
/// The same in the functions dialect.
const FUNCTION_FILE: &str = "func.yml";

/// The name of the bundled script step, `dist://script`.
const SCRIPT: &str = "script";
/// What a script of a GitLab job is called, as an input of a run request.
const SCRIPT_LEGACY: &str = "builtin://script_legacy";

/// An expression that yields its opening bracket: the one way to write it as text that both dialects read.
const LITERAL_OPENING: &str = "${{ '${{' }}";
