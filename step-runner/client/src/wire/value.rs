//! Values as `google.protobuf.Value`: numbers are doubles, objects lose the order of their keys, and marks are lost.

use prost_types::value::Kind;
use prost_types::{ListValue, NullValue, Struct};
use step_model::value::{Data, MAXIMUM_DEPTH, Value};

/// A value for the wire.
pub fn to_proto(value: &Value) -> prost_types::Value {
    let kind = match value.data() {
        Data::Null => Kind::NullValue(NullValue::NullValue.into()),
        Data::Boolean(boolean) => Kind::BoolValue(*boolean),
        Data::Number(number) => Kind::NumberValue(*number),
        Data::String(text) => Kind::StringValue(text.to_string()),
        Data::Array(items) => Kind::ListValue(ListValue { values: items.iter().map(to_proto).collect() }),
        Data::Object(object) => {
            Kind::StructValue(Struct { fields: object.iter().map(|(key, value)| (key.to_string(), to_proto(value))).collect() })
        }
    };
    prost_types::Value { kind: Some(kind) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the value nests deeper than {MAXIMUM_DEPTH} levels")]
pub struct TooDeep;

/// A value from the wire. One that says nothing is null.
/// # Errors
/// It nests deeper than values may.
pub fn from_proto(value: &prost_types::Value) -> Result<Value, TooDeep> {
    read(value, MAXIMUM_DEPTH)
}

fn read(value: &prost_types::Value, levels: usize) -> Result<Value, TooDeep> {
    Ok(match &value.kind {
        None | Some(Kind::NullValue(_)) => Value::NULL,
        Some(Kind::BoolValue(boolean)) => (*boolean).into(),
        Some(Kind::NumberValue(number)) => (*number).into(),
        Some(Kind::StringValue(text)) => text.as_str().into(),
        Some(Kind::ListValue(list)) => {
            let levels = levels.checked_sub(1).ok_or(TooDeep)?;
            Value::array(list.values.iter().map(|item| read(item, levels)).collect::<Result<Vec<_>, _>>()?)
        }
        Some(Kind::StructValue(object)) => {
            let levels = levels.checked_sub(1).ok_or(TooDeep)?;
            let entries = object.fields.iter().map(|(key, value)| Ok((key.as_str(), read(value, levels)?)));
            Value::object(entries.collect::<Result<Vec<_>, _>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_as_it_was() {
        let json = serde_json::json!({"a": [1.5, null, true, "text"], "b": {"c": {}}});
        assert_eq!(from_proto(&to_proto(&Value::from_json(&json))).unwrap().to_json(), json);
        assert_eq!(from_proto(&prost_types::Value { kind: None }), Ok(Value::NULL));
    }

    #[test]
    fn a_value_that_nests_too_deep_is_refused() {
        let nested = |levels| (0..levels).fold(Value::NULL, |inner, _| Value::array([inner]));
        assert_eq!(from_proto(&to_proto(&nested(32))).unwrap().depth(), 32);
        assert_eq!(from_proto(&to_proto(&nested(33))), Err(TooDeep));
        assert_eq!(TooDeep.to_string(), "the value nests deeper than 32 levels");
    }
}
