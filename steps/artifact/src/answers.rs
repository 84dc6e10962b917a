//! What an answer of the server means, and what follows. Values in, values out.
//!
//! Source: GitLab Runner v19.4, `network/gitlab.go`, `commands/helpers/artifacts_{uploader,downloader}.go`.

use reqwest::Url;
use std::time::Duration;

/// Uploads that a busy server has turned away are tried more often than others.
const TRIES_WHEN_UNAVAILABLE: u32 = 6;
const MORE_TRIES: u32 = 2;
const MOST_REDIRECTS: u32 = 3;

/// What an upload or a download came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// There, and to be asked for there.
    Redirected(Url),
    Forbidden,
    Unauthorized,
    NotFound,
    TooLarge,
    Unavailable,
    /// Anything else, with what was said of it.
    Failed(String),
}

impl Outcome {
    /// Of an upload. `message`: what the server said about it.
    pub fn of_upload(status: u16, location: Option<Url>, message: Option<&str>) -> Self {
        match (status, location) {
            (201, _) => Self::Done,
            (307, Some(location)) => Self::Redirected(location),
            (403, _) => Self::Forbidden,
            (413, _) => Self::TooLarge,
            (503, _) => Self::Unavailable,
            (status, _) => Self::failed(status, message),
        }
    }

    /// Of a download.
    pub fn of_download(status: u16, location: Option<Url>, message: Option<&str>) -> Self {
        match (status, location) {
            (200, _) => Self::Done,
            (301 | 302 | 303 | 307 | 308, Some(location)) => Self::Redirected(location),
            (403, _) => Self::Forbidden,
            (401, _) => Self::Unauthorized,
            (404, _) => Self::NotFound,
            (status, _) => Self::failed(status, message),
        }
    }

    fn failed(status: u16, message: Option<&str>) -> Self {
        Self::Failed(match message {
            Some(message) => format!("the server answered {status}: {message}"),
            None => format!("the server answered {status}"),
        })
    }

    /// What there is to say when nothing follows.
    pub fn words(&self) -> String {
        match self {
            Self::Done => "done".to_owned(),
            Self::Redirected(_) => "the server sends from place to place".to_owned(),
            Self::Forbidden => "the server forbids it (403)".to_owned(),
            Self::Unauthorized => "the server does not know the token (401)".to_owned(),
            Self::NotFound => "the server has none (404)".to_owned(),
            Self::TooLarge => "the server takes nothing as large (413)".to_owned(),
            Self::Unavailable => "the server is not available (503)".to_owned(),
            Self::Failed(what) => what.clone(),
        }
    }

    /// The way out.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Forbidden | Self::Unauthorized => {
                Some("the token must be that of a job that runs, and the artifacts of a project that it may read")
            }
            Self::NotFound => Some("the artifacts may have expired: run the job again that made them"),
            Self::TooLarge => Some("leave files out with `exclude`, or raise the project's limit of artifacts"),
            Self::Done | Self::Redirected(_) | Self::Unavailable | Self::Failed(_) => None,
        }
    }
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tried {
    /// Requests that were answered by something else than another place.
    pub tries: u32,
    pub redirects: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Done,
    /// At once, at this address.
    At(Url),
    Wait(Duration),
    GiveUp,
}

/// After an upload to `address`. `attempts`: those that the job wants.
pub fn after_upload(outcome: &Outcome, address: &Url, tried: Tried, attempts: u32) -> Next {
    match outcome {
        Outcome::Done => Next::Done,
        Outcome::Redirected(location) if tried.redirects < MOST_REDIRECTS => Next::At(moved(address, location)),
        Outcome::Redirected(_) | Outcome::Forbidden | Outcome::TooLarge | Outcome::Unauthorized | Outcome::NotFound => Next::GiveUp,
        Outcome::Unavailable => again(tried, TRIES_WHEN_UNAVAILABLE),
        Outcome::Failed(_) => again(tried, attempts + MORE_TRIES),
    }
}

/// After a download that was no redirect.
pub fn after_download(outcome: &Outcome, tried: Tried, attempts: u32) -> Next {
    match outcome {
        Outcome::Done => Next::Done,
        Outcome::Unavailable | Outcome::Failed(_) if tried.tries < attempts + MORE_TRIES => Next::Wait(Duration::from_secs(1)),
        _ => Next::GiveUp,
    }
}

/// 1 s, 2 s, 4 s, and then 5 s.
fn again(tried: Tried, most: u32) -> Next {
    if tried.tries >= most {
        return Next::GiveUp;
    }
    Next::Wait(Duration::from_secs(1 << tried.tries.saturating_sub(1).min(3)).min(Duration::from_secs(5)))
}

/// The same upload on another server: only scheme and host of the answer count.
fn moved(address: &Url, location: &Url) -> Url {
    let mut moved = location.clone();
    moved.set_path(address.path());
    moved.set_query(address.query());
    moved
}

/// Whether a token that was meant for `from` may go to `to`: to the same server, or to the same host by a safer way.
pub fn may_have_token(from: &Url, to: &Url) -> bool {
    let is_same = from.origin() == to.origin();
    let has_no_port = from.port().is_none() && to.port().is_none();
    is_same || (from.host() == to.host() && from.scheme() == "http" && to.scheme() == "https" && has_no_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn at() -> Url {
        url("https://gitlab.example/api/v4/jobs/7/artifacts?artifact_type=archive")
    }

    fn tries(outcome: &Outcome, attempts: u32) -> u32 {
        let is_over = |tries: &u32| !matches!(after_upload(outcome, &at(), Tried { tries: *tries, redirects: 0 }, attempts), Next::Wait(_));
        (1..).find(is_over).unwrap()
    }

    #[test]
    fn art_01_every_answer_to_an_upload_has_its_meaning() {
        assert_eq!(Outcome::of_upload(201, None, None), Outcome::Done);
        assert_eq!(Outcome::of_upload(413, None, None), Outcome::TooLarge);
        assert_eq!(Outcome::of_upload(403, None, None), Outcome::Forbidden);
        assert_eq!(Outcome::of_upload(503, None, None), Outcome::Unavailable);
        assert_eq!(
            Outcome::of_upload(400, None, Some("artifacts are disabled")),
            Outcome::Failed("the server answered 400: artifacts are disabled".into())
        );
        assert_eq!(Outcome::of_upload(400, None, None), Outcome::Failed("the server answered 400".into()));
        assert_eq!(Outcome::of_upload(307, None, None), Outcome::Failed("the server answered 307".into()));
    }

    #[test]
    fn art_02_a_redirected_upload_is_sent_again_there_with_its_own_path() {
        let to = Outcome::of_upload(307, Some(url("http://other:81/somewhere?else=1")), None);
        let next = |redirects| after_upload(&to, &at(), Tried { tries: 0, redirects }, 1);
        assert_eq!(next(0), Next::At(url("http://other:81/api/v4/jobs/7/artifacts?artifact_type=archive")));
        assert_eq!((next(2) != Next::GiveUp, next(3)), (true, Next::GiveUp));
    }

    #[test]
    fn art_03_every_answer_to_a_download_has_its_meaning() {
        let of = |status| Outcome::of_download(status, None, Some("x"));
        assert_eq!([of(200), of(403), of(401), of(404)], [Outcome::Done, Outcome::Forbidden, Outcome::Unauthorized, Outcome::NotFound]);
        assert_eq!(of(302), Outcome::Failed("the server answered 302: x".into()));
    }

    #[test]
    fn art_04_what_fails_in_general_is_tried_twice_again() {
        let next = |tries| after_download(&Outcome::Failed("x".into()), Tried { tries, redirects: 0 }, 1);
        assert_eq!([next(1), next(2), next(3)], [Next::Wait(Duration::from_secs(1)), Next::Wait(Duration::from_secs(1)), Next::GiveUp]);
        for last in [Outcome::Forbidden, Outcome::Unauthorized, Outcome::NotFound] {
            assert_eq!(after_download(&last, Tried { tries: 1, redirects: 0 }, 10), Next::GiveUp);
        }
    }

    #[test]
    fn an_unavailable_server_is_tried_six_times_and_a_failing_one_three() {
        assert_eq!(tries(&Outcome::Unavailable, 1), 6);
        assert_eq!(tries(&Outcome::Failed("x".into()), 1), 3);
        assert_eq!((tries(&Outcome::Forbidden, 10), tries(&Outcome::TooLarge, 10)), (1, 1));
        let pauses = (1..6).map(|tries| again(Tried { tries, redirects: 0 }, 6));
        let seconds: Vec<u64> = pauses.map(|next| if let Next::Wait(pause) = next { pause.as_secs() } else { 0 }).collect();
        assert_eq!(seconds, [1, 2, 4, 5, 5]);
    }

    #[test]
    fn a_token_goes_to_its_own_server_alone() {
        let from = url("http://gitlab.example/a");
        assert!(may_have_token(&from, &url("http://gitlab.example/b")));
        assert!(may_have_token(&from, &url("https://gitlab.example/b")));
        for other in ["http://gitlab.example:81/", "https://store.example/", "https://gitlab.example:444/"] {
            assert!(!may_have_token(&from, &url(other)), "{other}");
        }
        assert!(!may_have_token(&url("https://gitlab.example"), &url("http://gitlab.example")), "not in clear");
    }
}
