//! Where a repository lies, and who asks for it: the address without secrets, and the secrets that were in it.

use std::fmt;
use url::Url;

/// The address of a repository, as git may show it to anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// Nothing secret.
    pub url: String,
    pub transport: Transport,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// `https://host:port`: whom a token is meant for.
    Http {
        origin: String,
    },
    Ssh,
    /// `git://`, `file://`, a path: nobody asks who we are.
    Open,
}

/// Who we say we are to an HTTP server.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub username: String,
    pub password: String,
}

/// Nothing of it is for a log.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({})", self.username)
    }
}

/// An address that is none. The text of the address is not in it: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    #[error("it is empty")]
    Empty,
    #[error("git would take it for an option")]
    Option,
    #[error("it is no URL")]
    NoUrl,
    #[error("it has a scheme that is not fetched from")]
    Scheme,
    #[error("it holds a line break or another control character")]
    Control,
}

impl Remote {
    /// The address, and the login that was written into it.
    /// # Errors
    /// It is no address of a repository.
    pub fn parse(text: &str) -> Result<(Self, Option<Login>), BadAddress> {
        if text.is_empty() {
            return Err(BadAddress::Empty);
        }
        if text.starts_with('-') {
            return Err(BadAddress::Option);
        }
        if text.contains(char::is_control) {
            return Err(BadAddress::Control);
        }
        if !text.contains("://") {
            // `host:path` as ssh writes it, else a path.
            let before_slash = text.split('/').next().unwrap_or_default();
            if before_slash.contains("::") && !before_slash.contains('[') {
                return Err(BadAddress::Scheme); // `ext::sh -c ...` is a command.
            }
            let transport = if before_slash.contains(':') { Transport::Ssh } else { Transport::Open };
            return Ok((Self { url: text.to_owned(), transport }, None));
        }
        let mut url = Url::parse(text).map_err(|_| BadAddress::NoUrl)?;
        match url.scheme() {
            "http" | "https" => {
                let login = login(&url);
                // Neither fails: the address has a host.
                let _ = url.set_username("");
                let _ = url.set_password(None);
                let origin = url.origin().ascii_serialization();
                Ok((Self { url: url.into(), transport: Transport::Http { origin } }, login))
            }
            "ssh" | "git+ssh" | "ssh+git" => {
                // The user belongs to the address; a password is nothing that ssh takes.
                let _ = url.set_password(None);
                Ok((Self { url: url.into(), transport: Transport::Ssh }, None))
            }
            "git" | "file" => Ok((Self { url: text.to_owned(), transport: Transport::Open }, None)),
            _ => Err(BadAddress::Scheme),
        }
    }

    /// The part that says which project it is. Two addresses of one project may differ in scheme, host and user.
    pub fn project(&self) -> &str {
        project_of(&self.url)
    }
}

/// See [`Remote::project`]; for an address that is known from a work tree.
pub fn project_of(url: &str) -> &str {
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => match url.split_once(':') {
            Some((host, path)) if !host.contains('/') => path,
            _ => url,
        },
    };
    let path = path.trim_matches('/');
    path.strip_suffix(".git").unwrap_or(path)
}

fn login(url: &Url) -> Option<Login> {
    let password = url.password().filter(|password| !password.is_empty())?;
    Some(Login { username: decoded(url.username()), password: decoded(password) })
}

/// `%40` as `@`. What is no text then stays as it was written.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut position = 0;
    while let Some(byte) = bytes.get(position) {
        let hex = bytes.get(position + 1..position + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(value) if *byte == b'%' => {
                decoded.push(value);
                position += 3;
            }
            _ => {
                decoded.push(*byte);
                position += 1;
            }
        }
    }
    String::from_utf8(decoded).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(origin: &str) -> Transport {
        Transport::Http { origin: origin.into() }
    }

    #[test]
    fn a_login_is_taken_out_of_an_address() {
        let (remote, login) = Remote::parse("https://gitlab-ci-token:to%40ken@git.example:8443/group/app.git").unwrap();
        assert_eq!(remote, Remote { url: "https://git.example:8443/group/app.git".into(), transport: http("https://git.example:8443") });
        assert_eq!(login, Some(Login { username: "gitlab-ci-token".into(), password: "to@ken".into() }));
        assert!(!format!("{remote:?} {login:?}").contains("to@ken"));
    }

    #[test]
    fn an_address_without_a_password_has_no_login() {
        for url in ["https://git.example/a.git", "https://me@git.example/a.git", "https://me:@git.example/a.git"] {
            let (remote, login) = Remote::parse(url).unwrap();
            assert_eq!((remote.url.as_str(), login), ("https://git.example/a.git", None));
        }
    }

    #[test]
    fn every_way_to_a_repository_is_known_by_its_address() {
        let transport = |url| Remote::parse(url).map(|(remote, _)| remote.transport);
        assert_eq!(transport("http://[::1]:80/a"), Ok(http("http://[::1]")));
        assert_eq!(transport("git@git.example:group/app.git"), Ok(Transport::Ssh));
        assert_eq!(transport("ssh://git@git.example:2222/app.git"), Ok(Transport::Ssh));
        assert_eq!(transport("/srv/git/app.git"), Ok(Transport::Open));
        assert_eq!(transport("./a:b/app.git"), Ok(Transport::Open));
        assert_eq!(transport("git://git.example/app"), Ok(Transport::Open));
    }

    #[test]
    fn what_is_no_address_is_refused_without_being_repeated() {
        assert_eq!(Remote::parse(""), Err(BadAddress::Empty));
        assert_eq!(Remote::parse("--upload-pack=touch /tmp/x"), Err(BadAddress::Option));
        assert_eq!(Remote::parse("ext::sh -c touch"), Err(BadAddress::Scheme));
        assert_eq!(Remote::parse("ext://x"), Err(BadAddress::Scheme));
        assert_eq!(Remote::parse("https://"), Err(BadAddress::NoUrl));
        assert_eq!(Remote::parse("https://a/b\nprotocol=file"), Err(BadAddress::Control));
    }

    #[test]
    fn two_addresses_of_one_project_are_recognised() {
        let urls = [
            "https://git.example/group/app.git",
            "http://other:81/group/app",
            "git@git.example:group/app.git",
            "ssh://git@h/group/app.git/",
        ];
        for url in urls {
            assert_eq!(project_of(url), "group/app", "{url}");
        }
        assert_ne!(project_of("https://git.example/group/app"), project_of("https://git.example/group/application"));
    }
}
