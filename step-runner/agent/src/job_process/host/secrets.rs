//! What is masked, and what is too short for it.

use step_model::masking::{MINIMUM, Secrets};
use step_model::value::{Data, Value};

/// The secrets of a job as they become known.
#[derive(Debug)]
pub struct KnownSecrets {
    all: Secrets,
    has_warned: bool,
}

impl KnownSecrets {
    pub fn new(all: Secrets) -> Self {
        Self { all, has_warned: false }
    }

    pub fn all(&self) -> &Secrets {
        &self.all
    }

    /// Adds a sensitive value, or all that is in it. Returns a warning the first time that something is too short to be masked.
    pub fn add(&mut self, value: &Value) -> Option<String> {
        let mut is_complete = true;
        self.add_all(value, &mut is_complete);
        if is_complete || self.has_warned {
            return None;
        }
        self.has_warned = true;
        Some(format!("a sensitive value has fewer than {MINIMUM} characters, and is not masked"))
    }

    /// Truth values are not masked: to mask `true` would hide nothing.
    fn add_all(&mut self, value: &Value, is_complete: &mut bool) {
        match value.data() {
            Data::Null | Data::Boolean(_) => {}
            Data::Number(_) => *is_complete &= self.all.add(&value.to_json().to_string()).is_ok(),
            Data::String(text) => *is_complete &= self.all.add(text).is_ok(),
            Data::Array(items) => items.iter().for_each(|item| self.add_all(item, is_complete)),
            Data::Object(object) => object.values().for_each(|item| self.add_all(item, is_complete)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_value_is_masked_and_what_is_too_short_said_once() {
        let mut secrets = KnownSecrets::new(Secrets::default());
        let value = Value::object([("user", Value::from("anna-marie")), ("pin", Value::from(7.0)), ("token", Value::from(123_456.0))]);
        assert_eq!(secrets.add(&value).as_deref(), Some("a sensitive value has fewer than 4 characters, and is not masked"));
        assert_eq!(secrets.add(&Value::from("x")), None);
        assert_eq!(secrets.all().mask("anna-marie 7 123456"), "[MASKED] 7 [MASKED]");
    }
}
