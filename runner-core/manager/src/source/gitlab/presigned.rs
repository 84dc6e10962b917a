//! Addresses of objects in a store of S3's kind, signed so that whoever has one may fetch or replace that object for a while (Signature Version 4,
//! query parameters). The clock is an argument.

use aws_lc_rs::{digest, hmac};
use std::fmt::{self, Write as _};
use std::time::Duration;
use step_model::time::Timestamp;

/// Amazon signs for no longer.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// Where the objects lie, and who signs.
#[derive(Clone, PartialEq, Eq)]
pub struct Presigner {
    /// `https://bucket.s3.eu-west-1.amazonaws.com`, or `http://127.0.0.1:9000/bucket`.
    pub base: String,
    pub region: String,
    pub access_key: String,
    pub secret_key: String,
    /// Empty: none.
    pub session_token: String,
}

/// Nothing of the keys is for a log.
impl fmt::Debug for Presigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Presigner({})", self.base)
    }
}

/// What is asked of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Put,
}

impl Presigner {
    /// The address of `object` for one method. `headers` have to be sent with it, in small letters and in order.
    pub fn address(&self, method: Method, object: &str, headers: &[(String, String)], lifetime: Duration, now: Timestamp) -> String {
        let (scheme, rest) = self.base.split_once("://").unwrap_or(("https", &self.base));
        let (host, prefix) = rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, format!("/{path}")));
        let path = format!("{prefix}/{}", encoded(object, true));
        let moment = moment(now);
        let day = moment.get(..8).unwrap_or_default();
        let scope = format!("{day}/{}/s3/aws4_request", self.region);
        let all: Vec<(&str, &str)> =
            std::iter::once(("host", host)).chain(headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))).collect();
        let signed: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        let mut parameters = vec![
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256".to_owned()),
            ("X-Amz-Credential", format!("{}/{scope}", self.access_key)),
            ("X-Amz-Date", moment.clone()),
            ("X-Amz-Expires", lifetime.min(LONGEST).as_secs().max(1).to_string()),
        ];
        if !self.session_token.is_empty() {
            parameters.push(("X-Amz-Security-Token", self.session_token.clone()));
        }
        parameters.push(("X-Amz-SignedHeaders", signed.join(";")));
        let query = parameters.iter().map(|(name, value)| format!("{name}={}", encoded(value, false))).collect::<Vec<_>>().join("&");
        let method = match method {
            Method::Get => "GET",
            Method::Put => "PUT",
        };
        let lines: String = all.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let request = format!("{method}\n{path}\n{query}\n{lines}\n{}\nUNSIGNED-PAYLOAD", signed.join(";"));
        let hashed = hex(digest::digest(&digest::SHA256, request.as_bytes()).as_ref());
        let to_sign = format!("AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashed}");
        let first = format!("AWS4{}", self.secret_key).into_bytes();
        let key = [day, &self.region, "s3", "aws4_request"].iter().fold(first, |key, part| hashed_with(&key, part.as_bytes()));
        let signature = hex(&hashed_with(&key, to_sign.as_bytes()));
        format!("{scheme}://{host}{path}?{query}&X-Amz-Signature={signature}")
    }
}

/// `20130524T000000Z`
fn moment(now: Timestamp) -> String {
    let text = now.to_string();
    let seconds = text.split(['.', 'Z']).next().unwrap_or_default();
    format!("{}Z", seconds.replace(['-', ':'], ""))
}

fn hashed_with(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), bytes).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// As Amazon writes it: everything but letters, digits and four signs.
fn encoded(text: &str, is_path: bool) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(char::from(byte)),
            b'/' if is_path => encoded.push('/'),
            _ => _ = write!(encoded, "%{byte:02X}"),
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Amazon's documentation, "Authenticating Requests: Using Query Parameters".
    fn example() -> Presigner {
        Presigner {
            base: "https://examplebucket.s3.amazonaws.com".to_owned(),
            region: "us-east-1".to_owned(),
            access_key: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: String::new(),
        }
    }

    fn at() -> Timestamp {
        Timestamp::from_nanoseconds(1_369_353_600_000_000_000)
    }

    #[test]
    fn the_published_example_is_signed_as_published() {
        let address = example().address(Method::Get, "test.txt", &[], Duration::from_secs(86400), at());
        assert_eq!(
            address,
            "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2F\
             us-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=\
             aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
        );
    }

    #[test]
    fn headers_and_tokens_are_part_of_what_is_signed() {
        let signer = Presigner { base: "http://127.0.0.1:9000/b".to_owned(), session_token: "a/b".to_owned(), ..example() };
        let headers = [("x-amz-server-side-encryption".to_owned(), "AES256".to_owned())];
        let address = signer.address(Method::Put, "project/1/a b", &headers, Duration::from_secs(10_000_000), at());
        assert!(address.starts_with("http://127.0.0.1:9000/b/project/1/a%20b?"), "{address}");
        assert!(address.contains("X-Amz-Expires=604800&X-Amz-Security-Token=a%2Fb&"), "no longer than a week: {address}");
        assert!(address.contains("X-Amz-SignedHeaders=host%3Bx-amz-server-side-encryption&"), "{address}");
        assert_eq!(format!("{signer:?}"), "Presigner(http://127.0.0.1:9000/b)");
    }
}
