//! References in a document: a text, or a map with `git:` or `oci:` (original.md A.5).

use super::keys::{Fields, Shape};
use super::reader::{Reader, uncounted};
use crate::diagnostic::{Problem, Verdict};
use crate::document::yaml::Node;
use crate::expression::Template;
use crate::reference::{GitReference, OciReference, ReferenceError, StepReference, with_scheme};
use std::sync::Arc;

const REFERENCE: Shape = Shape { name: "a reference", keys: &["git", "oci"], synonyms: &[] };

const GIT: Shape = Shape {
    name: "`git`",
    keys: &["url", "rev", "dir", "file"],
    synonyms: &[
        ("ref", "did you mean `rev`?"),
        ("revision", "did you mean `rev`?"),
        ("version", "did you mean `rev`?"),
        ("branch", "did you mean `rev`?"),
        ("tag", "did you mean `rev`?"),
        ("commit", "did you mean `rev`?"),
        ("path", "did you mean `dir`?"),
        ("filename", "did you mean `file`?"),
    ],
};

const OCI: Shape = Shape {
    name: "`oci`",
    keys: &["registry", "repository", "tag", "dir", "file"],
    synonyms: &[
        ("url", "`url` is now `registry` and `repository`"),
        ("version", "`version` is now `tag`"),
        ("digest", "a digest stands in `tag`: `sha256:...`"),
        ("path", "did you mean `dir`?"),
        ("filename", "did you mean `file`?"),
    ],
};

impl<'t> Reader<'t> {
    /// The value of `step` or `func`.
    pub(super) fn reference(&mut self, node: &Node<'t>) -> Option<StepReference> {
        if node.as_map().is_some() {
            return self.reference_object(node);
        }
        let text = self.string(node, "a reference")?;
        if let Some(known) = self.references.get(&text) {
            return Some(known.clone());
        }
        let reference = match StepReference::parse(&text, self.dialect) {
            Ok(reference) => reference,
            Err(fault) => {
                self.report_reference(node, &text, fault);
                return None;
            }
        };
        if let StepReference::Dynamic(template) = &reference {
            self.scrutinise(template, node);
        }
        if let StepReference::Local(local) = &reference
            && let Some(last) = local.path.last()
            && local.file.is_none()
            && last.ends_with(".yaml")
        {
            let message = format!("`{last}` is taken as a directory: the name of a definition file ends in `.yml`");
            self.warning("yaml-extension", node, message, "rename the file");
        } else if !matches!(reference, StepReference::Dynamic(_)) {
            self.references.insert(text, reference.clone());
        }
        Some(reference)
    }

    fn report_reference(&mut self, node: &Node<'t>, text: &str, fault: ReferenceError) {
        let (code, place) = match &fault {
            ReferenceError::Expression(error) => ("expression", self.place_within(node, text, error.span.clone())),
            _ => ("reference", uncounted(node.span)),
        };
        let problem = Problem::error(code, fault.to_string(), Some(place));
        self.report(match fault.hint() {
            Some(hint) => problem.with_hint(hint),
            None => problem,
        });
    }

    fn reference_object(&mut self, node: &Node<'t>) -> Option<StepReference> {
        let fields = self.fields(node, &REFERENCE, Verdict::Warning)?;
        match (fields.get("git"), fields.get("oci")) {
            (Some(git), None) => self.git(git).map(Box::new).map(StepReference::Git),
            (None, Some(oci)) => self.oci(oci).map(Box::new).map(StepReference::Oci),
            (Some(_), Some(oci)) => {
                let message = "cannot use both git: and oci: fields, please specify only one step location";
                self.error("reference", oci, message);
                None
            }
            (None, None) => {
                self.error("reference", node, "field git: or oci: required");
                None
            }
        }
    }

    fn git(&mut self, node: &Node<'t>) -> Option<GitReference> {
        let fields = self.fields(node, &GIT, Verdict::Warning)?;
        let revision = self.required(node, &fields, "rev", "git");
        let url = self.required(node, &fields, "url", "git");
        let dir = self.path(&fields);
        let file = self.file(&fields);
        let (revision, (at, url)) = (revision?, url?);
        let (at_revision, revision) = revision;
        if revision.contains("${{") {
            let message = "`rev` is never expanded: `${{` stays as it is";
            self.warning("rev-with-expression", at_revision, message, "make the whole reference a text with an expression");
        }
        let url = self.parsed(with_scheme(&url).into(), at);
        Some(GitReference { url, revision, path: dir?, file: file? })
    }

    fn oci(&mut self, node: &Node<'t>) -> Option<OciReference> {
        let fields = self.fields(node, &OCI, Verdict::Warning)?;
        let [tag, registry, repository] = ["tag", "registry", "repository"].map(|key| self.required(node, &fields, key, "oci"));
        let path = self.path(&fields);
        let file = self.file(&fields);
        let mut part = |(at, text): (&Node<'t>, Arc<str>)| -> Template { self.parsed(text, at) };
        let (tag, registry, repository) = (part(tag?), part(registry?), part(repository?));
        Some(OciReference { registry, repository, tag, path: path?, file: file? })
    }

    /// A field that must be there, with its place.
    fn required<'n>(&mut self, map: &'n Node<'t>, fields: &Fields<'n, 't>, key: &str, kind: &str) -> Option<(&'n Node<'t>, Arc<str>)> {
        match fields.get(key).filter(|node| node.source_text() != Some("")) {
            Some(node) => Some((node, self.string(node, &format!("`{key}`"))?)),
            None => {
                self.error("reference", map, format!("field {key} in {kind}: required"));
                None
            }
        }
    }

    /// `dir` in parts; without one, none.
    fn path(&mut self, fields: &Fields<'_, 't>) -> Option<Vec<Arc<str>>> {
        let Some(node) = fields.get("dir") else { return Some(Vec::new()) };
        let dir = self.string(node, "`dir`")?;
        if !self.expect_no_expression(node, &dir, "dir") {
            return None;
        }
        Some(dir.split('/').filter(|part| !part.is_empty()).map(|part| self.share(part)).collect())
    }

    fn file(&mut self, fields: &Fields<'_, 't>) -> Option<Option<Arc<str>>> {
        let Some(node) = fields.get("file") else { return Some(None) };
        let file = self.string(node, "`file`")?;
        let is_literal = self.expect_no_expression(node, &file, "file");
        is_literal.then_some((!file.is_empty()).then_some(file))
    }

    fn expect_no_expression(&mut self, node: &Node<'t>, text: &str, key: &str) -> bool {
        if !text.contains("${{") {
            return true;
        }
        let message = format!("`{key}` cannot hold an expression");
        self.error_with_hint("expression-not-allowed", node, message, "make the whole reference a text with an expression");
        false
    }
}
