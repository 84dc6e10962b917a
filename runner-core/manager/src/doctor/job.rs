//! A real job of one step, as a server would send it.

use super::sheet::Trouble;
use crate::dispatch::{self, Added};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use step_client::{AgentClient, RunRequest};
use step_payload::{Here, steps_of};

/// What the job says.
const WORDS: &str = "runner-core doctor was here";

/// A machine that needs longer for one `echo` is no machine for jobs.
const LIMIT: Duration = Duration::from_secs(60);

/// No job of a runner has such an id: it runs beside them.
pub fn id() -> String {
    format!("runner-core-doctor-{}", std::process::id())
}

/// # Errors
/// It did not run to a good end.
pub async fn run(agent: &AgentClient) -> Result<(), Trouble> {
    let request = request().map_err(|why| Trouble::new(why, "this is a fault of runner-core: please report it"))?;
    let mut log = Vec::new();
    let ran = agent.run_to_end(request, |bytes| {
        log.extend_from_slice(&bytes);
        Ok(())
    });
    let ended = match tokio::time::timeout(LIMIT, ran).await {
        Ok(Ok(ended)) => ended,
        Ok(Err(fault)) => return Err(Trouble::new(fault.to_string(), "the agent's own log on the instance says more")),
        Err(_) => {
            return Err(Trouble::new(
                format!("a job of one `echo` is not done after {} s", LIMIT.as_secs()),
                "look at the load of the instance",
            ));
        }
    };
    let log = String::from_utf8_lossy(&log);
    if let Err(failure) = ended.status.outcome().into_result() {
        return Err(Trouble::new(
            format!("the job failed: {failure}\n{}", log.trim_end()),
            "a job needs a shell (`sh`) and a directory it may write to",
        ));
    }
    if log.contains(WORDS) {
        Ok(())
    } else {
        Err(Trouble::new("the job succeeded, and its log did not arrive", "the agent is another version: put the same one there"))
    }
}

fn request() -> Result<RunRequest, String> {
    let payload = json!({
        "id": 1, "token": "", "job_info": {"name": "runner-core doctor"},
        "variables": [{"key": "GIT_STRATEGY", "value": "none"}],
        "steps": [{"name": "script", "script": [format!("echo {WORDS}")]}],
    });
    let here = Here { live: true, ignore_image: true, ..Here::default() };
    let translation = steps_of(&payload.to_string(), &here, &BTreeMap::new());
    let translation =
        translation.map_err(|problems| problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>().join("; "))?;
    Ok(dispatch::request(&translation, Added { id: id(), time_limit: Some(LIMIT), ..Added::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_is_one_step_with_an_id_that_no_job_of_a_server_has() {
        let request = request().expect("a request");
        assert!(request.id.parse::<u64>().is_err(), "{}", request.id);
        assert!(request.steps.contains(WORDS) || request.job_steps.is_some_and(|steps| format!("{steps:?}").contains(WORDS)));
    }
}
