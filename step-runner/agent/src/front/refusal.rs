//! What a caller is told when something cannot be done: a gRPC status with the original's text, and a reason for programs
//! (`google.rpc.ErrorInfo`, domain `step-runner`; docs/reference/api.md lists the reasons).

use crate::frame::Refused;
use std::collections::HashMap;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

/// The namespace of the reasons.
pub const DOMAIN: &str = "step-runner";

/// A status with a reason. `about`: what a program may want to know, by name.
pub fn status(code: Code, reason: &str, message: impl Into<String>, about: &[(&str, &str)]) -> Status {
    let about: HashMap<String, String> = about.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Status::with_error_details(code, message, ErrorDetails::with_error_info(reason, DOMAIN, about))
}

pub fn unknown_job(id: &str) -> Status {
    status(Code::NotFound, "NO_SUCH_JOB", format!("no job with id {id:?}"), &[("id", id)])
}

pub fn unsafe_id(id: &str, fault: &str) -> Status {
    let message = format!("initializing request: the id {id:?} cannot name a directory: {fault}");
    status(Code::InvalidArgument, "UNSAFE_ID", message, &[("id", id)])
}

/// The job process has looked at the request.
pub fn refused(id: &str, refused: &Refused) -> Status {
    let code = if refused.is_ours { Code::Unavailable } else { Code::InvalidArgument };
    status(code, &refused.reason, refused.message.clone(), &[("id", id)])
}

pub fn leaving() -> Status {
    status(Code::Unavailable, "LEAVING", "the agent takes no new jobs: it was asked to end", &[])
}

/// A message over the limit is refused before any service sees it, with a code that means something else to callers.
pub fn name_limit<B>(mut response: tonic::codegen::http::Response<B>) -> tonic::codegen::http::Response<B> {
    if let Some(refused) = Status::from_header_map(response.headers())
        && refused.code() == Code::OutOfRange
        && refused.message().contains("message length too large")
    {
        let limit = super::LARGEST_MESSAGE.to_string();
        let status = status(Code::ResourceExhausted, "TOO_LARGE", refused.message(), &[("limit", &limit)]);
        for name in ["grpc-status", "grpc-message", "grpc-status-details-bin"] {
            response.headers_mut().remove(name);
        }
        // Texts of ours fit into a header.
        let _ = status.add_header(response.headers_mut());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_finds_the_reason_beside_the_text() {
        let status = unknown_job("7");
        assert_eq!((status.code(), status.message()), (Code::NotFound, "no job with id \"7\""));
        let info = status.get_details_error_info().unwrap();
        assert_eq!((info.reason.as_str(), info.domain.as_str(), info.metadata["id"].as_str()), ("NO_SUCH_JOB", "step-runner", "7"));
    }
}
