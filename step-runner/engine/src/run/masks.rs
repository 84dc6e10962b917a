//! Which sensitive texts have been announced: each is announced once, before anything can show it.

use std::collections::BTreeSet;
use std::sync::Arc;
use step_model::value::{Data, Value};

#[derive(Debug, Default)]
pub(super) struct Masks {
    known: BTreeSet<Arc<str>>,
}

impl Masks {
    /// Takes a value as announced: whoever started the run masks it already.
    pub fn assume(&mut self, value: &Value) {
        self.announce(value);
    }

    /// The parts of a value that have to be announced. A text around a secret that is known is masked where it matters.
    pub fn announce(&mut self, value: &Value) -> Vec<Value> {
        let mut born = Vec::new();
        self.collect(value, false, &mut born);
        born
    }

    fn collect(&mut self, value: &Value, inherited: bool, born: &mut Vec<Value>) {
        let sensitive = inherited || value.is_sensitive();
        match value.data() {
            Data::Array(items) => items.iter().for_each(|item| self.collect(item, sensitive, born)),
            Data::Object(object) => object.values().for_each(|member| self.collect(member, sensitive, born)),
            Data::String(text) if sensitive => self.note(Arc::clone(text), born),
            Data::Number(number) if sensitive => self.note(Arc::from(number.to_string()), born),
            // `true` and `null` stand in every other line of a log: to mask them hides nothing.
            Data::String(_) | Data::Number(_) | Data::Boolean(_) | Data::Null => {}
        }
    }

    fn note(&mut self, text: Arc<str>, born: &mut Vec<Value>) {
        if text.is_empty() || self.known.contains(&text) || self.known.iter().any(|secret| text.contains(&**secret)) {
            return;
        }
        self.known.insert(Arc::clone(&text));
        born.push(Value::string(text).sensitive());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_announced_once_and_not_with_text_around_it() {
        let mut masks = Masks::default();
        let secret = Value::from("hunter2").sensitive();
        assert_eq!(masks.announce(&Value::array([secret.clone(), Value::from("plain")])), std::slice::from_ref(&secret));
        assert_eq!(masks.announce(&secret), []);
        assert_eq!(masks.announce(&Value::from("token=hunter2").sensitive()), []);
    }

    #[test]
    fn members_of_a_sensitive_object_are_sensitive() {
        let object = Value::object([("user", Value::from("ann")), ("pin", Value::from(4711.0)), ("admin", Value::from(true))]).sensitive();
        let announced = Masks::default().announce(&object);
        assert_eq!(announced, [Value::from("ann").sensitive(), Value::from("4711").sensitive()]);
    }
}
