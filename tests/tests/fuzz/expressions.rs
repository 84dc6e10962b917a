//! Expressions: total, deterministic, and marks are never lost.

use super::mutation::{config, mutated};
use proptest::prelude::*;
use step_model::document::Dialect;
use step_model::expression::{Scope, Template};
use step_model::value::Value;

struct Context;

impl Scope for Context {
    fn context(&self, name: &str) -> Option<Value> {
        match name {
            "inputs" => Some(Value::from_json(
                &serde_json::json!({"a": "text", "n": 1.5, "l": [1, "a", true, null], "o": {"b": {"c": [1]}}, "e": "", "type": "t", "my-key": 1}),
            )),
            "env" => Some(Value::from_json(&serde_json::json!({"HOME": "/root", "EMPTY": ""}))),
            "secret" => Some(Value::from("hidden").sensitive()),
            "work_dir" => Some(Value::from("/work")),
            _ => None,
        }
    }
}

fn fixtures() -> Vec<String> {
    [
        "plain text",
        "${{ inputs.a }}",
        "a ${{ inputs.n + 1 }} b ${{ -inputs.n * 2 % 3 }}",
        "${{ inputs.l[0] == 1 && inputs.o.b[\"c\"] || 'none' }}",
        "${{ {a: 1, \"b\": [1, 2,], (inputs.a): null,} }}",
        "${{ \"x${{ inputs.a }}y\\n\\u0041\" + 'raw ${{ }}' }}",
        "${{ str(inputs.o) + str(null) + str(num(\"1e3\")) }}",
        "${{ !bool(inputs.e) != (1 <= 2) }}",
        "\\${{ inputs.a }} }} {{ ${{ inputs.my-key }} ${{ inputs.type }}",
        "${{ secret }} and ${{ [secret, {k: secret}] }}",
        "${{ inputs.nope || env.EMPTY || work_dir }}",
        "${{ 12.3.4 + .5e-3 / 0 }}",
    ]
    .map(str::to_owned)
    .to_vec()
}

proptest! {
    #![proptest_config(config(6000))]

    #[test]
    fn every_text_is_a_template_or_an_error_with_its_place(text in mutated(fixtures()), functions in any::<bool>()) {
        let dialect = if functions { Dialect::Functions } else { Dialect::Steps };
        match Template::parse(text.as_str(), dialect) {
            Ok(template) => {
                prop_assert_eq!(template.source(), text.as_str());
                for path in template.paths() {
                    prop_assert!(path.offset <= text.len() && !path.parts.is_empty());
                }
                let (first, second) = (template.evaluate(&Context), template.evaluate(&Context));
                prop_assert_eq!(format!("{first:?}"), format!("{second:?}"));
                if let Err(error) = first {
                    prop_assert!(!error.message.is_empty() && error.span.end <= text.len(), "{:?}", error);
                }
                if let Some(literal) = template.as_literal() {
                    prop_assert!(template.paths().is_empty(), "{}", literal);
                }
            }
            Err(error) => {
                prop_assert!(!error.message.is_empty());
                prop_assert!(error.span.start <= error.span.end && error.span.end <= text.len(), "{:?}", error);
            }
        }
    }

    #[test]
    fn a_secret_never_becomes_a_plain_value(text in mutated(fixtures())) {
        let Ok(template) = Template::parse(text.as_str(), Dialect::Functions) else { return Ok(()) };
        if let Ok(value) = template.evaluate_text(&Context)
            && value.as_str().is_some_and(|text| text.contains("hidden"))
            && !text.contains("hidden")
        {
            prop_assert!(value.is_sensitive(), "{:?}", value);
        }
    }

    #[test]
    fn a_literal_means_itself(text in any::<String>()) {
        let template = Template::literal(text.as_str());
        let value = template.evaluate(&Context).expect("a literal has no expression");
        prop_assert_eq!(value.as_str(), Some(text.as_str()));
    }
}
