//! The client of the runner core, held against a GitLab server that others wrote. Our own mock is held to the same API beside the client.

use bytes::Bytes;
use ci_tests::kit::Component;
use runner_gitlab::answer::{Accepted, PatchOutcome, Polled, UpdateOutcome};
use runner_gitlab::client::Unwatched;
use runner_gitlab::{Client, ClientSettings, Finished, JobState, RunnerInfo, ServerUrl, SystemId, Token, TraceDigest, Update};
use std::sync::Arc;

#[tokio::test]
async fn a_server_that_others_wrote_takes_a_job_of_ours_from_its_offer_to_its_end() {
    let Some(server) = Component::start("gitlab-mock") else { return };
    let url = ServerUrl::parse(server.get("GITLAB_URL")).expect("an address");
    let id = SystemId::parse("s_0123456789ab").expect("an id");
    let client = Client::new(ClientSettings::new(url, RunnerInfo::of_this_program("instance", "bash"), id), Arc::new(Unwatched));

    let wrong = client.request_job(&Token::new("glrt-wrong"), None).await.polled;
    assert!(matches!(wrong, Polled::Forbidden { .. }), "{wrong:?}");
    let token = Token::new(server.get("GITLAB_RUNNER_TOKEN"));
    let job = client.request_job(&token, None).await.access().expect("a job");
    assert_eq!(client.request_job(&token, None).await.polled, Polled::NoJob);

    assert_eq!(client.accept(&job).await, Accepted::Running);
    let patch = async |first, text: &'static str| client.patch_trace(&job, first, Bytes::from_static(text.as_bytes()), false).await.outcome;
    assert_eq!(patch(0, "hello ").await, PatchOutcome::Accepted { end: 6 });
    // It does not say where it stands, which means from the beginning.
    assert_eq!(patch(9, "x").await, PatchOutcome::RangeMismatch { server_has: 0 });
    assert_eq!(patch(6, "world\n").await, PatchOutcome::Accepted { end: 12 });

    let trace = Some(TraceDigest { bytes: 12, crc: crc32fast::hash(b"hello world\n") });
    let end = Update { state: JobState::Finished(Finished::success()), trace };
    assert_eq!(client.update_job(&job, &end).await.outcome, UpdateOutcome::Succeeded);
}
