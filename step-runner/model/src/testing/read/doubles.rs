//! Fakes of steps and stubs of programs.

use super::fields::Reader;
use crate::document::Dialect;
use crate::document::yaml::Node;
use crate::reference::StepReference;
use crate::testing::suite::{Answer, Fake, Stub, Target};
use crate::testing::words::words_of;
use std::sync::Arc;

impl<'t> Reader<'t> {
    pub(super) fn fakes(&mut self, node: Option<&Node<'t>>) -> Vec<Fake> {
        let fakes = self.given(node, "fakes", |reader, value, name| reader.fake(value, name));
        fakes.into_iter().map(|given| Fake { place: given.place, ..given.value }).collect()
    }

    fn fake(&mut self, node: &Node<'t>, name: &str) -> Option<Fake> {
        let place = self.place(node.span);
        let of = match target_of(name) {
            Ok(of) => of,
            Err(why) => {
                let message = format!("`{name}` is neither the name of a step nor a reference: {why}");
                self.error("fake", node.span, message).hint("write `build`, `build/link`, `./notify` or `builtin://docker`");
                return None;
            }
        };
        let mut fake = Fake {
            of,
            name: name.into(),
            place,
            inputs: None,
            outputs: Vec::new(),
            exports: Vec::new(),
            exit: 0,
            log: None,
            files: Vec::new(),
            optional: false,
        };
        if node.is_null() {
            return Some(fake);
        }
        let fields = self.fields(node, "a fake", &["inputs", "outputs", "exports", "exit", "log", "files", "optional"])?;
        if let Some(inputs) = fields.get("inputs").and_then(|node| self.list(node, "`inputs` of a fake")) {
            fake.inputs = Some(inputs.iter().filter_map(|input| self.text(input, "the name of an input")).collect());
        }
        fake.outputs = self.given(fields.get("outputs"), "outputs", |reader, value, _| Some(reader.inner_value(value)));
        fake.exports = self.given(fields.get("exports"), "exports", |reader, value, name| reader.inner_template(value, name));
        fake.exit = fields.get("exit").and_then(|node| self.whole(node, "`exit`", 0, 255)).unwrap_or(0);
        fake.log = fields.get("log").and_then(|node| self.inner_template(node, "log"));
        fake.files = self.files(fields.get("files"));
        fake.optional = fields.get("optional").and_then(|node| self.boolean(node, "`optional`")).unwrap_or(false);
        Some(fake)
    }

    /// As a value of the test, but `inputs` are known too: those that the faked step gets.
    fn inner_value(&mut self, node: &Node<'t>) -> crate::document::ValueTemplate {
        self.with_inputs(|reader| reader.value_template(node))
    }

    fn inner_template(&mut self, node: &Node<'t>, name: &str) -> Option<crate::expression::Template> {
        self.with_inputs(|reader| reader.template(node, &format!("`{name}`")))
    }

    fn with_inputs<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let first = self.problems.len();
        let value = read(self);
        let is_other = |problem: &crate::diagnostic::Problem| {
            !(problem.code == "unknown-name" && (problem.message.starts_with("`inputs` ") || problem.message.starts_with("`env` ")))
        };
        let later = self.problems.split_off(first);
        self.problems.extend(later.into_iter().filter(is_other));
        value
    }

    pub(super) fn stubs(&mut self, node: Option<&Node<'t>>) -> Vec<Stub> {
        let stubs = self.given(node, "stubs", |reader, value, name| reader.stub(value, name));
        stubs.into_iter().map(|given| Stub { place: given.place, ..given.value }).collect()
    }

    /// Nothing, what it prints, an answer, or a list of answers.
    fn stub(&mut self, node: &Node<'t>, name: &str) -> Option<Stub> {
        if name.is_empty() || name.contains(['/', '\0', '\n']) || name == "." || name == ".." {
            self.error("stub", node.span, format!("`{name}` is no name of a program: a stub is found on PATH by its name"));
            return None;
        }
        let mut optional = false;
        let answers = match node.as_list() {
            _ if node.is_null() => vec![Answer::default()],
            Some(items) => items.iter().filter_map(|item| self.answer(item, &mut optional)).collect(),
            None => self.answer(node, &mut optional).into_iter().collect(),
        };
        if answers.is_empty() {
            if node.as_list().is_some_and(<[_]>::is_empty) {
                self.error("stub", node.span, "a stub has at least one answer").hint("write nothing for one that succeeds in silence");
            }
            return None;
        }
        Some(Stub { name: name.into(), place: self.place(node.span), answers, optional })
    }

    fn answer(&mut self, node: &Node<'t>, optional: &mut bool) -> Option<Answer> {
        if node.as_map().is_none() {
            return Some(Answer { stdout: self.template(node, "what a stub prints"), ..Answer::default() });
        }
        let fields = self.fields(node, "an answer of a stub", &["args", "exit", "stdout", "stderr", "files", "optional"])?;
        *optional |= fields.get("optional").and_then(|node| self.boolean(node, "`optional`")).unwrap_or(false);
        Some(Answer {
            args: fields.get("args").and_then(|node| self.words(node, "`args`")).unwrap_or_default(),
            exit: fields.get("exit").and_then(|node| self.whole(node, "`exit`", 0, 255)).unwrap_or(0),
            stdout: fields.get("stdout").and_then(|node| self.template(node, "`stdout`")),
            stderr: fields.get("stderr").and_then(|node| self.template(node, "`stderr`")),
            files: self.files(fields.get("files")),
        })
    }

    /// Words as a list, or as one line.
    pub(super) fn words(&mut self, node: &Node<'t>, what: &str) -> Option<Vec<Arc<str>>> {
        if let Some(items) = node.as_list() {
            return Some(items.iter().filter_map(|item| self.text(item, &format!("an item of {what}"))).collect());
        }
        let line = self.text(node, what)?;
        match words_of(&line) {
            Ok(words) => Some(words),
            Err(why) => {
                self.error("words", node.span, format!("{what}: {why}")).hint("write a list: `[docker, build, .]`");
                None
            }
        }
    }
}

/// A name on the way to a step, or a reference as a definition writes it.
fn target_of(name: &str) -> Result<Target, String> {
    let is_name = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && part.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    if name.split('/').all(is_name) {
        return Ok(Target::Step(name.split('/').map(Arc::from).collect()));
    }
    match StepReference::parse(name, Dialect::Functions) {
        Ok(StepReference::Dynamic(_)) => Err("a reference that is computed is faked by the name of its step".into()),
        Ok(reference) => Ok(Target::Reference(reference)),
        Err(fault) => Err(fault.to_string()),
    }
}
