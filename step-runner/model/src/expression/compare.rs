//! Any two values compare (original.md C.7). Marks play no part.

use crate::value::{Data, Object, Value};
use std::cmp::Ordering;

/// Different kinds are never equal and are ordered null, boolean, number, string, array, object.
pub(super) fn order(left: &Value, right: &Value) -> Ordering {
    match (left.data(), right.data()) {
        (Data::Null, Data::Null) => Ordering::Equal,
        (Data::Boolean(left), Data::Boolean(right)) => left.cmp(right),
        (Data::Number(left), Data::Number(right)) => numbers(*left, *right),
        (Data::String(left), Data::String(right)) => left.as_bytes().cmp(right.as_bytes()),
        (Data::Array(left), Data::Array(right)) => arrays(left, right),
        (Data::Object(left), Data::Object(right)) => objects(left, right),
        _ => left.kind().cmp(&right.kind()),
    }
}

/// Expressions give no NaN; where one comes in from elsewhere it equals itself and comes last.
fn numbers(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

/// Element by element; of two that begin alike the shorter comes first.
fn arrays(left: &[Value], right: &[Value]) -> Ordering {
    let different = left.iter().zip(right).map(|(left, right)| order(left, right)).find(|order| order.is_ne());
    different.unwrap_or_else(|| left.len().cmp(&right.len()))
}

/// By length, then keys, then values. The order of the keys does not matter.
fn objects(left: &Object, right: &Object) -> Ordering {
    let by_length = left.len().cmp(&right.len());
    if by_length.is_ne() {
        return by_length;
    }
    let (left, right) = (sorted(left), sorted(right));
    let keys = left.iter().map(|(key, _)| key).cmp(right.iter().map(|(key, _)| key));
    let values = || left.iter().zip(&right).map(|((_, left), (_, right))| order(left, right)).find(|order| order.is_ne());
    keys.then_with(|| values().unwrap_or(Ordering::Equal))
}

/// By the bytes of the keys.
pub(super) fn sorted(object: &Object) -> Vec<(&str, &Value)> {
    let mut entries: Vec<_> = object.iter().map(|(key, value)| (&**key, value)).collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

/// False, null, 0, "", [] and {} are not.
pub(super) fn is_truthy(value: &Value) -> bool {
    match value.data() {
        Data::Null => false,
        Data::Boolean(boolean) => *boolean,
        Data::Number(number) => *number != 0.0,
        Data::String(text) => !text.is_empty(),
        Data::Array(items) => !items.is_empty(),
        Data::Object(object) => !object.is_empty(),
    }
}
