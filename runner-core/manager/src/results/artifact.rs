//! A result as a file that the server keeps with the job.

use bytes::Bytes;
use ci_proto::results::KeptResult;
use flate2::Compression;
use flate2::write::GzEncoder;
use runner_gitlab::client::Artifact;
use std::io;
use step_client::wire::result::{Format, Redaction, Writing, read_message, write};
use step_model::masking::Secrets;
use step_model::result::StepId;

/// GitLab's runner uploads what it measured of a job under this kind. One of `archive` would be unpacked into the work trees of later jobs, and there is
/// only one of a kind.
const KIND: &str = "metrics_referee";

/// `None`: the job has no tree.
/// # Errors
/// The tree is damaged.
pub fn of(kept: &KeptResult) -> io::Result<Option<Artifact>> {
    if kept.tree.is_empty() {
        return Ok(None);
    }
    let tree = read_message(&kept.tree).map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))?;
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    // What is secret was masked where the job ran; only its marks are left.
    let redaction = Redaction::new(Secrets::default(), Vec::new());
    write(&mut packed, &tree, StepId::ROOT, Writing { format: Format::Json, our_fields: true, redaction: &redaction })?;
    let content = Bytes::from(packed.finish()?);
    Ok(Some(Artifact { name: "step-result.json.gz", kind: KIND, format: "gzip", content }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ci_proto::step_runner::StepResult;
    use ci_proto::step_runner::step_result::Status;
    use prost::Message as _;
    use std::io::Read as _;

    #[test]
    fn the_file_is_the_tree_as_json() {
        let tree = StepResult { status: Status::Failure.into(), ..StepResult::default() }.encode_to_vec();
        let artifact = of(&KeptResult { tree: tree.into(), ..KeptResult::default() }).expect("a tree").expect("an artifact");
        let mut text = String::new();
        flate2::read::GzDecoder::new(artifact.content.as_ref()).read_to_string(&mut text).expect("gzip");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON")["status"], "failure", "{text}");
    }

    #[test]
    fn a_job_without_a_tree_has_no_artifact() {
        assert_eq!(of(&KeptResult::default()).expect("no fault"), None);
    }
}
