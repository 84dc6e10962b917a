//! One call, with its repetitions: the only place where bytes go out and come in.

use super::{Client, Endpoint};
use crate::Token;
use crate::address::without_credentials;
use crate::answer::{Answer, Answered, Headers, NoAnswer};
use crate::redirect;
use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::error::Error;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use step_model::time::Timestamp;
use url::Url;

/// What is asked of a server.
pub(super) struct Call<'a> {
    pub endpoint: Endpoint,
    pub method: &'static str,
    pub url: Url,
    /// The header that carries the token.
    pub token: Option<(&'static str, &'a Token)>,
    pub headers: Vec<(&'static str, String)>,
    pub content: Content,
    pub expects_json: bool,
    pub longest_answer: usize,
}

pub(super) enum Content {
    None,
    Json(Bytes),
    Text(Bytes),
    Form { boundary: &'static str, body: Bytes },
}

impl Client {
    /// Makes a call until its answer is one that counts.
    pub(super) async fn call(&self, call: &Call<'_>) -> Answered {
        let mut was_retried = false;
        for made in 1.. {
            let began = Instant::now();
            let answered = self.follow(call).await;
            let status = answered.as_ref().ok().map(|answer| answer.status);
            self.inner.watch.answered(call.endpoint, status, began.elapsed());
            let mut answer = answered?;
            // Also the last one says that the server has too much to do.
            was_retried |= crate::retry::is_retriable(answer.status);
            answer.was_retried = was_retried;
            let Some(wait) = self.inner.settings.retry.wait(made, answer.status, &answer.headers, now(), chance()) else {
                return Ok(answer);
            };
            self.inner.watch.retried(call.endpoint);
            tracing::debug!(endpoint = call.endpoint.name(), status = answer.status, wait_ms = wait.as_millis(), "the call is made again");
            tokio::time::sleep(wait).await;
        }
        unreachable!("a policy of retries ends")
    }

    /// One attempt, wherever the server sends it.
    async fn follow(&self, call: &Call<'_>) -> Answered {
        let mut url = call.url.clone();
        for followed in 0.. {
            let answer = self.once(call, &url).await?;
            if !redirect::is_redirect(answer.status) {
                return Ok(answer);
            }
            url = redirect::follow(&url, answer.headers.location.as_deref(), followed).map_err(|why| NoAnswer::NotFollowed {
                method: call.method,
                url: without_credentials(&url),
                why,
            })?;
        }
        unreachable!("redirects are counted")
    }

    async fn once(&self, call: &Call<'_>, url: &Url) -> Answered {
        let transport = |why: String| NoAnswer::Transport { method: call.method, url: without_credentials(url), why };
        let client = self.inner.connections.current().map_err(|fault| NoAnswer::Settings { why: fault.to_string() })?;
        let method = reqwest::Method::from_bytes(call.method.as_bytes()).map_err(|_| transport("no such method".to_owned()))?;
        let mut request = client.request(method, url.clone()).headers(headers_of(call).map_err(|why| NoAnswer::Settings { why })?);
        request = match &call.content {
            Content::None => request,
            Content::Json(bytes) => request.header(CONTENT_TYPE, "application/json").body(bytes.clone()),
            Content::Text(bytes) => request.header(CONTENT_TYPE, "text/plain").body(bytes.clone()),
            Content::Form { boundary, body } => {
                request.header(CONTENT_TYPE, format!("multipart/form-data; boundary={boundary}")).body(body.clone())
            }
        };
        let timeouts = self.inner.settings.timeouts;
        let work = async {
            let response = tokio::time::timeout(timeouts.answer, request.send())
                .await
                .map_err(|_| transport(format!("no answer within {} s", timeouts.answer.as_secs_f32())))?
                .map_err(|fault| transport(reason(fault)))?;
            read(response, call, url).await
        };
        tokio::time::timeout(timeouts.whole, work)
            .await
            .map_err(|_| transport(format!("not done within {} s", timeouts.whole.as_secs_f32())))?
    }
}

fn headers_of(call: &Call<'_>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let id = uuid::Uuid::new_v4().simple().to_string();
    for (name, value) in [("x-request-id", id.as_str())].into_iter().chain(call.headers.iter().map(|(name, value)| (*name, value.as_str())))
    {
        let value = HeaderValue::from_str(value).map_err(|_| format!("`{name}` holds characters that no header can carry"))?;
        headers.insert(HeaderName::from_static(name), value);
    }
    if call.expects_json {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    }
    if let Some((name, token)) = call.token {
        let mut value =
            HeaderValue::from_str(token.expose().trim()).map_err(|_| "the token holds characters that no header can carry".to_owned())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    Ok(headers)
}

async fn read(mut response: reqwest::Response, call: &Call<'_>, url: &Url) -> Answered {
    let transport = |why: String| NoAnswer::Transport { method: call.method, url: without_credentials(url), why };
    let mut answer = Answer { status: response.status().as_u16(), headers: headers_in(response.headers()), ..Answer::default() };
    let too_long = || NoAnswer::TooLong { method: call.method, url: without_credentials(url), limit: call.longest_answer };
    let said = response.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
    if said > call.longest_answer {
        return Err(too_long());
    }
    // At most a megabyte on the word of a server; more when it is there.
    let mut body = BytesMut::with_capacity(said.min(1 << 20));
    while let Some(piece) = response.chunk().await.map_err(|fault| transport(reason(fault)))? {
        if body.len() + piece.len() > call.longest_answer {
            return Err(too_long());
        }
        body.extend_from_slice(&piece);
    }
    answer.body = body.freeze();
    Ok(answer)
}

fn headers_in(headers: &HeaderMap) -> Headers {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Headers {
        job_status: text("job-status"),
        last_update: text("x-gitlab-last-update"),
        update_interval: text("x-gitlab-trace-update-interval"),
        range: text("range"),
        retry_after: text("retry-after"),
        reset_time: text("ratelimit-resettime"),
        content_type: text("content-type"),
        request_id: text("x-request-id"),
        location: text("location"),
    }
}

/// The whole chain of causes, without the address: it is named already, without a password.
fn reason(fault: reqwest::Error) -> String {
    let fault = fault.without_url();
    let mut text = fault.to_string();
    let mut cause = fault.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.ends_with(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Timestamp::from_nanoseconds(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// From 0 to 1.
fn chance() -> f64 {
    let number = u32::from_ne_bytes(uuid::Uuid::new_v4().as_bytes()[..4].try_into().unwrap_or_default());
    f64::from(number) / f64::from(u32::MAX)
}
