//! A job becomes the request that its agent gets.

use ci_proto::step_runner::RunRequest;
use std::sync::Arc;
use std::time::Duration;
use step_client::wire::request::{Values, to_message};
use step_payload::Translation;

/// What the runner adds to a job.
#[derive(Debug, Clone, Default)]
pub struct Added {
    /// Under which the agent knows the job.
    pub id: String,
    /// Where the job runs, on the instance; made there when it is missing. `None`: where the agent stands.
    pub build_dir: Option<Arc<str>>,
    /// Comes back with the status of the job: see [`crate::seal`].
    pub owner_record: Vec<u8>,
    /// What the agent enforces. `None`: what the job says.
    pub time_limit: Option<Duration>,
}

/// The request. Values of masked variables are in it in clear: it goes to the agent, and nowhere else.
pub fn request(translation: &Translation, added: Added) -> RunRequest {
    let mut request = translation.request.clone();
    request.id = added.id.into();
    request.timeout = added.time_limit.or(request.timeout);
    if let Some(dir) = added.build_dir {
        (request.work_dir, request.build_dir) = (Some(dir.clone()), Some(dir));
    }
    RunRequest { owner_record: added.owner_record, ..to_message(&request, Values::InClear) }
}
