//! Values of inputs, outputs and expressions: JSON with doubles, and a mark that says a value is sensitive.

use indexmap::IndexMap;
use std::fmt;
use std::sync::Arc;

/// A value and whether it is sensitive. Cheap to clone: what is large is shared.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    data: Data,
    sensitive: bool,
}

/// What a value holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    Null,
    Boolean(bool),
    /// IEEE-754 double: whole numbers are exact up to 2^53.
    Number(f64),
    String(Arc<str>),
    Array(Arc<[Value]>),
    Object(Arc<Object>),
}

/// String keys in the order in which they were written. Two objects are equal when they hold the same pairs, in any order.
pub type Object = IndexMap<Arc<str>, Value>;

/// The kinds that a value can have; all but null can be declared as the type of an input or output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Null,
    Boolean,
    Number,
    String,
    Array,
    Struct,
}

/// Values nest at most this deep (compatibility.md, limits: protobuf readers stop at 100 levels, three to an object).
pub const MAXIMUM_DEPTH: usize = 32;

impl Value {
    pub const NULL: Self = Self { data: Data::Null, sensitive: false };

    pub fn new(data: Data) -> Self {
        Self { data, sensitive: false }
    }

    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self::new(Data::String(text.into()))
    }

    pub fn array(items: impl IntoIterator<Item = Value>) -> Self {
        Self::new(Data::Array(items.into_iter().collect()))
    }

    pub fn object<K: Into<Arc<str>>>(entries: impl IntoIterator<Item = (K, Value)>) -> Self {
        Self::new(Data::Object(Arc::new(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())))
    }

    /// The same value, marked as sensitive. A mark is never taken away.
    pub fn sensitive(mut self) -> Self {
        self.sensitive = true;
        self
    }

    /// The same value, sensitive if it was or if `sensitive` says so.
    pub fn marked(mut self, sensitive: bool) -> Self {
        self.sensitive |= sensitive;
        self
    }

    /// Whether this value itself is marked. Members of an object or array may be marked on their own: see [`Value::holds_sensitive`].
    pub fn is_sensitive(&self) -> bool {
        self.sensitive
    }

    /// Whether this value or anything in it is marked.
    pub fn holds_sensitive(&self) -> bool {
        self.sensitive
            || match &self.data {
                Data::Array(items) => items.iter().any(Value::holds_sensitive),
                Data::Object(object) => object.values().any(Value::holds_sensitive),
                _ => false,
            }
    }

    pub fn data(&self) -> &Data {
        &self.data
    }

    pub fn kind(&self) -> Kind {
        match &self.data {
            Data::Null => Kind::Null,
            Data::Boolean(_) => Kind::Boolean,
            Data::Number(_) => Kind::Number,
            Data::String(_) => Kind::String,
            Data::Array(_) => Kind::Array,
            Data::Object(_) => Kind::Struct,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.data {
            Data::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_object(&self) -> Option<&Object> {
        match &self.data {
            Data::Object(object) => Some(object),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&[Value]> {
        match &self.data {
            Data::Array(items) => Some(items),
            _ => None,
        }
    }

    /// How many levels of arrays and objects this value has; a scalar has none.
    pub fn depth(&self) -> usize {
        match &self.data {
            Data::Array(items) => 1 + items.iter().map(Value::depth).max().unwrap_or(0),
            Data::Object(object) => 1 + object.values().map(Value::depth).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// As JSON. Marks are lost: this is for processes and the wire, never for people.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.data {
            Data::Null => serde_json::Value::Null,
            Data::Boolean(boolean) => (*boolean).into(),
            Data::Number(number) => json_number(*number),
            Data::String(text) => serde_json::Value::String(text.to_string()),
            Data::Array(items) => items.iter().map(Value::to_json).collect(),
            Data::Object(object) => {
                object.iter().map(|(key, value)| (key.to_string(), value.to_json())).collect::<serde_json::Map<_, _>>().into()
            }
        }
    }

    pub fn from_json(json: &serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::NULL,
            serde_json::Value::Bool(boolean) => (*boolean).into(),
            serde_json::Value::Number(number) => number.as_f64().unwrap_or(f64::NAN).into(),
            serde_json::Value::String(text) => text.as_str().into(),
            serde_json::Value::Array(items) => Self::array(items.iter().map(Self::from_json)),
            serde_json::Value::Object(object) => Self::object(object.iter().map(|(key, value)| (key.as_str(), Self::from_json(value)))),
        }
    }
}

/// Whole numbers that a double holds exactly are written without a decimal point.
fn json_number(number: f64) -> serde_json::Value {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53, checked in the line above")]
        let whole = number as i64;
        return whole.into();
    }
    serde_json::Number::from_f64(number).map_or(serde_json::Value::Null, serde_json::Value::Number)
}

impl From<bool> for Value {
    fn from(boolean: bool) -> Self {
        Self::new(Data::Boolean(boolean))
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::new(Data::Number(number))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::string(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::string(text)
    }
}

impl From<Arc<str>> for Value {
    fn from(text: Arc<str>) -> Self {
        Self::string(text)
    }
}

impl Kind {
    /// The name as files and messages write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Struct => "struct",
        }
    }

    /// The type that a definition file declares by this name. Null cannot be declared.
    pub fn declared(name: &str) -> Option<Self> {
        [Self::Boolean, Self::Number, Self::String, Self::Array, Self::Struct].into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_goes_in_and_comes_out_the_same() {
        let json = serde_json::json!({"b": [1, 1.5, null, true], "a": {"k": "v"}, "large": 1e21});
        assert_eq!(Value::from_json(&json).to_json(), json);
    }

    #[test]
    fn a_mark_inside_is_found() {
        let value = Value::array([Value::object([("password", Value::from("x").sensitive())])]);
        assert!(!value.is_sensitive());
        assert!(value.holds_sensitive());
        assert_eq!(value.depth(), 2);
    }

    #[test]
    fn null_cannot_be_declared() {
        assert_eq!(Kind::declared("struct"), Some(Kind::Struct));
        assert_eq!(Kind::declared("null"), None);
        assert_eq!(Kind::declared("int"), None);
    }
}
