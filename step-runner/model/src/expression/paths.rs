//! What an expression reads, without evaluating it.

use super::Path;
use super::syntax::{Access, By, CONTEXTS, Form, Node, Part, Span};
use std::sync::Arc;

/// Adds every path of the parts, in the order of the source.
pub(super) fn of_parts(parts: &[Part], source: &str, paths: &mut Vec<Path>) {
    for part in parts {
        if let Part::Expression(node) = part {
            of_node(node, source, paths);
        }
    }
}

fn of_node(node: &Node, source: &str, paths: &mut Vec<Path>) {
    match &node.form {
        Form::Null | Form::Boolean(_) | Form::Number(_) | Form::String(_) | Form::Function(_) => {}
        Form::Text(parts) => of_parts(parts, source, paths),
        Form::Path(names) => paths.push(path(names, source)),
        Form::Dotted { otherwise: Some(moa), .. } if knows_contexts(moa, source) => of_node(moa, source, paths),
        Form::Dotted { path: names, .. } => paths.push(path(names, source)),
        Form::Access(base, accesses) => of_access(base, accesses, source, paths),
        Form::Unary(_, operand) => of_node(operand, source, paths),
        Form::Chain(first, rest) => {
            of_node(first, source, paths);
            rest.iter().for_each(|(_, node)| of_node(node, source, paths));
        }
        Form::Array(items) => items.iter().for_each(|item| of_node(item, source, paths)),
        Form::Object(entries) => entries.iter().for_each(|(key, value)| {
            of_node(key, source, paths);
            of_node(value, source, paths);
        }),
    }
}

/// The first accesses may still be known keys, with escapes in them.
fn of_access(base: &Node, accesses: &[Access], source: &str, paths: &mut Vec<Path>) {
    let first = paths.len();
    of_node(base, source, paths);
    let is_path = matches!(base.form, Form::Path(_));
    for Access { by, .. } in accesses.iter().take_while(|_| is_path) {
        match by {
            By::Attribute(name) => paths[first].parts.push(name.of(source).into()),
            By::Index(Node { form: Form::String(key), .. }) => paths[first].parts.push(key.clone()),
            _ => break,
        }
    }
    for Access { by, .. } in accesses {
        match by {
            By::Attribute(_) => {}
            By::Index(index) => of_node(index, source, paths),
            By::Call(arguments) => arguments.iter().for_each(|argument| of_node(argument, source, paths)),
        }
    }
}

fn path(names: &[Span], source: &str) -> Path {
    Path { parts: names.iter().map(|name| Arc::from(name.of(source))).collect(), offset: names.first().map_or(0, |name| name.start()) }
}

/// Whether every path of an expression begins with a context that both dialects know: then a `-` in it is minus.
/// `inputs.my-key` is `inputs.my` minus `key`, and there is no context of that name.
pub(super) fn knows_contexts(node: &Node, source: &str) -> bool {
    let mut paths = Vec::new();
    of_node(node, source, &mut paths);
    !paths.is_empty() && paths.iter().all(|path| CONTEXTS.contains(&&*path.parts[0]))
}
