//! JSON as a value, keys in the order in which they were written. `serde_json::Value` would sort them and hold everything twice.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::sync::Arc;
use step_model::value::{Object, Value};

/// Reads one JSON text.
/// # Errors
/// What is wrong, and in which column.
pub fn read(text: &str) -> Result<Value, String> {
    let value: Result<Json, _> = serde_json::from_str(text);
    value.map(|Json(value)| value).map_err(|error| error.to_string().replace(" at line 1 column ", " at column "))
}

struct Json(Value);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor).map(Json)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::NULL)
    }

    fn visit_bool<E: Error>(self, boolean: bool) -> Result<Value, E> {
        Ok(boolean.into())
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers are doubles: whole numbers are exact up to 2^53 (see `Data::Number`)")]
    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok((number as f64).into())
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers are doubles: whole numbers are exact up to 2^53 (see `Data::Number`)")]
    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok((number as f64).into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(Json(item)) = items.next_element()? {
            array.push(item);
        }
        Ok(Value::array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Object::new();
        while let Some((key, Json(value))) = entries.next_entry::<String, Json>()? {
            object.insert(Arc::from(key), value);
        }
        Ok(Value::object(object))
    }
}
