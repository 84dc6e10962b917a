//! From the tree of an expression to its value.

use super::Scope;
use super::compare::{is_truthy, order};
use super::fault::{Cause, Fault};
use super::functions;
use super::paths::knows_contexts;
use super::syntax::{Access, By, Form, Function, Node, Operator, Part, Prefix, Span};
use super::text::write_text;
use crate::document::Dialect;
use crate::value::{Data, Kind, MAXIMUM_DEPTH, Object, Value};
use std::sync::Arc;

pub(super) type Evaluated<T> = Result<T, Box<Fault>>;

pub(super) struct Evaluation<'a> {
    pub source: &'a str,
    pub dialect: Dialect,
    pub scope: &'a dyn Scope,
}

impl Evaluation<'_> {
    /// An expression as a whole.
    pub(super) fn whole(&self, node: &Node) -> Evaluated<Value> {
        let value = self.node(node).map_err(|fault| fault.within(node.span))?;
        // Only an expression that builds values can make them deeper than what came in.
        if matches!(value.data(), Data::Array(_) | Data::Object(_)) && builds(node) && value.depth() > MAXIMUM_DEPTH {
            return Err(Fault::new(Cause::TooDeep, node.span).within(node.span));
        }
        Ok(value)
    }

    /// Text and expressions, one after the other. Sensitive when anything in it is.
    pub(super) fn text(&self, parts: &[Part], capacity: usize) -> Evaluated<Value> {
        let mut text = String::with_capacity(capacity);
        let mut sensitive = false;
        for part in parts {
            match part {
                Part::Text(span) => text.push_str(span.of(self.source)),
                Part::Resolved(resolved) => text.push_str(resolved),
                Part::Expression(Node { form: Form::Function(_), .. }) => text.push_str(functions::TEXT),
                Part::Expression(node) => {
                    let value = self.whole(node)?;
                    write_text(&mut text, &value, self.dialect);
                    sensitive |= value.holds_sensitive();
                }
            }
        }
        Ok(Value::from(text).marked(sensitive))
    }

    /// The same as text. A string is shared, not copied.
    pub(super) fn whole_as_text(&self, node: &Node) -> Evaluated<Value> {
        let value = self.whole(node)?;
        let sensitive = value.holds_sensitive();
        if let Data::String(text) = value.data() {
            return Ok(Value::from(text.clone()).marked(sensitive));
        }
        let mut text = String::new();
        write_text(&mut text, &value, self.dialect);
        Ok(Value::from(text).marked(sensitive))
    }

    fn node(&self, node: &Node) -> Evaluated<Value> {
        match &node.form {
            Form::Null => Ok(Value::NULL),
            Form::Boolean(boolean) => Ok((*boolean).into()),
            Form::Number(number) => Ok((*number).into()),
            Form::String(text) => Ok(text.clone().into()),
            Form::Text(parts) => self.text(parts, node.span.range().len()),
            Form::Path(names) => self.path(names),
            Form::Dotted { path, otherwise } => self.path(path).or_else(|fault| match otherwise {
                Some(moa) => self.node(moa).map_err(|other| if knows_contexts(moa, self.source) { other } else { fault }),
                None => Err(fault),
            }),
            Form::Function(function) => Err(Fault::new(Cause::IsFunction(*function), node.span)),
            Form::Access(base, accesses) => self.access(base, accesses),
            Form::Unary(prefix, operand) => self.unary(*prefix, operand),
            Form::Chain(first, rest) => self.chain(first, rest),
            Form::Array(items) => Ok(Value::new(Data::Array(items.iter().map(|item| self.node(item)).collect::<Evaluated<_>>()?))),
            Form::Object(entries) => self.object(entries),
        }
    }

    /// A context and keys of it. The first two names are asked for at once, so that no context is built for one key.
    fn path(&self, names: &[Span]) -> Evaluated<Value> {
        let (root, keys) = names.split_first().expect("a path has at least one name");
        let Some((first, keys)) = keys.split_first() else {
            return self.scope.context(root.of(self.source)).ok_or_else(|| Fault::new(Cause::NoContext, *root));
        };
        let mut value = self
            .scope
            .attribute(root.of(self.source), first.of(self.source))
            .ok_or_else(|| Fault::new(Cause::NotInContext { root: *root }, *first))?;
        let mut before = root.to(*first);
        for key in keys {
            value = self.member(value, key.of(self.source), *key, before)?;
            before = before.to(*key);
        }
        Ok(value)
    }

    /// A member inherits the mark of what holds it. `holder` is where that is written.
    fn member(&self, value: Value, key: &str, span: Span, holder: Span) -> Evaluated<Value> {
        let Some(object) = value.as_object() else {
            return Err(Fault::new(Cause::NoAttributes { kind: value.kind(), holder }, span));
        };
        match object.get(key) {
            Some(member) => Ok(member.clone().marked(value.is_sensitive())),
            None => Err(Fault::new(Cause::NotFound { key: Some(key.into()), object: value, holder }, span)),
        }
    }

    fn access(&self, base: &Node, accesses: &[Access]) -> Evaluated<Value> {
        let mut accesses = accesses.iter();
        let mut holder = base.span;
        let mut value = match (&base.form, accesses.as_slice()) {
            (Form::Function(function), [Access { by: By::Call(arguments), span }, ..]) => {
                holder = holder.to(*span);
                accesses.next();
                self.call(*function, arguments, holder)?
            }
            _ => self.node(base)?,
        };
        for Access { by, span } in accesses {
            value = match by {
                By::Attribute(name) => self.member(value, name.of(self.source), *name, holder)?,
                By::Index(index) => self.index(value, index, holder)?,
                By::Call(_) => return Err(Fault::new(Cause::NotCallable(value.kind()), *span)),
            };
            holder = holder.to(*span);
        }
        Ok(value)
    }

    fn call(&self, function: Function, arguments: &[Node], span: Span) -> Evaluated<Value> {
        let [argument] = arguments else {
            return Err(Fault::new(Cause::WrongArguments(function), span));
        };
        if let (Function::Str, Form::Function(_)) = (function, &argument.form) {
            return Ok(functions::TEXT.into());
        }
        let value = self.node(argument)?;
        functions::call(function, &value, self.dialect).map_err(|cause| Fault::new(cause, argument.span))
    }

    fn index(&self, value: Value, index: &Node, holder: Span) -> Evaluated<Value> {
        let key = self.node(index)?;
        let sensitive = value.is_sensitive() || key.holds_sensitive();
        let found = match (value.data(), key.data()) {
            (Data::Object(object), Data::String(name)) => match object.get(name) {
                Some(member) => member.clone(),
                None => {
                    let key = (!key.is_sensitive()).then(|| name.clone());
                    return Err(Fault::new(Cause::NotFound { key, object: value, holder }, index.span));
                }
            },
            (Data::Array(items), Data::Number(number)) => match position(*number).and_then(|at| items.get(at)) {
                Some(item) => item.clone(),
                None => return Err(Fault::new(Cause::OutOfRange { length: items.len(), of: Kind::Array, sensitive }, index.span)),
            },
            (Data::String(text), Data::Number(number)) => match position(*number).and_then(|at| text.chars().nth(at)) {
                Some(character) => character.to_string().into(),
                None => {
                    return Err(Fault::new(Cause::OutOfRange { length: text.chars().count(), of: Kind::String, sensitive }, index.span));
                }
            },
            (Data::Object(_) | Data::Array(_) | Data::String(_), _) => {
                return Err(Fault::new(Cause::WrongKey { of: value.kind(), key: key.kind() }, index.span));
            }
            _ => return Err(Fault::new(Cause::NoIndex(value.kind()), holder)),
        };
        Ok(found.marked(sensitive))
    }

    fn unary(&self, prefix: Prefix, operand: &Node) -> Evaluated<Value> {
        let value = self.node(operand)?;
        let result = match (prefix, value.data()) {
            (Prefix::Not, _) => (!is_truthy(&value)).into(),
            (Prefix::Plus, Data::Number(number)) => (*number).into(),
            (Prefix::Minus, Data::Number(number)) => (-number).into(),
            _ => return Err(Fault::new(Cause::NotANumber { sign: prefix.sign(), kind: value.kind() }, operand.span)),
        };
        Ok(Value::marked(result, value.holds_sensitive()))
    }

    fn chain(&self, first: &Node, rest: &[(Operator, Node)]) -> Evaluated<Value> {
        let mut left = self.node(first);
        let mut span = first.span;
        for (operator, right) in rest {
            left = match operator {
                Operator::Or => self.or(left, right),
                Operator::And => left.and_then(|left| if is_truthy(&left) { self.operand(right, &left) } else { Ok(left) }),
                _ => left.and_then(|left| self.binary(left, *operator, right, span)),
            };
            span = span.to(right.span);
        }
        left
    }

    /// What is not there on the left counts as null.
    fn or(&self, left: Evaluated<Value>, right: &Node) -> Evaluated<Value> {
        match left {
            Ok(left) if is_truthy(&left) => Ok(left),
            Ok(left) => self.operand(right, &left),
            Err(fault) if fault.cause.is_absence() => self.node(right),
            Err(fault) => Err(fault),
        }
    }

    /// The right operand, when the left one decided that it is the result: who sees it learns something of the left one.
    fn operand(&self, right: &Node, left: &Value) -> Evaluated<Value> {
        Ok(self.node(right)?.marked(left.holds_sensitive()))
    }

    fn binary(&self, left: Value, operator: Operator, right: &Node, left_span: Span) -> Evaluated<Value> {
        let right_value = self.node(right)?;
        let sensitive = left.holds_sensitive() || right_value.holds_sensitive();
        let ordered = || order(&left, &right_value);
        let result: Value = match operator {
            Operator::Equal => ordered().is_eq().into(),
            Operator::NotEqual => ordered().is_ne().into(),
            Operator::Less => ordered().is_lt().into(),
            Operator::LessOrEqual => ordered().is_le().into(),
            Operator::Greater => ordered().is_gt().into(),
            Operator::GreaterOrEqual => ordered().is_ge().into(),
            _ => arithmetic(&left, operator, &right_value).map_err(|cause| Fault::new(cause, left_span.to(right.span)))?,
        };
        Ok(result.marked(sensitive))
    }

    fn object(&self, entries: &[(Node, Node)]) -> Evaluated<Value> {
        let mut object = Object::with_capacity(entries.len());
        let mut sensitive = false;
        for (key, value) in entries {
            let name = self.node(key)?;
            let Data::String(text) = name.data() else {
                return Err(Fault::new(Cause::KeyIsNoString(name.kind()), key.span));
            };
            sensitive |= name.is_sensitive();
            object.insert(text.clone(), self.node(value)?);
        }
        Ok(Value::new(Data::Object(Arc::new(object))).marked(sensitive))
    }
}

fn arithmetic(left: &Value, operator: Operator, right: &Value) -> Result<Value, Cause> {
    let (a, b) = match (left.data(), right.data()) {
        (Data::Number(left), Data::Number(right)) => (*left, *right),
        (Data::String(left), Data::String(right)) if operator == Operator::Add => {
            return Ok([&**left, &**right].concat().into());
        }
        _ => return Err(Cause::Mismatch { operator, left: left.kind(), right: right.kind() }),
    };
    let result = match operator {
        Operator::Divide | Operator::Modulo if b == 0.0 => return Err(Cause::DivisionByZero),
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        _ => a % b,
    };
    if result.is_finite() { Ok(result.into()) } else { Err(Cause::TooLarge) }
}

/// A fraction is cut off. `None`: below zero, or no number at all.
fn position(number: f64) -> Option<usize> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cutting the fraction is meant; the rest is checked")]
    (number > -1.0).then_some(number as usize)
}

/// Whether the expression itself has arrays or objects in it.
fn builds(node: &Node) -> bool {
    match &node.form {
        Form::Array(_) | Form::Object(_) => true,
        Form::Access(base, _) => builds(base),
        Form::Chain(first, rest) => builds(first) || rest.iter().any(|(_, node)| builds(node)),
        Form::Dotted { otherwise: Some(moa), .. } => builds(moa),
        _ => false,
    }
}
