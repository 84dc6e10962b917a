//! From files to one job: includes are merged, `!reference` is looked up, `extends` is applied, in this order, as GitLab does.

use super::tree::{Content, Map, Tree};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many references may lead to each other, and how many bases a job may have above each other: GitLab's limits.
const MAXIMUM_LEVELS: usize = 10;

/// Values that references may stand for in one job: they can repeat each other, and a few lines could be billions of values.
const MAXIMUM_VALUES: usize = 200_000;

/// What is wrong, and with which value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fault {
    pub at: super::tree::At,
    pub message: String,
    pub hint: Option<String>,
}

/// The merged configuration, from which jobs are taken.
#[derive(Debug, Clone)]
pub(super) struct Assembled {
    pub root: Tree,
}

impl Assembled {
    /// A top-level value with its references looked up.
    pub fn value(&self, key: &str, faults: &mut Vec<Fault>) -> Option<Tree> {
        let value = self.root.get(key)?;
        Some(self.resolved(value, faults))
    }

    /// A job with everything that it extends.
    pub fn job(&self, name: &str, faults: &mut Vec<Fault>) -> Option<Tree> {
        let mut extended = BTreeMap::new();
        let job = self.extended(name, &mut Vec::new(), &mut extended, faults);
        if job.is_none() && faults.is_empty() {
            return None;
        }
        job
    }

    fn extended(
        &self,
        name: &str,
        path: &mut Vec<Arc<str>>,
        known: &mut BTreeMap<Arc<str>, Tree>,
        faults: &mut Vec<Fault>,
    ) -> Option<Tree> {
        if let Some(job) = known.get(name) {
            return Some(job.clone());
        }
        let job = self.resolved(self.root.get(name)?, faults);
        let Some(extends) = job.get("extends") else { return Some(job) };
        path.push(name.into());
        let mut merged: Option<Tree> = None;
        for base in extends.one_or_several() {
            let Some(base_name) = base.as_text() else {
                let message = format!("`extends` of `{name}` takes names of jobs, and this is {}", base.kind_name());
                faults.push(Fault { at: base.at, message, hint: None });
                continue;
            };
            let fault = if path.iter().any(|step| step == base_name) {
                let round = path.iter().skip_while(|step| *step != base_name).chain([base_name]).map(|step| &**step).collect::<Vec<_>>();
                Some((format!("{name}: circular dependency detected in `extends`: {}", round.join(" -> ")), None))
            } else if path.len() > MAXIMUM_LEVELS {
                Some((format!("{name}: nesting too deep in `extends`: more than {MAXIMUM_LEVELS} levels"), None))
            } else {
                match self.root.get(base_name) {
                    None => {
                        let names = self.root.as_map().into_iter().flat_map(|map| map.0.iter().map(|(name, _)| &**name));
                        let nearest = step_model::expression::nearest(base_name, names).map(|near| format!("did you mean `{near}`?"));
                        Some((format!("{name}: unknown keys in `extends` ({base_name})"), nearest))
                    }
                    Some(base) if base.as_map().is_none() => {
                        Some((format!("{name}: invalid base hashes in `extends` ({base_name})"), None))
                    }
                    Some(_) => None,
                }
            };
            if let Some((message, hint)) = fault {
                faults.push(Fault { at: base.at, message, hint });
                continue;
            }
            if let Some(base) = self.extended(base_name, path, known, faults) {
                merged = Some(merged.map_or(base.clone(), |merged| merged.merged_with(&base)));
            }
        }
        path.pop();
        let job = merged.map_or(job.clone(), |merged| merged.merged_with(&job));
        known.insert(name.into(), job.clone());
        Some(job)
    }

    /// The value with every `!reference` in it replaced by what it names.
    fn resolved(&self, value: &Tree, faults: &mut Vec<Fault>) -> Tree {
        let mut left = MAXIMUM_VALUES;
        let resolved = self.look_up(value, 0, &mut left, faults);
        if left == 0 {
            let message = format!("references stand for more than {MAXIMUM_VALUES} values");
            faults.push(Fault { at: value.at, message, hint: None });
        }
        resolved
    }

    fn look_up(&self, value: &Tree, level: usize, left: &mut usize, faults: &mut Vec<Fault>) -> Tree {
        *left = left.saturating_sub(1);
        if *left == 0 {
            return Tree { content: Content::Null, at: value.at };
        }
        match &value.content {
            Content::List(items) => {
                let items = items.iter().map(|item| self.look_up(item, level, left, faults)).collect();
                Tree { content: Content::List(Arc::new(items)), at: value.at }
            }
            Content::Map(map) => {
                let entries = map.0.iter().map(|(key, value)| (key.clone(), self.look_up(value, level, left, faults)));
                Tree::map(Map(entries.collect()), value.at)
            }
            Content::Reference(names) => self.target(value, names, level, left, faults),
            _ => value.clone(),
        }
    }

    fn target(&self, reference: &Tree, names: &[Tree], level: usize, left: &mut usize, faults: &mut Vec<Fault>) -> Tree {
        let nothing = Tree { content: Content::Null, at: reference.at };
        let written = |names: &[Tree]| {
            let names = names.iter().map(|name| name.as_text().map_or("?".to_owned(), |name| format!("\"{name}\"")));
            format!("!reference [{}]", names.collect::<Vec<_>>().join(", "))
        };
        if level >= MAXIMUM_LEVELS {
            let message = format!("{} is nested too deep: it leads through {MAXIMUM_LEVELS} references, perhaps to itself", written(names));
            faults.push(Fault { at: reference.at, message, hint: None });
            return nothing;
        }
        let path: Option<Vec<&Arc<str>>> = names.iter().map(Tree::as_text).collect();
        let Some(path) = path.filter(|path| !path.is_empty()) else {
            let message = format!("{} takes names: of a job, and of what is wanted of it", written(names));
            faults.push(Fault { at: reference.at, message, hint: None });
            return nothing;
        };
        let mut current = &self.root;
        for name in &path {
            match current.get(name) {
                Some(next) => current = next,
                None => {
                    let keys = current.as_map().into_iter().flat_map(|map| map.0.iter().map(|(key, _)| &**key));
                    let hint = step_model::expression::nearest(name, keys).map(|near| format!("did you mean `{near}`?"));
                    faults.push(Fault { at: reference.at, message: format!("{} could not be found", written(names)), hint });
                    return nothing;
                }
            }
        }
        // Problems of the value are shown where it was written.
        self.look_up(current, level + 1, left, faults)
    }
}
