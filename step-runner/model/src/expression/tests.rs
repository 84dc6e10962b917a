//! The cases of the language, and properties of any text.

mod exp;
mod language;
mod messages;
mod moa;
mod observed;
mod properties;
mod reading;
mod sensitive;

use super::*;
use serde_json::{Value as Json, json};

/// What an expression or a text gives: its JSON, or the message.
fn evaluated(source: &str, dialect: Dialect, scope: &dyn Scope) -> Result<Json, String> {
    let template = Template::parse(source, dialect).map_err(|error| error.message)?;
    template.evaluate(scope).map(|value| value.to_json()).map_err(|error| error.message)
}

fn text(source: &str, dialect: Dialect, scope: &dyn Scope) -> Result<String, String> {
    let template = Template::parse(source, dialect).map_err(|error| error.message)?;
    let value = template.evaluate_text(scope).map_err(|error| error.message)?;
    Ok(value.as_str().expect("text is a string").to_owned())
}

fn failure(source: &str, dialect: Dialect, scope: &dyn Scope) -> ExpressionError {
    match Template::parse(source, dialect).and_then(|template| template.evaluate(scope)) {
        Err(error) => error,
        Ok(value) => panic!("`{source}` is {:?}", value.to_json()),
    }
}
