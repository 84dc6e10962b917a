//! A definition as protobuf text: the file of `--text-proto-step-file`.

use super::parse::{DefinitionFault, document_of};
use ci_proto::step_runner::{Definition, SpecDefinition};
use prost_reflect::DynamicMessage;
use step_model::document::{Dialect, StepDocument};

/// Why a text is no definition.
#[derive(Debug, thiserror::Error)]
pub enum TextFault {
    #[error("{0}")]
    Syntax(String),
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Definition(Vec<DefinitionFault>),
}

/// Reads a message `Definition` in text format, as the original does; a `SpecDefinition` is taken as well.
/// # Errors
/// The text is not of the format, or says no definition.
pub fn read_text(text: &str) -> Result<StepDocument, TextFault> {
    let definition = match parse::<Definition>("Definition", text) {
        Ok(definition) => SpecDefinition { spec: None, definition: Some(definition) },
        Err(fault) => parse::<SpecDefinition>("SpecDefinition", text).map_err(|_| TextFault::Syntax(fault))?,
    };
    document_of(&definition, Dialect::Steps).map_err(TextFault::Definition)
}

fn parse<M: prost::Message + Default>(name: &str, text: &str) -> Result<M, String> {
    let description = ci_proto::message(name).ok_or_else(|| format!("there is no message {name}"))?;
    let message = DynamicMessage::parse_text_format(description, text).map_err(|fault| fault.to_string())?;
    message.transcode_to().map_err(|fault| fault.to_string())
}
