//! Whether a call follows where a server sends it. A token goes to no other host.

use url::Url;

/// As many as Go follows.
const MOST: u32 = 10;

/// Why a redirect is not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFollowed {
    #[error("the server redirects and does not say where")]
    Nowhere,
    #[error("the server redirects to `{to}`, which is another server: if that is right, make it the url of the runner")]
    OtherServer { to: String },
    #[error("the server redirects in circles")]
    TooMany,
}

/// Whether this answer sends a call elsewhere.
pub fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 307 | 308)
}

/// Where a call goes next. Method and body stay as they are: what a server means by sending a POST elsewhere is never a GET.
/// # Errors
/// There the token has no place, or it never ends.
pub fn follow(from: &Url, location: Option<&str>, followed: u32) -> Result<Url, NotFollowed> {
    let to = location.and_then(|location| from.join(location).ok()).ok_or(NotFollowed::Nowhere)?;
    let is_same = to.scheme() == from.scheme() && to.port_or_known_default() == from.port_or_known_default();
    // The usual one: everything is sent to TLS.
    let is_upgrade = from.scheme() == "http" && to.scheme() == "https";
    if to.host() != from.host() || !(is_same || is_upgrade) {
        return Err(NotFollowed::OtherServer { to: to.origin().ascii_serialization() });
    }
    if followed >= MOST { Err(NotFollowed::TooMany) } else { Ok(to) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(text: &str, location: Option<&str>) -> Result<String, NotFollowed> {
        follow(&Url::parse(text).expect("an address"), location, 0).map(|url| url.to_string())
    }

    #[test]
    fn the_same_host_is_followed_also_to_tls() {
        let url = "http://gitlab.example/api/v4/jobs/request";
        assert_eq!(
            from(url, Some("https://gitlab.example/api/v4/jobs/request")),
            Ok("https://gitlab.example/api/v4/jobs/request".to_owned())
        );
        assert_eq!(from(url, Some("/gitlab/api/v4/jobs/request")), Ok("http://gitlab.example/gitlab/api/v4/jobs/request".to_owned()));
    }

    #[test]
    fn a_token_goes_to_no_other_server_and_never_from_tls_to_none() {
        let url = "https://gitlab.example/api/v4/jobs/request";
        for other in ["https://elsewhere.example/", "http://gitlab.example/", "https://gitlab.example:8443/", "ftp://gitlab.example/"] {
            assert!(matches!(from(url, Some(other)), Err(NotFollowed::OtherServer { .. })), "{other}");
        }
        assert_eq!(from(url, None), Err(NotFollowed::Nowhere));
    }

    #[test]
    fn a_circle_ends() {
        let url = Url::parse("https://gitlab.example/a").expect("an address");
        assert_eq!(follow(&url, Some("/a"), 10), Err(NotFollowed::TooMany));
    }
}
