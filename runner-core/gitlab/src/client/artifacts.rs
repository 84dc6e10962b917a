//! A small file that the runner itself adds to a job, such as its result. Artifacts of the job's own are the business of a step.

use super::call::{Call, Content};
use super::{Client, Endpoint, JobAccess};
use crate::answer::Answered;
use bytes::Bytes;

/// What is added to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// As people see it: `step-result.json.gz`.
    pub name: &'static str,
    /// One that GitLab knows: `metrics_referee`.
    pub kind: &'static str,
    /// `gzip`, `zip` or `raw`.
    pub format: &'static str,
    pub content: Bytes,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uploaded {
    Done,
    /// The server has no room for it, or does not want it; asking again changes nothing.
    Refused {
        why: String,
    },
    Failed {
        why: String,
    },
}

/// Between the parts of a form. Whoever reads it looks for it at the beginning of lines, and a gzip stream begins otherwise.
const BOUNDARY: &str = "----runner-core-5f1d8e0c9a7b4632";

impl Client {
    /// Adds a file to a job that runs.
    pub async fn upload_artifact(&self, job: &JobAccess, artifact: &Artifact) -> Uploaded {
        let mut url = job.server.endpoint(&format!("jobs/{}/artifacts", job.id));
        url.set_query(Some(&format!("artifact_format={}&artifact_type={}", artifact.format, artifact.kind)));
        let answered = self
            .call(&Call {
                endpoint: Endpoint::UploadArtifacts,
                method: "POST",
                url,
                token: Some(("job-token", &job.token)),
                headers: Vec::new(),
                content: Content::Form { boundary: BOUNDARY, body: form(artifact) },
                expects_json: true,
                longest_answer: self.inner.settings.limits.other,
            })
            .await;
        uploaded(answered)
    }
}

/// One part, `file` (RFC 7578).
fn form(artifact: &Artifact) -> Bytes {
    let head = format!(
        "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{}\"\r\ncontent-type: application/octet-stream\r\n\r\n",
        artifact.name
    );
    [head.as_bytes(), &artifact.content, format!("\r\n--{BOUNDARY}--\r\n").as_bytes()].concat().into()
}

/// As GitLab's runner reads the answers (network/gitlab.go, `UploadRawArtifacts`).
fn uploaded(answered: Answered) -> Uploaded {
    match answered {
        Ok(answer) if answer.status == 201 => Uploaded::Done,
        Ok(answer) if matches!(answer.status, 400 | 401 | 403 | 404 | 405 | 413) => Uploaded::Refused { why: answer.describe() },
        Ok(answer) => Uploaded::Failed { why: answer.describe() },
        Err(fault) => Uploaded::Failed { why: fault.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Answer;

    #[test]
    fn a_form_has_one_part_with_the_file_as_it_is() {
        let artifact = Artifact { name: "a.gz", kind: "metrics_referee", format: "gzip", content: Bytes::from_static(b"\x1f\x8b\r\nx") };
        let form = form(&artifact);
        let text = String::from_utf8_lossy(&form);
        assert!(text.starts_with("------runner-core-") && text.ends_with("--\r\n"), "{text}");
        assert!(text.contains("name=\"file\"; filename=\"a.gz\"\r\n"), "{text}");
        assert!(form.windows(9).any(|window| window == b"\r\n\r\n\x1f\x8b\r\nx"), "{text}");
    }

    #[test]
    fn case_180_answers_to_an_upload() {
        let of = |status| uploaded(Ok(Answer { status, ..Answer::default() }));
        assert_eq!(of(201), Uploaded::Done);
        for refused in [413, 403, 400] {
            assert!(matches!(of(refused), Uploaded::Refused { .. }), "{refused}");
        }
        assert!(matches!(of(503), Uploaded::Failed { .. }));
    }
}
