//! What every process of a job has in its environment, so that it is found after the job's own process has died.
//!
//! `STEP_RUNNER_JOB` holds a random word for the job, behind those of the jobs in which it runs: what a job inside has started belongs to the one
//! around it too. A process that clears its environment is not found so.

use super::random;

/// The name of the variable.
pub const VARIABLE: &str = "STEP_RUNNER_JOB";

/// The mark of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// The job's own word.
    pub own: String,
    /// The variable's value.
    pub value: String,
}

impl Marker {
    /// For a job that runs inside those that are `inherited`.
    pub fn new(inherited: Option<&str>) -> Self {
        // Nobody has the same word by accident.
        let own = format!("{:016x}{:016x}", random::number(), random::number());
        let value = match inherited.filter(|inherited| !inherited.is_empty()) {
            Some(inherited) => format!("{inherited}:{own}"),
            None => own.clone(),
        };
        Self { own, value }
    }
}

/// Whether an environment, as `/proc` shows it, belongs to the job with this word.
#[cfg(target_os = "linux")]
pub fn is_in(environment: &[u8], own: &str) -> bool {
    let value = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="));
    value.is_some_and(|value| value.split(|byte| *byte == b':').any(|word| word == own.as_bytes()))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_job_inside_has_the_words_of_those_around_it() {
        let outer = Marker::new(None);
        let inner = Marker::new(Some(&outer.value));
        let environment = |value: &str| format!("A=1\0{VARIABLE}={value}\0B=2\0").into_bytes();
        assert!(is_in(&environment(&inner.value), &inner.own) && is_in(&environment(&inner.value), &outer.own));
        assert!(is_in(&environment(&outer.value), &outer.own) && !is_in(&environment(&outer.value), &inner.own));
        assert!(!is_in(b"A=1\0", &outer.own) && !is_in(format!("X{VARIABLE}={}\0", outer.own).as_bytes(), &outer.own));
        assert!(!is_in(&environment(&outer.value), &outer.own[1..]), "a part of a word is none");
    }
}
