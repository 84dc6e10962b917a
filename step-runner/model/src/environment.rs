//! Who sees which environment variable: scopes over exports over the request over the process (original.md E.2).
//!
//! ```text
//! definition env > invocation env > env of each enclosing sequence   Scope: a chain that shares its tail
//! exported by earlier steps > request > process                      Environment: one for the job, grows by exports only
//! ```
//!
//! Nothing is copied when a step begins: a [`Snapshot`] is an end of the chain and a number of exports, so the values of any moment can be told
//! later. The price: to list them again takes one pass over what the job ever exported.

use crate::value::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Variables of one place in a document, over those of the places around it.
#[derive(Debug, PartialEq)]
pub struct Scope {
    outer: Option<Arc<Scope>>,
    /// Sorted by name; names are unique.
    variables: Vec<(Arc<str>, Value)>,
}

impl Scope {
    /// `variables` over `outer`; of the same name, the last counts. Without variables this is `outer` itself.
    pub fn over(outer: Option<&Arc<Self>>, variables: impl IntoIterator<Item = (Arc<str>, Value)>) -> Option<Arc<Self>> {
        let variables: BTreeMap<_, _> = variables.into_iter().collect();
        if variables.is_empty() {
            return outer.cloned();
        }
        Some(Arc::new(Self { outer: outer.cloned(), variables: variables.into_iter().collect() }))
    }

    /// The variables of this scope and of those around it.
    pub fn all(self: &Arc<Self>) -> BTreeMap<Arc<str>, Value> {
        flattened(Some(self)).into_iter().map(|(name, value)| (Arc::clone(name), value.clone())).collect()
    }

    fn get(&self, name: &str) -> Option<&Value> {
        let own = self.variables.binary_search_by(|(key, _)| (**key).cmp(name)).ok();
        own.map(|index| &self.variables[index].1).or_else(|| self.outer.as_ref()?.get(name))
    }
}

/// How many exports there had been at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Version(u32);

/// The environment at one place and moment, for [`Environment::values_at`].
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    scope: Option<Arc<Scope>>,
    version: Version,
}

/// What every step of a job sees where no scope says otherwise: levels 4 to 6 of the precedence.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Request over process. Never changes.
    base: BTreeMap<Arc<str>, Value>,
    /// The values of each name, with the version that brought it, oldest first.
    exports: BTreeMap<Arc<str>, Vec<(Version, Value)>>,
    /// The name that each version brought, the first at 0.
    exported: Vec<Arc<str>>,
    version: Version,
    /// Exports over the base as they are now, sorted by name.
    current: Vec<(Arc<str>, Value)>,
}

impl Environment {
    pub fn new(process: &BTreeMap<Arc<str>, Value>, request: &BTreeMap<Arc<str>, Value>) -> Self {
        let mut base = process.clone();
        base.extend(request.iter().map(|(name, value)| (Arc::clone(name), value.clone())));
        let current = base.iter().map(|(name, value)| (Arc::clone(name), value.clone())).collect();
        Self { base, exports: BTreeMap::new(), exported: Vec::new(), version: Version::default(), current }
    }

    /// Sets a variable for every later look, at any depth, where no scope sets it (original.md E.3, without the original's snapshot).
    pub fn export(&mut self, name: &Arc<str>, value: Value) {
        self.version.0 += 1;
        self.exported.push(Arc::clone(name));
        match self.current.binary_search_by(|(key, _)| key.cmp(name)) {
            Ok(index) => self.current[index].1 = value.clone(),
            Err(index) => self.current.insert(index, (Arc::clone(name), value.clone())),
        }
        self.exports.entry(Arc::clone(name)).or_default().push((self.version, value));
    }

    /// What was exported so far, as it is now.
    pub fn exported(&self) -> impl Iterator<Item = (&Arc<str>, &Value)> {
        self.exports.iter().filter_map(|(name, values)| Some((name, &values.last()?.1)))
    }

    /// The value of a variable as seen from `scope` now.
    pub fn get<'a>(&'a self, scope: Option<&'a Arc<Scope>>, name: &str) -> Option<&'a Value> {
        scope.and_then(|scope| scope.get(name)).or_else(|| {
            let index = self.current.binary_search_by(|(key, _)| (**key).cmp(name)).ok()?;
            Some(&self.current[index].1)
        })
    }

    /// All variables as seen from `scope` now, sorted by name; names are unique.
    pub fn values(&self, scope: Option<&Arc<Scope>>) -> Vec<(Arc<str>, Value)> {
        let scoped = flattened(scope);
        let mut all = Vec::with_capacity(self.current.len() + scoped.len());
        let mut globals = self.current.iter().peekable();
        for (name, value) in scoped {
            while let Some(global) = globals.next_if(|(key, _)| key < name) {
                all.push(global.clone());
            }
            globals.next_if(|(key, _)| key == name);
            all.push((Arc::clone(name), value.clone()));
        }
        all.extend(globals.cloned());
        all
    }

    /// Remembers what is seen from `scope` now. Costs nothing.
    pub fn snapshot(&self, scope: Option<&Arc<Scope>>) -> Snapshot {
        Snapshot { scope: scope.cloned(), version: self.version }
    }

    /// All variables as they were seen when the snapshot was taken.
    pub fn values_at(&self, snapshot: &Snapshot) -> BTreeMap<Arc<str>, Value> {
        let mut all = self.base.clone();
        for (name, values) in &self.exports {
            let known = values.partition_point(|(version, _)| *version <= snapshot.version);
            if let Some((_, value)) = known.checked_sub(1).and_then(|last| values.get(last)) {
                all.insert(Arc::clone(name), value.clone());
            }
        }
        all.extend(flattened(snapshot.scope.as_ref()).into_iter().map(|(name, value)| (Arc::clone(name), value.clone())));
        all
    }
}

/// What makes one environment another.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Difference {
    /// New, or with another value.
    pub set: BTreeMap<Arc<str>, Value>,
    pub gone: Vec<Arc<str>>,
}

impl Environment {
    /// What differs at `to` from what was seen at `from`. Costs what lies between the two, not what both have.
    pub fn difference(&self, from: &Snapshot, to: &Snapshot) -> Difference {
        let place = |version: Version| usize::try_from(version.0).unwrap_or(usize::MAX).min(self.exported.len());
        let (first, last) = (from.version.min(to.version), from.version.max(to.version));
        let mut names: BTreeSet<&Arc<str>> = self.exported[place(first)..place(last)].iter().collect();
        let (mut left, mut right) = (chain(from.scope.as_ref()), chain(to.scope.as_ref()));
        while let (Some(one), Some(other)) = (left.last(), right.last())
            && Arc::ptr_eq(one, other)
        {
            left.pop();
            right.pop();
        }
        names.extend(left.into_iter().chain(right).flat_map(|scope| scope.variables.iter().map(|(name, _)| name)));
        let mut difference = Difference::default();
        for name in names {
            match (self.value_at(from, name), self.value_at(to, name)) {
                (before, Some(now)) if before != Some(now) => drop(difference.set.insert(Arc::clone(name), now.clone())),
                (Some(_), None) => difference.gone.push(Arc::clone(name)),
                _ => {}
            }
        }
        difference
    }

    fn value_at<'a>(&'a self, snapshot: &'a Snapshot, name: &str) -> Option<&'a Value> {
        let exported = || {
            let values = self.exports.get(name)?;
            let known = values.partition_point(|(version, _)| *version <= snapshot.version);
            Some(&values.get(known.checked_sub(1)?)?.1)
        };
        snapshot.scope.as_ref().and_then(|scope| scope.get(name)).or_else(exported).or_else(|| self.base.get(name))
    }
}

/// The scopes of a place, the outermost last.
fn chain(innermost: Option<&Arc<Scope>>) -> Vec<&Arc<Scope>> {
    std::iter::successors(innermost, |scope| scope.outer.as_ref()).collect()
}

/// The variables of a chain; those of inner scopes count.
fn flattened(innermost: Option<&Arc<Scope>>) -> BTreeMap<&Arc<str>, &Value> {
    let mut all = BTreeMap::new();
    let mut scope = innermost;
    while let Some(inner) = scope {
        for (name, value) in &inner.variables {
            all.entry(name).or_insert(value);
        }
        scope = inner.outer.as_ref();
    }
    all
}

/// How the program was called, which decides what it passes on of its own environment (original.md E.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryPoint {
    Serve,
    Ci,
    Run,
}

impl EntryPoint {
    /// Whether steps see the variable `name` of the program's own environment.
    pub fn passes_on(self, name: &str) -> bool {
        const KNOWN: [&str; 17] = [
            "HTTPS_PROXY",
            "HTTP_PROXY",
            "NO_PROXY",
            "https_proxy",
            "http_proxy",
            "no_proxy",
            "all_proxy",
            "LANG",
            "LC_ALL",
            "LC_CTYPE",
            "LOGNAME",
            "USER",
            "PATH",
            "SHELL",
            "TERM",
            "TMPDIR",
            "TZ",
        ];
        match self {
            Self::Serve => true,
            Self::Ci => KNOWN.contains(&name),
            Self::Run => !["CI_", "GITLAB_", "FF_", "DOCKER_ENV_"].iter().any(|prefix| name.starts_with(prefix)),
        }
    }
}

/// The variable that tells steps how much to say. Always set.
pub const LOG_LEVEL: &str = "CI_STEPS_LOG_LEVEL";

/// The value of [`LOG_LEVEL`]: the job variable, else the variable of the process, else `info`. An empty one counts as none.
/// # Errors
/// It is none of the four levels.
pub fn log_level(job_variable: Option<&str>, process: Option<&str>) -> Result<&'static str, UnknownLogLevel> {
    let given = [job_variable, process].into_iter().flatten().map(str::trim).find(|level| !level.is_empty());
    let level = given.unwrap_or("info").to_lowercase();
    let known = ["debug", "info", "warn", "error"].into_iter().find(|known| *known == level);
    known.ok_or(UnknownLogLevel { level })
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("init global environment: log level: {level} not supported")]
pub struct UnknownLogLevel {
    /// Trimmed and in lower case.
    pub level: String,
}

#[cfg(test)]
mod tests;
