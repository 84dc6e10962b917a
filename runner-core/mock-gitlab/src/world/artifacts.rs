//! Artifacts: kept as they come, given as they were meant.

use super::{Job, Stage, World};
use crate::message::{Reply, Request};
use bytes::Bytes;

impl World {
    pub(super) fn upload(&mut self, request: &Request, id: &str) -> Reply {
        let key = self.job_of(request).filter(|key| key.id.to_string() == id);
        match key.and_then(|key| self.jobs.get_mut(&key)).filter(|job| job.stage != Stage::Ended) {
            Some(job) => {
                job.artifacts.push((request.query.clone(), request.body.clone()));
                Reply::json(201, &serde_json::json!({ "message": "201 Created" }))
            }
            None => Reply::message(403, "Forbidden"),
        }
    }

    /// The file of the last upload of an archive; without one, of whatever came last.
    pub(super) fn download(&mut self, request: &Request, id: &str) -> Reply {
        let key = self.job_of(request).filter(|key| key.id.to_string() == id);
        let Some(job) = key.and_then(|key| self.jobs.get(&key)) else { return Reply::message(403, "Forbidden") };
        match job.archive() {
            None => Reply::message(404, "Not Found"),
            Some(file) => Reply { body: file, ..Reply::status(200).with("content-type", "application/octet-stream") },
        }
    }
}

impl Job {
    /// The file that a download gives: the last archive that was uploaded.
    pub fn archive(&self) -> Option<Bytes> {
        let is_archive = |query: &str| query.contains("artifact_type=archive") || !query.contains("artifact_type=");
        let (_, body) = self.artifacts.iter().rev().find(|(query, _)| is_archive(query))?;
        Some(file_of(body).unwrap_or_else(|| body.clone()))
    }
}

/// The one file of a multipart body (RFC 2046): between the end of its head and the boundary that the body begins with.
fn file_of(body: &Bytes) -> Option<Bytes> {
    let position = |text: &[u8], from: usize| Some(from + body.get(from..)?.windows(text.len()).position(|window| window == text)?);
    let boundary = body.get(..position(b"\r\n", 0)?)?.to_vec();
    let begin = position(b"\r\n\r\n", 0)? + 4;
    let mut end = boundary;
    end.splice(0..0, *b"\r\n");
    Some(body.slice(begin..position(&end, begin)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_body_is_what_stands_between_its_boundaries() {
        let body = Bytes::from_static(b"--b0\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nPK\r\n--b\r\n\r\n--b0--\r\n");
        assert_eq!(file_of(&body).as_deref(), Some(&b"PK\r\n--b\r\n"[..]));
        assert_eq!(file_of(&Bytes::from_static(b"no multipart")), None);
    }
}
