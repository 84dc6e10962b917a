//! Caches behind addresses that somebody signed: whoever has one may fetch or replace one object for a while.

use super::bucket::{Bucket, BucketSettings};
use super::to_file;
use crate::inputs::{Signed, SignedObject};
use crate::retry::Trouble;
use crate::settings::Key;
use reqwest::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::time::Duration;
use tempfile::NamedTempFile;

/// By key.
#[derive(Clone, PartialEq)]
pub struct SignedObjects {
    objects: BTreeMap<String, (Option<Place>, Option<Place>)>,
    timeout: Duration,
}

/// Where an object lies, for one direction.
#[derive(Clone, PartialEq)]
enum Place {
    Http { url: reqwest::Url, headers: HeaderMap },
    Bucket(BucketSettings, String),
}

/// Nothing of the addresses is for a log.
impl fmt::Debug for SignedObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.objects.keys()).finish()
    }
}

/// # Errors
/// The machine gives none.
pub fn client(timeout: Duration) -> Result<Client, Trouble> {
    let built = Client::builder().timeout(timeout).connect_timeout(Duration::from_secs(30)).build();
    built.map_err(|error| Trouble::lasting(format!("could not make an HTTP client: {}", error.without_url())))
}

impl SignedObjects {
    pub fn of(objects: BTreeMap<String, SignedObject>, problems: &mut Vec<String>) -> Option<Self> {
        let before = problems.len();
        let mut place = |key: &str, signed: Option<Signed>| {
            let signed = signed?;
            Place::of(&signed).map_err(|bad| problems.push(format!("`signed` has for the key `{key}` {bad}"))).ok()
        };
        let objects = objects
            .into_iter()
            .map(|(key, SignedObject { download, upload })| {
                let places = (place(&key, download), place(&key, upload));
                (key, places)
            })
            .collect();
        (problems.len() == before).then_some(Self { objects, timeout: Duration::from_mins(10) })
    }

    pub async fn fetch(&self, key: &Key, client: &Client) -> Result<Option<File>, Trouble> {
        // A key that nobody signed: the runner has its reasons, and has said them.
        let Some((Some(place), _)) = self.objects.get(key.as_str()) else { return Ok(None) };
        match place {
            Place::Bucket(settings, object) => Bucket::open(settings, self.timeout)?.fetch(object).await,
            Place::Http { url, headers } => {
                let answer = client.get(url.clone()).headers(headers.clone()).send().await.map_err(trouble)?;
                match answer.status() {
                    StatusCode::NOT_FOUND => Ok(None),
                    status if status.is_success() => to_file(answer.bytes_stream(), trouble).await.map(Some),
                    _ => Err(refused(&answer)),
                }
            }
        }
    }

    pub async fn save(&self, key: &Key, archive: &NamedTempFile, client: &Client) -> Result<(), Trouble> {
        let Some((_, Some(place))) = self.objects.get(key.as_str()) else {
            return Err(Trouble::lasting("nobody has signed an address for it"));
        };
        match place {
            Place::Bucket(settings, object) => Bucket::open(settings, self.timeout)?.save(object, archive).await,
            Place::Http { url, headers } => {
                let fault = |error: std::io::Error| Trouble::lasting(format!("could not read the archive: {error}"));
                let file = tokio::fs::File::open(archive.path()).await.map_err(fault)?;
                let size = file.metadata().await.map_err(fault)?.len();
                // Stores of objects want to know the size beforehand.
                let request = client.put(url.clone()).headers(headers.clone()).header(CONTENT_LENGTH, size).body(file);
                let answer = request.send().await.map_err(trouble)?;
                if answer.status().is_success() { Ok(()) } else { Err(refused(&answer)) }
            }
        }
    }
}

impl Place {
    /// The error says what there is, and nothing of the address.
    fn of(signed: &Signed) -> Result<Self, &'static str> {
        if let Some((settings, object)) = BucketSettings::of_address(signed) {
            return Ok(Self::Bucket(settings, object));
        }
        let url = reqwest::Url::parse(&signed.url).map_err(|_| "an address that is no URL")?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("an address that is neither `https://` nor `s3://`");
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &signed.headers {
            let name = HeaderName::try_from(name.as_str()).map_err(|_| "a header whose name is none")?;
            let one = std::slice::from_ref(value);
            for value in value.as_array().map_or(one, Vec::as_slice) {
                let value = value.as_str().and_then(|value| HeaderValue::from_str(value).ok()).ok_or("a header whose value is none")?;
                headers.append(name.clone(), value);
            }
        }
        Ok(Self::Http { url, headers })
    }
}

/// The address is left out: it is as good as a password.
fn trouble(error: reqwest::Error) -> Trouble {
    let error = error.without_url();
    let mut what = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        what = inner.to_string();
        cause = inner.source();
    }
    Trouble::passing(format!("the server could not be asked: {what}"))
}

fn refused(answer: &Response) -> Trouble {
    Trouble::of_status(answer.status().as_u16(), answer.status().canonical_reason())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn problems(objects: serde_json::Value) -> Vec<String> {
        let mut problems = Vec::new();
        SignedObjects::of(serde_json::from_value(objects).unwrap(), &mut problems);
        problems
    }

    #[test]
    fn an_address_that_is_none_is_named_by_its_key_alone() {
        let found = problems(json!({
            "a": {"download": {"url": "https://s/o?X-Amz-Signature=secret", "headers": {"X-One": ["1", "2"], "X-Two": "3"}}},
            "b": {"upload": {"url": "secret://nowhere"}},
            "c": {"upload": {"url": "no url with a secret"}},
            "d": {"download": {"url": "https://s/o", "headers": {"bad name": "x"}}},
        }));
        assert_eq!(
            found,
            [
                "`signed` has for the key `b` an address that is neither `https://` nor `s3://`",
                "`signed` has for the key `c` an address that is no URL",
                "`signed` has for the key `d` a header whose name is none",
            ]
        );
    }

    #[test]
    fn nothing_of_an_address_is_shown() {
        let objects = json!({"a": {"download": {"url": "https://s/o?X-Amz-Signature=secret"}}});
        let objects = SignedObjects::of(serde_json::from_value(objects).unwrap(), &mut Vec::new()).unwrap();
        assert_eq!(format!("{objects:?}"), "{\"a\"}");
    }
}
