//! Where a server is: the `url` of a configuration becomes the base of its API.

use std::fmt;
use url::Url;

/// The base of a server's API. Ends in `/api/v4/`. Printed without a password.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerUrl(Url);

/// Why a text is no address of a server. It never holds the text: there may be a password in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadServerUrl {
    #[error("the url is no address: {why}")]
    Unreadable { why: String },
    #[error("the scheme of the url is `{scheme}`, only `http` and `https` are possible")]
    Scheme { scheme: String },
    #[error("the url names no host")]
    NoHost,
}

impl ServerUrl {
    /// Takes a `url` as configurations have it: with or without a last `/`, and with the `/ci` of old ones.
    /// # Errors
    /// It is no address over HTTP.
    pub fn parse(text: &str) -> Result<Self, BadServerUrl> {
        let text = text.trim().trim_end_matches('/');
        let text = text.strip_suffix("/ci").unwrap_or(text);
        let url = Url::parse(&format!("{text}/api/v4/")).map_err(|fault| BadServerUrl::Unreadable { why: fault.to_string() })?;
        match url.scheme() {
            "http" | "https" if url.has_host() => Ok(Self(url)),
            "http" | "https" => Err(BadServerUrl::NoHost),
            other => Err(BadServerUrl::Scheme { scheme: other.to_owned() }),
        }
    }

    /// The address of one call: `jobs/request`.
    pub fn endpoint(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        url.set_path(&format!("{}{path}", self.0.path()));
        url
    }

    pub fn is_tls(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// The host as files of certificates are named after it.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }
}

/// Without user and password.
pub(crate) fn without_credentials(url: &Url) -> String {
    let mut url = url.clone();
    // Fails only for addresses that cannot have any.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.into()
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(without_credentials(&self.0).trim_end_matches("api/v4/"))
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_and_a_ci_at_the_end_do_not_matter() {
        for text in ["https://gitlab.example", "https://gitlab.example/", "https://gitlab.example/ci", "https://gitlab.example/ci/"] {
            let url = ServerUrl::parse(text).expect(text).endpoint("jobs/request");
            assert_eq!(url.as_str(), "https://gitlab.example/api/v4/jobs/request", "{text}");
        }
        let below = ServerUrl::parse("http://localhost:3000/gitlab/").expect("an address").endpoint("runners/verify");
        assert_eq!(below.as_str(), "http://localhost:3000/gitlab/api/v4/runners/verify");
    }

    #[test]
    fn only_http_is_spoken() {
        assert_eq!(ServerUrl::parse("ftp://gitlab.example"), Err(BadServerUrl::Scheme { scheme: "ftp".to_owned() }));
        assert!(matches!(ServerUrl::parse("gitlab.example"), Err(BadServerUrl::Unreadable { .. })));
        assert!(ServerUrl::parse("").is_err());
    }

    #[test]
    fn a_password_is_never_printed() {
        let url = ServerUrl::parse("https://user:hunter22@gitlab.example").expect("an address");
        assert_eq!(
            (url.to_string(), format!("{url:?}")),
            ("https://gitlab.example/".to_owned(), "ServerUrl(https://gitlab.example/)".to_owned())
        );
    }
}
