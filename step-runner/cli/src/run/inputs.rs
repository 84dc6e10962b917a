//! Inputs from the command line, read by what the step declares.

use super::settings::GivenInput;
use step_console::exit::Complaint;
use step_model::document::raw::read_value;
use step_model::document::{Dialect, Input, Spec, ValueTemplate};
use step_model::expression::Template;
use step_model::expression::nearest;
use step_model::value::{Data, Kind, Value};

/// The inputs as an invocation has them. `elsewhere` are the names of inputs that the invocation has already. Without a spec nobody knows the types: values are then read as YAML says.
/// # Errors
/// Unknown names, values of another type, and required inputs that were not given, all at once.
pub fn read(
    spec: Option<&Spec>,
    given: &[(String, GivenInput)],
    elsewhere: &[&str],
) -> Result<Vec<(Template, ValueTemplate)>, Vec<Complaint>> {
    let mut inputs = Vec::new();
    let mut problems = Vec::new();
    for (name, text) in given {
        let declared = match spec.map(|spec| declared(spec, name)) {
            Some(None) => {
                problems.push(unknown(name, spec.into_iter().flat_map(|spec| &spec.inputs).map(|(name, _)| &**name).collect()));
                continue;
            }
            Some(Some(input)) => Some(input),
            None => None,
        };
        match value(declared, text) {
            Ok(value) => inputs.push((Template::literal(name.as_str()), value)),
            Err(problem) => problems.push(Complaint::new(format!("input `{name}`: {problem}"))),
        }
    }
    for (name, input) in spec.into_iter().flat_map(|spec| &spec.inputs) {
        if input.default.is_none() && !elsewhere.contains(&&**name) && !given.iter().any(|(known, _)| **known == **name) {
            problems.push(missing(name, input));
        }
    }
    if problems.is_empty() { Ok(inputs) } else { Err(problems) }
}

fn declared<'a>(spec: &'a Spec, name: &str) -> Option<&'a Input> {
    spec.inputs.iter().find(|(known, _)| **known == *name).map(|(_, input)| input)
}

fn unknown(name: &str, known: Vec<&str>) -> Complaint {
    let problem = Complaint::new(format!("the step has no input `{name}`"));
    match nearest(name, known.iter().copied()) {
        Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
        None if known.is_empty() => problem.with_hint("it takes no inputs"),
        None => problem.with_hint(format!("its inputs are `{}`", known.join("`, `"))),
    }
}

fn missing(name: &str, input: &Input) -> Complaint {
    let problem = Complaint::new(format!("input `{name}` is required, but not given"));
    let described = input.description.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
    problem.with_hint(format!("`--input {name}=...`, {} {}{described}", if input.kind == Kind::Array { "an" } else { "a" }, input.kind))
}

fn value(declared: Option<&Input>, text: &GivenInput) -> Result<ValueTemplate, String> {
    match text {
        GivenInput::Plain(text) => {
            let value = read_value(text, declared.map(|input| input.kind)).map_err(|problem| problem.message)?;
            Ok(literal(&value))
        }
        GivenInput::Yaml(text) => {
            let value = read_value(text, None).map_err(|problem| problem.message)?;
            template(&value)
        }
    }
}

/// A value in which nothing is an expression.
fn literal(value: &Value) -> ValueTemplate {
    match value.data() {
        Data::String(text) => ValueTemplate::Text(Template::literal(text.clone())),
        Data::Array(items) => ValueTemplate::Array(items.iter().map(literal).collect()),
        Data::Object(object) => {
            ValueTemplate::Object(object.iter().map(|(key, value)| (Template::literal(key.clone()), literal(value))).collect())
        }
        _ => ValueTemplate::Scalar(value.clone()),
    }
}

/// The value, when nothing in it is an expression.
pub fn literal_value(template: &ValueTemplate) -> Option<Value> {
    Some(match template {
        ValueTemplate::Scalar(value) => value.clone(),
        ValueTemplate::Text(text) => text.as_literal()?.into(),
        ValueTemplate::Array(items) => Value::array(items.iter().map(literal_value).collect::<Option<Vec<_>>>()?),
        ValueTemplate::Object(entries) => {
            let pair = |(key, value): &(Template, ValueTemplate)| Some((key.as_literal()?.to_owned(), literal_value(value)?));
            Value::object(entries.iter().map(pair).collect::<Option<Vec<_>>>()?)
        }
    })
}

/// The original pastes its values into a definition, where a text may hold expressions.
fn template(value: &Value) -> Result<ValueTemplate, String> {
    Ok(match value.data() {
        Data::String(text) => ValueTemplate::Text(Template::parse(text.clone(), Dialect::Steps).map_err(|fault| fault.message)?),
        Data::Array(items) => ValueTemplate::Array(items.iter().map(template).collect::<Result<_, _>>()?),
        Data::Object(object) => ValueTemplate::Object(
            object.iter().map(|(key, value)| Ok((Template::literal(key.clone()), template(value)?))).collect::<Result<_, String>>()?,
        ),
        _ => ValueTemplate::Scalar(value.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Spec {
        let input = |kind, default: Option<Value>| Input { kind, default, sensitive: false, description: None, template: false };
        let inputs = [
            ("version", input(Kind::String, Some("1".into()))),
            ("age", input(Kind::Number, Some(1.0.into()))),
            ("hungry", input(Kind::Boolean, Some(false.into()))),
            ("likes", input(Kind::Struct, Some(Value::object([("color", Value::from("red"))])))),
            ("names", input(Kind::Array, Some(Value::array([])))),
        ];
        Spec { inputs: inputs.into_iter().map(|(name, input)| (name.into(), input)).collect(), ..Spec::default() }
    }

    fn plain(name: &str, text: &str) -> (String, GivenInput) {
        (name.into(), GivenInput::Plain(text.into()))
    }

    fn yaml(name: &str, text: &str) -> (String, GivenInput) {
        (name.into(), GivenInput::Yaml(text.into()))
    }

    fn text(text: &str) -> ValueTemplate {
        ValueTemplate::Text(Template::literal(text))
    }

    fn values(given: &[(String, GivenInput)]) -> Vec<ValueTemplate> {
        read(Some(&spec()), given, &[]).expect("no problem").into_iter().map(|(_, value)| value).collect()
    }

    #[test]
    fn the_declared_type_decides_how_a_value_is_read() {
        let given = [
            plain("version", "1.10"),
            plain("age", "1.5e3"),
            plain("hungry", "true"),
            plain("likes", "{color: blue, n: 2}"),
            plain("names", "[\"a\", b]"),
        ];
        let likes = ValueTemplate::Object(vec![
            (Template::literal("color"), text("blue")),
            (Template::literal("n"), ValueTemplate::Scalar(2.0.into())),
        ]);
        let names = ValueTemplate::Array(vec![text("a"), text("b")]);
        let scalar = |value: Value| ValueTemplate::Scalar(value);
        assert_eq!(values(&given), [text("1.10"), scalar(1500.0.into()), scalar(true.into()), likes, names]);
    }

    #[test]
    fn what_the_original_reads_as_yaml_is_read_so() {
        assert_eq!(values(&[yaml("version", "1.50")]), [ValueTemplate::Scalar(1.5.into())]);
        assert_eq!(values(&[yaml("age", "text")]).len(), 1);
    }

    #[test]
    fn a_literal_holds_no_expression() {
        let value = values(&[plain("version", "${{ env.HOME }}")]).remove(0);
        let ValueTemplate::Text(template) = value else { panic!("not a text: {value:?}") };
        assert_eq!(template.as_literal(), Some("${{ env.HOME }}"));
    }

    #[test]
    fn every_problem_is_told_at_once() {
        let mut spec = spec();
        spec.inputs.push(("who".into(), Input { default: None, ..spec.inputs[0].1.clone() }));
        let given = [plain("vesion", "1"), plain("age", "old"), plain("hungry", "yes please"), plain("likes", "{a: "), plain("x", "")];
        let problems = read(Some(&spec), &given, &[]).expect_err("problems");
        let told: Vec<String> = problems.iter().map(|problem| format!("{}\n  {}", problem.message, problem.hints.join("\n  "))).collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        the step has no input `vesion`
          did you mean `version`?
        input `age`: expected a number, found a string
          
        input `hungry`: expected a boolean, found a string
          
        input `likes`: not YAML: unclosed bracket '{'
          
        the step has no input `x`
          its inputs are `version`, `age`, `hungry`, `likes`, `names`, `who`
        input `who` is required, but not given
          `--input who=...`, a string
        ");
        let none = read(Some(&Spec::default()), &[plain("x", "")], &[]).expect_err("a problem");
        assert_eq!(none[0].hints, ["it takes no inputs"]);
    }

    #[test]
    fn without_a_spec_yaml_decides() {
        let values = read(None, &[plain("a", "1.10"), plain("b", "x")], &[]).expect("no problem");
        assert_eq!(values, [(Template::literal("a"), ValueTemplate::Scalar(1.1.into())), (Template::literal("b"), text("x"))]);
    }
}
