//! Addresses of servers.

/// What is told to a server about ourselves, with its scheme: case 195 of GitLab's tests.
///
/// # Errors
/// Why it cannot be told, as the end of a sentence.
pub(super) fn advertised(address: &str) -> Result<String, &'static str> {
    if address.starts_with("http://") || address.starts_with("https://") {
        return Err("must not have a scheme");
    }
    let whole = format!("https://{address}");
    match url::Url::parse(&whole) {
        // Go's reader of addresses refuses a stray percent sign, ours takes it as a letter.
        Ok(_) if has_only_whole_escapes(address) => Ok(whole),
        _ => Err("is no address"),
    }
}

fn has_only_whole_escapes(text: &str) -> bool {
    let escapes = text.split('%').skip(1);
    escapes.into_iter().all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()))
}

/// The address of a GitLab server as its calls begin, and whether it had the `/ci` of old days.
///
/// # Errors
/// Why it is none, as the end of a sentence.
pub(super) fn server(address: &str) -> Result<(String, bool), &'static str> {
    let parsed = url::Url::parse(address).map_err(|_| "is no address")?;
    if !["http", "https"].contains(&parsed.scheme()) {
        return Err("has to begin with http:// or https://");
    }
    if parsed.host_str().is_none_or(str::is_empty) {
        return Err("names no host");
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("names an account, which would be in every log: the token alone opens the server");
    }
    let trimmed = address.trim_end_matches('/');
    Ok(match trimmed.strip_suffix("/ci") {
        Some(without) => (without.trim_end_matches('/').to_owned(), true),
        None => (trimmed.to_owned(), false),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_advertised_address_has_no_scheme() {
        assert_eq!(advertised("runner.example:8093"), Ok("https://runner.example:8093".to_owned()));
        assert!(advertised("%^*").is_err() && advertised("https://runner.example").is_err());
    }

    #[test]
    fn the_address_of_a_server_is_http_and_loses_its_old_end() {
        assert_eq!(server("https://gitlab.example/"), Ok(("https://gitlab.example".to_owned(), false)));
        assert_eq!(server("https://gitlab.example/gitlab/ci/"), Ok(("https://gitlab.example/gitlab".to_owned(), true)));
        for wrong in ["gitlab.example", "ftp://gitlab.example", "https://", "https://me:word@gitlab.example", ""] {
            assert!(server(wrong).is_err(), "{wrong}");
        }
    }
}
