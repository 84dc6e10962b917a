//! What stands for a secret in a result.

use step_model::masking::{MASK, Secrets};
use step_model::reference::Digest;
use step_model::value::{Data, Value};

/// Replaces sensitive values by a mark that says what kind of value it was and lets whoever has the key recognise it:
/// `[MASKED string 9f86d081]`. In a text that only contains a secret, the secret becomes `[MASKED]`.
#[derive(Debug, Clone)]
pub struct Redaction {
    secrets: Secrets,
    key: Vec<u8>,
}

impl Redaction {
    /// The key makes marks of different jobs differ: a value that is guessed cannot be compared with them. Replay is given the same key.
    pub fn new(secrets: Secrets, key: impl Into<Vec<u8>>) -> Self {
        Self { secrets, key: key.into() }
    }

    /// Takes newly known secrets into account.
    pub fn update(&mut self, secrets: &Secrets) {
        self.secrets = secrets.clone();
    }

    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The value as it may be shown: what is sensitive in it is a mark.
    pub fn value(&self, value: &Value) -> Value {
        if value.is_sensitive() {
            return self.mark(value).into();
        }
        match value.data() {
            Data::Null | Data::Boolean(_) | Data::Number(_) => value.clone(),
            Data::String(text) => self.text_of(text, value).into(),
            Data::Array(items) => Value::array(items.iter().map(|item| self.value(item))),
            Data::Object(object) => {
                Value::object(object.iter().map(|(key, value)| (self.secrets.mask(key).into_owned(), self.value(value))))
            }
        }
    }

    /// The same where only text can stand: environment, exports, commands.
    pub fn text(&self, value: &Value) -> String {
        match value.data() {
            _ if value.is_sensitive() => self.mark(value),
            Data::String(text) => self.text_of(text, value),
            _ => self.secrets.mask(&self.value(value).to_json().to_string()).into_owned(),
        }
    }

    fn text_of(&self, text: &str, value: &Value) -> String {
        let masked = self.secrets.mask(text);
        // All of it is a secret that nobody marked: a masked variable that came by the environment.
        if masked == MASK && text != MASK { self.mark(value) } else { masked.into_owned() }
    }

    /// What stands for this value: its kind, and 32 bits of a hash that only the key can repeat.
    /// A mark stays what it is.
    pub fn mark(&self, value: &Value) -> String {
        if let Some(mark) = value.as_str().filter(|text| is_mark(text)) {
            return mark.to_owned();
        }
        let kind = value.kind().name();
        let content = match value.data() {
            Data::String(text) => text.to_string(),
            _ => value.to_json().to_string(),
        };
        let inner = Digest::of(&[kind.as_bytes(), b"\0", content.as_bytes()].concat());
        let outer = Digest::of(&[self.key.as_slice(), inner.bytes()].concat());
        let [a, b, c, d, ..] = *outer.bytes();
        format!("[MASKED {kind} {a:02x}{b:02x}{c:02x}{d:02x}]")
    }
}

/// Whether a text is the mark of a value.
pub(super) fn is_mark(text: &str) -> bool {
    let Some(inside) = text.strip_prefix("[MASKED ").and_then(|rest| rest.strip_suffix(']')) else { return false };
    inside.split_once(' ').is_some_and(|(_, hash)| hash.len() == 8 && hash.bytes().all(|digit| digit.is_ascii_hexdigit()))
}
