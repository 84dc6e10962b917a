//! What a step may use, as it is asked for, and what became of that.

use std::fmt;
use std::sync::Arc;

/// What each step of a job may use at most. `None`: as much as there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    pub cpus: Option<Cores>,
    /// Bytes.
    pub memory: Option<u64>,
    /// Processes and threads at the same time.
    pub pids: Option<u64>,
    /// Bytes that are written to disk.
    pub disk: Option<u64>,
    pub no_network: bool,
}

/// Thousandths of a processor core, at least ten: the least that the kernel takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cores(u32);

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitName {
    Cpu,
    Memory,
    Pids,
    Disk,
    Network,
}

/// What became of a limit that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedLimit {
    pub name: LimitName,
    /// As it can be typed: `1.5`, `512MiB`, `100`, `none`.
    pub value: Arc<str>,
    /// Who holds it: `cgroup v2`, `cgroup v1`, `rlimit: each file`, `namespace`; or `none: ` and why nobody does.
    pub means: Arc<str>,
    /// The step came to its limit, and something of it failed for that.
    pub reached: bool,
}

/// Why a text or a number is no limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoLimit {
    #[error("`{0}` is no limit: it has no `=`")]
    NoValue(String),
    #[error("there is no limit `{0}`")]
    UnknownName(String),
    #[error("the limit `{name}` cannot be `{value}`: {why}")]
    BadValue { name: LimitName, value: String, why: &'static str },
}

impl NoLimit {
    /// What can be typed instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoValue(_) | Self::UnknownName(_) => {
                "`cpu=1.5`, `memory=512MiB`, `pids=100`, `disk=1GiB`, `network=none`; several with commas"
            }
            Self::BadValue { name, .. } => match name {
                LimitName::Cpu => "processor cores, at least 0.01: `cpu=1.5`",
                LimitName::Memory => "a size: `memory=512MiB`, `memory=1.5GiB`",
                LimitName::Pids => "a number of processes and threads: `pids=100`",
                LimitName::Disk => "a size: `disk=1GiB`",
                LimitName::Network => "the network is there or not: `network=none`",
            },
        }
    }
}

impl Cores {
    /// `None`: it is less than a hundredth, or no number.
    pub fn of(cores: f64) -> Option<Self> {
        let thousandths = (cores * 1000.0).round();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was looked at")]
        (10.0..=4e9).contains(&thousandths).then_some(Self(thousandths as u32))
    }

    pub fn thousandths(self) -> u32 {
        self.0
    }

    /// As many cores as hold it.
    pub fn whole(self) -> u32 {
        self.0.div_ceil(1000)
    }

    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.as_f64())
    }
}

impl LimitName {
    pub const ALL: [Self; 5] = [Self::Cpu, Self::Memory, Self::Pids, Self::Disk, Self::Network];

    /// As it is typed and written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Disk => "disk",
            Self::Network => "network",
        }
    }

    /// `None`: another version has more limits.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

impl fmt::Display for LimitName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl Limits {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads `cpu=1.5,memory=512MiB`. Of the same name the last counts.
    /// # Errors
    /// Everything that is wrong.
    pub fn parse(text: &str) -> Result<Self, Vec<NoLimit>> {
        let mut limits = Self::default();
        let mut faults = Vec::new();
        for part in text.split(',').map(str::trim) {
            let Some((name, value)) = part.split_once('=') else {
                faults.push(NoLimit::NoValue(part.to_owned()));
                continue;
            };
            match LimitName::named(name.trim()) {
                Some(name) => faults.extend(limits.set(name, value.trim()).err()),
                None => faults.push(NoLimit::UnknownName(name.trim().to_owned())),
            }
        }
        if faults.is_empty() { Ok(limits) } else { Err(faults) }
    }

    fn set(&mut self, name: LimitName, value: &str) -> Result<(), NoLimit> {
        let bad = |why| NoLimit::BadValue { name, value: value.to_owned(), why };
        let size = || bytes(value).ok_or_else(|| bad("it is no size"));
        match name {
            LimitName::Cpu => {
                let cores = value.parse::<f64>().map_err(|_| bad("it is no number"))?;
                self.cpus = Some(Cores::of(cores).ok_or_else(|| bad("it is not at least 0.01"))?);
            }
            LimitName::Memory => self.memory = Some(size()?),
            LimitName::Pids => {
                let number = value.parse::<u64>().map_err(|_| bad("it is no whole number"))?;
                self.pids = Some(number).filter(|number| *number > 0);
                self.pids.ok_or_else(|| bad("a step is at least one process"))?;
            }
            LimitName::Disk => self.disk = Some(size()?),
            LimitName::Network if value == "none" => self.no_network = true,
            LimitName::Network => return Err(bad("it is not `none`")),
        }
        Ok(())
    }

    /// These, and where `later` says something, that.
    pub fn or(self, later: Self) -> Self {
        Self {
            cpus: later.cpus.or(self.cpus),
            memory: later.memory.or(self.memory),
            pids: later.pids.or(self.pids),
            disk: later.disk.or(self.disk),
            no_network: self.no_network || later.no_network,
        }
    }

    /// Both hold: of each the lower.
    pub fn and(self, other: Self) -> Self {
        fn lower<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            }
        }
        Self {
            cpus: lower(self.cpus, other.cpus),
            memory: lower(self.memory, other.memory),
            pids: lower(self.pids, other.pids),
            disk: lower(self.disk, other.disk),
            no_network: self.no_network || other.no_network,
        }
    }

    /// Each that is asked for, with its value as it can be typed.
    pub fn each(&self) -> impl Iterator<Item = (LimitName, String)> {
        let each = [
            (LimitName::Cpu, self.cpus.map(|cores| cores.to_string())),
            (LimitName::Memory, self.memory.map(size)),
            (LimitName::Pids, self.pids.map(|pids| pids.to_string())),
            (LimitName::Disk, self.disk.map(size)),
            (LimitName::Network, self.no_network.then(|| "none".to_owned())),
        ];
        each.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}

/// As it can be typed: `cpu=1.5,memory=512MiB`.
impl fmt::Display for Limits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<String> = self.each().map(|(name, value)| format!("{name}={value}")).collect();
        out.write_str(&each.join(","))
    }
}

const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// Bytes in the largest unit that leaves no rest: exact, and read back as the same.
fn size(bytes: u64) -> String {
    let unit = UNITS.into_iter().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| bytes.to_string(), |(name, unit)| format!("{}{name}", bytes / unit))
}

/// `512m`, `1.5GiB`, `1024`. Units count in powers of 1024, as Docker's do. `None`: it is no size, or none at all.
fn bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let unit = text[digits..].trim();
    let of_unit = |(name, size): (&str, u64)| {
        let (letter, name) = (&name[..1], name.to_ascii_lowercase());
        (unit == name || unit.trim_end_matches('b').eq_ignore_ascii_case(letter)).then_some(size)
    };
    let factor = if matches!(unit, "" | "b") { 1 } else { UNITS.into_iter().find_map(of_unit)? };
    #[expect(clippy::cast_precision_loss, reason = "a factor is a power of two")]
    let bytes = text[..digits].parse::<f64>().ok()? * factor as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was looked at")]
    (1.0..9e18).contains(&bytes).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_written_as_they_are_typed() {
        let text = "cpu=1.5,memory=512MiB,pids=100,disk=1GiB,network=none";
        let limits = Limits::parse(text).expect("limits");
        assert_eq!(limits.to_string(), text);
        assert_eq!((limits.memory, limits.cpus.map(Cores::thousandths)), (Some(512 << 20), Some(1500)));
        assert_eq!(Limits::parse(" memory = 1.5g , memory=1000 ").expect("limits").to_string(), "memory=1000");
        assert_eq!(Limits::parse("disk=2kb").expect("limits").disk, Some(2048));
        assert!(Limits::default().is_empty() && Limits::default().to_string().is_empty());
    }

    #[test]
    fn all_that_is_wrong_is_said_with_the_way_out() {
        let faults = Limits::parse("cpu=0,memory=lots,pids=0,pids=x,disk=-1,network=some,gpu=1,memory,memory=0").expect_err("no limits");
        let said: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let expected = [
            "the limit `cpu` cannot be `0`: it is not at least 0.01",
            "the limit `memory` cannot be `lots`: it is no size",
            "the limit `pids` cannot be `0`: a step is at least one process",
            "the limit `pids` cannot be `x`: it is no whole number",
            "the limit `disk` cannot be `-1`: it is no size",
            "the limit `network` cannot be `some`: it is not `none`",
            "there is no limit `gpu`",
            "`memory` is no limit: it has no `=`",
            "the limit `memory` cannot be `0`: it is no size",
        ];
        assert_eq!(said, expected);
        assert!(faults.iter().all(|fault| fault.hint().contains('`')));
    }

    #[test]
    fn of_two_limits_the_lower_holds_and_a_later_one_replaces() {
        let (one, other) = (Limits::parse("memory=1g,pids=5").expect("limits"), Limits::parse("memory=2g,network=none").expect("limits"));
        assert_eq!(one.and(other).to_string(), "memory=1GiB,pids=5,network=none");
        assert_eq!(one.or(other).to_string(), "memory=2GiB,pids=5,network=none");
    }

    #[test]
    fn part_of_a_core_needs_a_whole_one() {
        assert_eq!([0.01, 1.0, 1.5, 2.001].map(|cores| Cores::of(cores).map(Cores::whole)), [Some(1), Some(1), Some(2), Some(3)]);
        assert_eq!([Cores::of(0.0), Cores::of(-1.0), Cores::of(f64::NAN), Cores::of(1e9)], [None; 4]);
    }
}
