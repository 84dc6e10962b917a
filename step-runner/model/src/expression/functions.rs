//! The standard library (original.md C.7): `str`, `num`, `bool`.

use super::compare::is_truthy;
use super::fault::Cause;
use super::lex::number_length;
use super::syntax::Function;
use super::text::write_text;
use crate::document::Dialect;
use crate::value::{Data, Value};

/// A function as text.
pub(super) const TEXT: &str = "<func>";

/// The result is sensitive when anything in the argument is.
pub(super) fn call(function: Function, value: &Value, dialect: Dialect) -> Result<Value, Cause> {
    let result = match function {
        Function::Str => text(value, dialect),
        Function::Num => number(value)?.into(),
        Function::Bool => is_truthy(value).into(),
    };
    Ok(result.marked(value.holds_sensitive()))
}

/// What the value would be among other text.
fn text(value: &Value, dialect: Dialect) -> Value {
    if let Data::String(_) = value.data() {
        return value.clone();
    }
    let mut text = String::new();
    write_text(&mut text, value, dialect);
    text.into()
}

/// A number stays what it is; a string is read as the language reads numbers, with a sign if there is one.
fn number(value: &Value) -> Result<f64, Cause> {
    let text = match value.data() {
        Data::Number(number) => return Ok(*number),
        Data::String(text) => text,
        _ => return Err(Cause::NotNumeric(value.kind())),
    };
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && number_length(digits) == digits.len();
    match text.parse::<f64>() {
        Ok(number) if is_number && number.is_finite() => Ok(number),
        Ok(_) if is_number => Err(Cause::TooLarge),
        _ => Err(Cause::NotNumeric(value.kind())),
    }
}
