//! Holds a file against the tables of keys: types, names, and what becomes of each key. What needs more than one key is checked later.

use crate::checked::{Checked, Given, Value};
use crate::gather::{Fate, Gather};
use crate::secret::{self, Opaque, Secret};
use crate::tables::{FEATURE_FLAGS, GLOBAL, Key, Kind, Standing, Table};
use crate::{raw, scalar};
use std::collections::BTreeMap;
use std::ops::Range;
use step_model::expression::nearest;

/// Where the check is: the path to a table as it is written in a file, and with the numbers of entries.
#[derive(Clone)]
struct At {
    header: String,
    path: String,
}

impl At {
    fn inside(&self, name: &str) -> Self {
        let join = |before: &str| if before.is_empty() { name.to_owned() } else { format!("{before}.{name}") };
        Self { header: join(&self.header), path: join(&self.path) }
    }

    fn entry(&self, index: usize) -> Self {
        Self { header: self.header.clone(), path: format!("{}[{index}]", self.path) }
    }

    /// Where a key stands, for a message.
    fn place(&self, table: &Table) -> String {
        match (self.header.as_str(), table.is_list) {
            ("", _) => "the global section".to_owned(),
            (header, true) => format!("`[[{header}]]`"),
            (header, false) => format!("`[{header}]`"),
        }
    }
}

/// The whole file.
pub(crate) fn file(root: &raw::Table, gather: &mut Gather<'_>) -> Checked {
    table(root, &GLOBAL, 0..0, &At { header: String::new(), path: String::new() }, gather)
}

fn table(raw: &raw::Table, table: &'static Table, span: Range<usize>, at: &At, gather: &mut Gather<'_>) -> Checked {
    let mut checked = Checked { span, json: Opaque::new(raw.json()), ..Checked::absent(table) };
    for entry in &raw.entries {
        match known(table, &entry.key.value) {
            Some(key) => known_key(entry, key, raw, &mut checked, at, gather),
            None => unknown_key(entry, table, at, gather),
        }
    }
    take_old_names(&mut checked);
    checked
}

/// Exactly, or in other letters, as Go finds them.
fn known(table: &'static Table, name: &str) -> Option<&'static Key> {
    table.key(name).or_else(|| table.keys.iter().find(|key| key.name.eq_ignore_ascii_case(name)))
}

fn known_key(entry: &raw::Entry, key: &'static Key, raw: &raw::Table, checked: &mut Checked, at: &At, gather: &mut Gather<'_>) {
    let table = checked.table;
    let written = &entry.key.value;
    if written != key.name {
        if raw.entries.iter().any(|other| other.key.value == key.name) {
            let message = format!("`{written}` in {} is ignored, since `{}` is there too", at.place(table), key.name);
            gather.warn("key-twice", message, Some(entry.key.span.clone()), "keep one of them");
            return;
        }
        let message = format!("`{written}` is taken as `{}`", key.name);
        gather.note("letter-case", message, Some(entry.key.span.clone()), format!("write `{}`", key.name));
    }
    let is_table = matches!(key.kind, Kind::Table(_) | Kind::Tables(_) | Kind::Map | Kind::Flags);
    if !key.kind.is_secret() && !is_table && may_be_shown(&entry.value.value, key.kind) {
        gather.shown.push(entry.value.span.clone());
    }
    let inside = at.inside(key.name);
    let standing = key.standing(table);
    match key.kind {
        Kind::Table(_) | Kind::Tables(_) => {}
        _ => gather.find(inside.path.clone(), entry.key.span.clone(), Fate::Known(standing)),
    }
    say_standing(written, standing, entry.key.span.clone(), gather);
    if let Some(value) = value(&entry.value, key, &inside, gather) {
        let given = Given { value, key_span: entry.key.span.clone(), span: entry.value.span.clone() };
        checked.given.insert(key.name, given);
    }
}

/// Whether a value of a key that holds no secret can be quoted. A table in the place of another value may hold anything.
fn may_be_shown(value: &raw::Value, kind: Kind) -> bool {
    match value {
        raw::Value::Text(text) => !secret::names_an_account(text, kind),
        raw::Value::List(items) => items.iter().all(|item| may_be_shown(&item.value, kind)),
        raw::Value::Table(_) => false,
        _ => true,
    }
}

fn say_standing(written: &str, standing: Standing, span: Range<usize>, gather: &mut Gather<'_>) {
    match standing {
        Standing::Honoured | Standing::Mapped(_) => {}
        Standing::NotYet(missing) => gather.note("not-yet", format!("`{written}` has no effect yet: {missing}"), Some(span), ""),
        Standing::WithoutEffect(instead) => gather.note("without-effect", format!("`{written}` has no effect: {instead}"), Some(span), ""),
        Standing::OldNameOf(name) => {
            gather.note("old-name", format!("`{written}` is an old name of `{name}`"), Some(span), format!("write `{name}`"));
        }
    }
}

fn unknown_key(entry: &raw::Entry, table: &'static Table, at: &At, gather: &mut Gather<'_>) {
    let name = &entry.key.value;
    if gather.is_half_a_value(&entry.key.span) {
        return;
    }
    gather.find(at.inside(name).path, entry.key.span.clone(), Fate::Unknown);
    let message = format!("unknown key `{name}` in {} is ignored", at.place(table));
    let near = nearest(name, table.keys.iter().map(|key| key.name));
    let elsewhere = || GLOBAL.all().into_iter().find(|other| other.key(name).is_some() && !other.name.contains('*'));
    let hint = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => elsewhere().map(|other| format!("it is a key of {}", other.header())).unwrap_or_default(),
    };
    gather.warn("unknown-key", message, Some(entry.key.span.clone()), hint);
}

/// A key that stands there by an old name only gets its new one.
fn take_old_names(checked: &mut Checked) {
    for key in checked.table.keys {
        let Standing::OldNameOf(name) = key.standing(checked.table) else { continue };
        let has_same_kind =
            checked.table.key(name).is_some_and(|new| std::mem::discriminant(&new.kind) == std::mem::discriminant(&key.kind));
        if let Some(given) = checked.given.remove(key.name)
            && has_same_kind
        {
            checked.given.entry(name).or_insert(given);
        }
    }
}

fn value(raw: &raw::Located<raw::Value>, key: &'static Key, at: &At, gather: &mut Gather<'_>) -> Option<Value> {
    match (key.kind, &raw.value) {
        (Kind::Table(inner), raw::Value::Table(found)) => Some(Value::Table(table(found, inner, raw.span.clone(), at, gather))),
        (Kind::Tables(inner), raw::Value::List(items)) => Some(Value::Tables(tables(items, inner, key, at, gather))),
        // A single table is meant as a list of one: so does Go.
        (Kind::Tables(inner), raw::Value::Table(_)) => {
            let message = format!("`[{}]` is taken as `[[{}]]`", at.header, at.header);
            gather.note("one-table", message, Some(raw.span.clone()), "write it with double brackets");
            Some(Value::Tables(tables(std::slice::from_ref(raw), inner, key, at, gather)))
        }
        (Kind::Map | Kind::SecretMap, raw::Value::Table(found)) => Some(Value::Map(map(found, key, at, gather))),
        (Kind::Flags, raw::Value::Table(found)) => Some(Value::Flags(flags(found, at, gather))),
        (Kind::Free, raw::Value::Table(found)) => Some(Value::Free(Opaque::new(found.json()))),
        (Kind::Lists | Kind::Counts, raw::Value::Table(found)) => Some(Value::Free(Opaque::new(found.json()))),
        (Kind::Secret, raw::Value::Text(text)) => Some(Value::Secret(Secret::new(text.as_str()))),
        _ => scalar::value(raw, key, gather),
    }
}

fn tables(items: &[raw::Located<raw::Value>], inner: &'static Table, key: &'static Key, at: &At, gather: &mut Gather<'_>) -> Vec<Checked> {
    let mut checked = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let raw::Value::Table(found) = &item.value else {
            scalar::complain(item, key, gather);
            continue;
        };
        let at = at.entry(index);
        if at.header == "runners" {
            checked.push(gather.about_entry(index, |gather| table(found, inner, item.span.clone(), &at, gather)));
        } else {
            checked.push(table(found, inner, item.span.clone(), &at, gather));
        }
    }
    checked
}

fn map(found: &raw::Table, key: &'static Key, at: &At, gather: &mut Gather<'_>) -> BTreeMap<String, String> {
    let mut map = BTreeMap::new();
    for entry in &found.entries {
        let raw::Value::Text(text) = &entry.value.value else {
            let message = format!("`{}.{}` is {}, but has to be a string", at.header, entry.key.value, entry.value.value.kind());
            gather.refuse("wrong-type", message, Some(entry.value.span.clone()), "put it into quotes");
            continue;
        };
        if !key.kind.is_secret() && may_be_shown(&entry.value.value, key.kind) {
            gather.shown.push(entry.value.span.clone());
        }
        map.insert(entry.key.value.clone(), text.clone());
    }
    map
}

fn flags(found: &raw::Table, at: &At, gather: &mut Gather<'_>) -> BTreeMap<String, bool> {
    let mut flags = BTreeMap::new();
    for entry in &found.entries {
        let name = &entry.key.value;
        let span = entry.key.span.clone();
        let path = at.inside(name).path;
        match FEATURE_FLAGS.iter().find(|flag| flag.name == name) {
            Some(flag) => {
                gather.find(path, span.clone(), Fate::Known(flag.standing));
                say_standing(name, flag.standing, span, gather);
            }
            None => {
                gather.find(path, span.clone(), Fate::Unknown);
                let near = nearest(name, FEATURE_FLAGS.iter().map(|flag| flag.name));
                let hint = near.map(|near| format!("did you mean `{near}`?")).unwrap_or_default();
                gather.note("unknown-flag", format!("unknown feature flag `{name}` has no effect"), Some(span), hint);
            }
        }
        match entry.value.value {
            raw::Value::Flag(flag) => {
                gather.shown.push(entry.value.span.clone());
                flags.insert(name.clone(), flag);
            }
            _ => {
                let message = format!("feature flag `{name}` is {}, but has to be true or false", entry.value.value.kind());
                gather.refuse("wrong-type", message, Some(entry.value.span.clone()), "");
            }
        }
    }
    flags
}
