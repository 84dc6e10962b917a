//! A configuration as a tree of its own: it owns its texts, knows where every value stands, and is cheap to copy and to merge.

use std::sync::Arc;
use step_model::diagnostic::{Lines, Problem};
use step_model::document::yaml::{self, Node, Resolved, Span};

/// A value and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tree {
    pub content: Content,
    pub at: At,
}

/// The file, by its position in the configuration, and the bytes in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct At {
    pub file: usize,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    Null,
    Boolean(bool),
    Number {
        number: f64,
        written: Arc<str>,
    },
    Text(Arc<str>),
    List(Arc<Vec<Tree>>),
    Map(Arc<Map>),
    /// `!reference [job, keyword]`
    Reference(Arc<Vec<Tree>>),
}

/// Keys in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Map(pub Vec<(Arc<str>, Tree)>);

/// The last document of a file, and the one before it, if there is one: the header with `spec:`.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub header: Option<Tree>,
    pub root: Option<Tree>,
    pub problems: Vec<Problem>,
}

pub(super) fn parse(text: &str, file: usize) -> Parsed {
    let lines = Lines::of(text);
    let mut stream = yaml::parse(text, 2, &lines);
    let mut problems = std::mem::take(&mut stream.problems);
    let mut trees = stream.documents.iter().flatten().map(|node| Tree::of(node, file)).collect::<Vec<_>>();
    if let Some(rest) = stream.rest {
        let place = Some(lines.place(text, rest.range()));
        problems.push(Problem::error("third-document", "a configuration has at most two documents: a header, and what it is about", place));
    }
    let root = trees.pop();
    Parsed { header: trees.pop(), root, problems }
}

impl Tree {
    fn of(node: &Node<'_>, file: usize) -> Self {
        let at = At { file, span: node.span };
        let content = match (node.as_list(), node.as_map()) {
            (Some(items), _) => {
                let items = Arc::new(items.iter().map(|item| Self::of(item, file)).collect());
                if tag(node) == Some("!reference") { Content::Reference(items) } else { Content::List(items) }
            }
            (_, Some(entries)) => {
                let entries = entries.iter().map(|(key, value)| (key.source_text().unwrap_or_default().into(), Self::of(value, file)));
                Content::Map(Arc::new(Map(entries.collect())))
            }
            _ => match node.resolve() {
                None | Some(Resolved::Null) => Content::Null,
                Some(Resolved::Boolean(boolean)) => Content::Boolean(boolean),
                Some(Resolved::Number(number)) => Content::Number { number, written: node.source_text().unwrap_or_default().into() },
                Some(Resolved::Text(text)) => Content::Text(text.as_ref().into()),
            },
        };
        Self { content, at }
    }

    pub fn map(map: Map, at: At) -> Self {
        Self { content: Content::Map(Arc::new(map)), at }
    }

    pub fn as_map(&self) -> Option<&Map> {
        match &self.content {
            Content::Map(map) => Some(map),
            _ => None,
        }
    }

    pub fn as_text(&self) -> Option<&Arc<str>> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        self.content == Content::Null
    }

    /// The value of a key of a map; null is the same as nothing.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_map()?.get(key)
    }

    /// The items of a list, or the value itself: many keywords take one or several.
    pub fn one_or_several(&self) -> &[Self] {
        match &self.content {
            Content::List(items) => items,
            Content::Null => &[],
            _ => std::slice::from_ref(self),
        }
    }

    /// What it is, for messages.
    pub fn kind_name(&self) -> &'static str {
        match self.content {
            Content::Null => "nothing",
            Content::Boolean(_) => "a boolean",
            Content::Number { .. } => "a number",
            Content::Text(_) => "a text",
            Content::List(_) => "a list",
            Content::Map(_) => "a map",
            Content::Reference(_) => "a reference",
        }
    }

    /// Maps are merged key by key, anything else is replaced by what comes over it.
    pub fn merged_with(&self, over: &Self) -> Self {
        let (Content::Map(under_map), Content::Map(over_map)) = (&self.content, &over.content) else { return over.clone() };
        let mut merged = under_map.0.clone();
        for (key, value) in &over_map.0 {
            match merged.iter_mut().find(|(name, _)| name == key) {
                Some((_, known)) => *known = known.merged_with(value),
                None => merged.push((key.clone(), value.clone())),
            }
        }
        Self::map(Map(merged), over.at)
    }

    pub fn to_json(&self) -> serde_json::Value {
        match &self.content {
            Content::Null => serde_json::Value::Null,
            Content::Boolean(boolean) => (*boolean).into(),
            Content::Number { number, .. } => step_model::value::Value::from(*number).to_json(),
            Content::Text(text) => (&**text).into(),
            Content::List(items) | Content::Reference(items) => items.iter().map(Self::to_json).collect(),
            Content::Map(map) => {
                map.0.iter().map(|(key, value)| (key.to_string(), value.to_json())).collect::<serde_json::Map<_, _>>().into()
            }
        }
    }
}

impl Map {
    /// Null is the same as nothing.
    pub fn get(&self, key: &str) -> Option<&Tree> {
        self.0.iter().find(|(name, _)| &**name == key).map(|(_, value)| value).filter(|value| !value.is_null())
    }
}

/// The tag of a node, also when an alias stands for it.
fn tag<'n>(node: &'n Node<'_>) -> Option<&'n str> {
    match &node.content {
        yaml::Content::Shared(shared) => tag(shared),
        _ => node.tag.as_deref(),
    }
}
