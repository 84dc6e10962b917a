//! Why a job failed, in the words that its server knows.

use std::collections::BTreeMap;

/// Servers always know these.
const ALWAYS: [&str; 3] = ["script_failure", "runner_system_failure", "job_execution_timeout"];

const UNKNOWN: &str = "unknown_failure";

/// What to send instead of a reason that the server does not know.
const INSTEAD: [(&str, &str); 7] = [
    ("", "script_failure"),
    ("image_pull_failure", "runner_system_failure"),
    ("runner_configuration_error", "script_failure"),
    ("runner_external_dependency_failure", "runner_system_failure"),
    ("runner_interrupted", UNKNOWN),
    ("job_canceled", UNKNOWN),
    (UNKNOWN, UNKNOWN),
];

/// A chain of replacements is followed this far: a loop ends.
const HOPS: usize = 10;

/// The reason as it is sent. `known` are the `features.failure_reasons` of the job.
pub fn sent_as<'a>(reason: &'a str, known: &[String]) -> &'a str {
    follow(reason, known, &BTreeMap::from(INSTEAD))
}

fn follow<'a>(reason: &'a str, known: &[String], instead: &BTreeMap<&'a str, &'a str>) -> &'a str {
    let mut reason = reason;
    for _ in 0..HOPS {
        if ALWAYS.contains(&reason) || reason == UNKNOWN || known.iter().any(|name| name == reason) {
            return reason;
        }
        match instead.get(reason) {
            Some(other) => reason = other,
            None => return UNKNOWN,
        }
    }
    UNKNOWN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runner_186_no_reason_is_a_script_failure() {
        assert_eq!(sent_as("", &[]), "script_failure");
    }

    #[test]
    fn runner_187_what_the_server_supports_is_sent_as_it_is_and_three_always() {
        let known = ["image_pull_failure".to_owned(), "runner_interrupted".to_owned()];
        for reason in ["image_pull_failure", "runner_interrupted", "script_failure", "runner_system_failure", "job_execution_timeout"] {
            assert_eq!(sent_as(reason, &known), reason);
        }
        assert_eq!(sent_as("image_pull_failure", &[]), "runner_system_failure");
        assert_eq!(sent_as("runner_configuration_error", &[]), "script_failure");
        assert_eq!(sent_as("runner_external_dependency_failure", &[]), "runner_system_failure");
    }

    #[test]
    fn runner_189_what_leads_nowhere_is_an_unknown_failure() {
        assert_eq!(sent_as("runner_interrupted", &[]), "unknown_failure");
        assert_eq!(sent_as("job_canceled", &[]), "unknown_failure");
        assert_eq!(sent_as("the_moon", &[]), "unknown_failure");
        let loops = BTreeMap::from([("a", "b"), ("b", "a"), ("c", "d")]);
        assert_eq!(follow("a", &[], &loops), "unknown_failure");
        assert_eq!(follow("c", &[], &loops), "unknown_failure");
    }
}
