//! Whether a service is ready, decided from what is seen of it.

use std::collections::BTreeSet;
use std::time::Duration;

/// What has to be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    /// The image brings a health check, and the engine runs it.
    Health,
    /// Every one of these ports is listened on.
    Ports(BTreeSet<u16>),
    /// Any of these: what an image exposes is what it could listen on.
    AnyPort(BTreeSet<u16>),
    /// Nothing says what ready means.
    Running,
}

/// What was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    pub is_running: bool,
    pub healthy: Option<bool>,
    pub listens_on: BTreeSet<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Ready,
    NotYet,
    /// It never will be: why, as the end of a sentence about the service.
    Failed(String),
}

impl Sign {
    /// `ports`: what the job says. `exposed` and `has_health_check`: what the image says.
    pub fn of(ports: BTreeSet<u16>, exposed: &[u16], has_health_check: bool) -> Self {
        if !ports.is_empty() {
            Self::Ports(ports)
        } else if has_health_check {
            Self::Health
        } else if exposed.is_empty() {
            Self::Running
        } else {
            Self::AnyPort(exposed.iter().copied().collect())
        }
    }

    /// The ports that are looked at.
    pub fn ports(&self) -> BTreeSet<u16> {
        match self {
            Self::Ports(ports) | Self::AnyPort(ports) => ports.clone(),
            Self::Health | Self::Running => BTreeSet::new(),
        }
    }

    pub fn verdict(&self, seen: &Seen, waited: Duration, limit: Duration) -> Verdict {
        if !seen.is_running {
            return Verdict::Failed("ended before it was ready".to_owned());
        }
        let is_ready = match self {
            Self::Health => seen.healthy == Some(true),
            Self::Ports(ports) => ports.is_subset(&seen.listens_on),
            Self::AnyPort(ports) => !ports.is_disjoint(&seen.listens_on),
            Self::Running => true,
        };
        match is_ready {
            true => Verdict::Ready,
            false if waited < limit => Verdict::NotYet,
            false => Verdict::Failed(format!("was not ready within {} s: {}", limit.as_secs_f64(), self.missing(seen))),
        }
    }

    fn missing(&self, seen: &Seen) -> String {
        let listed = |ports: Vec<&u16>| ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::Health => "its health check has not succeeded".to_owned(),
            Self::Ports(ports) => format!("nothing listens on port {}", listed(ports.difference(&seen.listens_on).collect())),
            Self::AnyPort(ports) => format!("nothing listens on any port that its image exposes ({})", listed(ports.iter().collect())),
            Self::Running => "it does not run".to_owned(),
        }
    }
}

/// How long to wait before looking again: often at first, since most services are quick.
pub fn pause(waited: Duration) -> Duration {
    (waited / 8).clamp(Duration::from_millis(20), Duration::from_millis(500))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    fn seen(listens_on: &[u16]) -> Seen {
        Seen { is_running: true, healthy: None, listens_on: listens_on.iter().copied().collect() }
    }

    fn told(sign: &Sign, seen: &Seen, seconds: u64) -> String {
        match sign.verdict(seen, Duration::from_secs(seconds), LIMIT) {
            Verdict::Failed(why) => why,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn all_ports_that_the_job_names_and_any_that_the_image_exposes() {
        let (named, exposed) = (Sign::of([80, 443].into(), &[], true), Sign::of([].into(), &[80, 443], false));
        assert_eq!([told(&named, &seen(&[80]), 1), told(&named, &seen(&[80, 443]), 1)], ["NotYet", "Ready"]);
        assert_eq!([told(&exposed, &seen(&[]), 1), told(&exposed, &seen(&[443]), 1)], ["NotYet", "Ready"]);
        assert_eq!(told(&named, &seen(&[80]), 30), "was not ready within 30 s: nothing listens on port 443");
        assert_eq!(
            told(&exposed, &seen(&[]), 31),
            "was not ready within 30 s: nothing listens on any port that its image exposes (80, 443)"
        );
    }

    #[test]
    fn a_health_check_of_the_image_comes_before_its_ports() {
        let sign = Sign::of([].into(), &[80], true);
        assert_eq!(told(&sign, &seen(&[80]), 1), "NotYet");
        assert_eq!(told(&sign, &Seen { healthy: Some(true), ..seen(&[]) }, 1), "Ready");
        assert_eq!(
            told(&sign, &Seen { healthy: Some(false), ..seen(&[]) }, 30),
            "was not ready within 30 s: its health check has not succeeded"
        );
    }

    #[test]
    fn one_that_ended_will_never_be_ready() {
        assert_eq!(told(&Sign::Running, &Seen::default(), 0), "ended before it was ready");
        assert_eq!(told(&Sign::of([].into(), &[], false), &seen(&[]), 0), "Ready");
    }

    #[test]
    fn pauses_grow_with_the_wait_and_stay_short() {
        assert_eq!(pause(Duration::ZERO), Duration::from_millis(20));
        assert_eq!(pause(Duration::from_secs(60)), Duration::from_millis(500));
    }
}
