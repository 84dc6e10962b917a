//! The address under which a session server says it is reached.

use url::Url;

/// Why nothing can be advertised.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSessionAddress {
    #[error("`{address}` is no address")]
    Unreadable { address: String },
    #[error("`{address}` names a scheme: the session server speaks https and nothing else")]
    Scheme { address: String },
}

/// `https://` and what is advertised, else where the server listens.
/// # Errors
/// It is no host, or it has a scheme.
pub fn of(advertised: &str, listens_on: &str) -> Result<Url, BadSessionAddress> {
    let address = if advertised.is_empty() { listens_on } else { advertised };
    if address.contains("://") {
        return Err(BadSessionAddress::Scheme { address: address.to_owned() });
    }
    Url::parse(&format!("https://{address}")).map_err(|_| BadSessionAddress::Unreadable { address: address.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runner_195_what_is_advertised_wins_over_where_it_listens() {
        let address = |advertised| of(advertised, "0.0.0.0:8093").map(|url| url.to_string());
        assert_eq!(address(""), Ok("https://0.0.0.0:8093/".to_owned()));
        assert_eq!(address("runner.example:8093"), Ok("https://runner.example:8093/".to_owned()));
        assert!(matches!(address("%^*"), Err(BadSessionAddress::Unreadable { .. })));
        assert!(matches!(address("https://runner.example"), Err(BadSessionAddress::Scheme { .. })));
        assert!(matches!(address("http://runner.example"), Err(BadSessionAddress::Scheme { .. })));
    }
}
