//! What a server says about a refusal: GitLab in JSON, stores of objects in XML.

use serde_json::Value as Json;

/// No message is longer: it goes into a log.
const LONGEST: usize = 300;

/// The message of the body of an answer. `None`: there is none that a person could read.
pub fn message_of(body: &str) -> Option<String> {
    let found = match serde_json::from_str::<Json>(body) {
        Ok(json) => json.get("message").or_else(|| json.get("error")).map(of_json),
        Err(_) => of_xml(body),
    }?;
    let printable: String = found.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(LONGEST).collect();
    Some(printable.trim().to_owned()).filter(|message| !message.is_empty())
}

/// A text, or texts for each field.
fn of_json(message: &Json) -> String {
    match message {
        Json::String(text) => text.clone(),
        Json::Array(texts) => texts.iter().map(of_json).collect::<Vec<_>>().join(", "),
        Json::Object(fields) => fields.iter().map(|(field, value)| format!("{field}: {}", of_json(value))).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn of_xml(body: &str) -> Option<String> {
    let element = |name: &str| {
        let (_, rest) = body.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(text, _)| text.to_owned())
    };
    match (element("Code"), element("Message")) {
        (Some(code), Some(message)) => Some(format!("{code}: {message}")),
        (code, message) => code.or(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_why_in_every_form() {
        assert_eq!(message_of(r#"{"message": "403 Forbidden"}"#).as_deref(), Some("403 Forbidden"));
        assert_eq!(message_of(r#"{"message": {"base": ["is too large", "is old"]}}"#).as_deref(), Some("base: is too large, is old"));
        assert_eq!(message_of("<Error><Code>AccessDenied</Code><Message>No.</Message></Error>").as_deref(), Some("AccessDenied: No."));
        assert_eq!(message_of("<Error><Message>No.</Message></Error>").as_deref(), Some("No."));
    }

    #[test]
    fn what_is_no_message_is_none() {
        for body in ["", "<html>oh", "[]", "{}", "<Error><Code>Broken", "plain text"] {
            assert_eq!(message_of(body), None, "{body}");
        }
        assert_eq!(message_of(&format!(r#"{{"message": "{}"}}"#, "x".repeat(10_000))).map(|message| message.len()), Some(LONGEST));
        assert_eq!(message_of(r#"{"message": "a\u001b[31mb"}"#).as_deref(), Some("a [31mb"));
    }
}
