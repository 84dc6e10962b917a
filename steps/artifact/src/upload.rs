//! Uploads what a job made.

use crate::answers::{self, Next, Outcome, Tried};
use crate::client;
use crate::content::{self, Content};
use crate::kept;
use crate::progress::{Progress, shown};
use crate::settings::{Place, Server, Settings, Upload};
use futures::StreamExt as _;
use reqwest::multipart::{Form, Part};
use reqwest::{Body, Client, Url};
use std::path::Path;
use step_sdk::{Failure, Step, say};

/// # Errors
/// The files cannot be read, or the server does not take them.
pub async fn upload(settings: &Settings, upload: &Upload, root: &Path, step: &Step) -> Result<(), Failure> {
    if settings.place == Place::Nowhere {
        say("Nobody said where artifacts are kept: nothing is uploaded");
        return step.output("files", 0);
    }
    say(&format!("Uploading artifacts ({})...", if upload.kind.is_empty() { "archive" } else { &upload.kind }));
    let Some(content) = content::collect(upload, root)? else {
        say("WARNING: no files to upload");
        return step.output("files", 0);
    };
    match &settings.place {
        Place::Server(server) => send(settings, server, upload, &content).await?,
        Place::Directory { directory, job } => kept::keep(directory, job, upload, &content)?,
        Place::Nowhere => {}
    }
    step.output("files", u32::try_from(content.files).unwrap_or(u32::MAX))
}

async fn send(settings: &Settings, server: &Server, upload: &Upload, content: &Content) -> Result<(), Failure> {
    let client = client::client(server, settings.timeout)?;
    let first = address(server, upload);
    let (mut at, mut tried) = (first.clone(), Tried::default());
    loop {
        let outcome = request(&client, server, &at, content).await?;
        if let Outcome::Redirected(_) = outcome {
            tried.redirects += 1
        } else {
            tried.tries += 1
        }
        // The count is of those before this one.
        let before = Tried { redirects: tried.redirects.saturating_sub(u32::from(matches!(outcome, Outcome::Redirected(_)))), ..tried };
        match answers::after_upload(&outcome, &at, before, settings.attempts) {
            Next::Done => {
                say(&format!("Uploaded {} ({} files, {})", content.filename, content.files, shown(content.size)));
                return Ok(());
            }
            Next::At(url) => {
                say(&format!("The server sends the upload to {}", url.origin().ascii_serialization()));
                at = url;
            }
            Next::Wait(pause) => {
                say(&format!("WARNING: {}; trying again in {} s", outcome.words(), pause.as_secs()));
                tokio::time::sleep(pause).await;
                at = first.clone();
            }
            Next::GiveUp => return Err(failure("could not upload the artifacts", &outcome)),
        }
    }
}

/// Only what is set is said.
fn address(server: &Server, upload: &Upload) -> Url {
    let mut url = server.artifacts.clone();
    for (name, value) in [("artifact_format", upload.format.name()), ("artifact_type", &upload.kind), ("expire_in", &upload.expire_in)] {
        if !value.is_empty() {
            url.query_pairs_mut().append_pair(name, value);
        }
    }
    url
}

async fn request(client: &Client, server: &Server, at: &Url, content: &Content) -> Result<Outcome, Failure> {
    let file = content.file.reopen().map_err(|error| Failure::step(format!("could not read the archive: {error}")))?;
    let part = Part::stream_with_length(body(file, content.size), content.size).file_name(content.filename.clone());
    let form = Form::new().part("file", part);
    let mut request = client.post(at.clone()).multipart(form);
    if answers::may_have_token(&server.artifacts, at) {
        request = client::of_job(request, &server.token);
    }
    let answer = match request.send().await {
        Ok(answer) => answer,
        Err(error) => return Ok(Outcome::Failed(format!("the server could not be reached: {}", client::cause(&error)))),
    };
    let (status, location) = (answer.status().as_u16(), client::location(&answer, at));
    let message = if answer.status().is_success() { None } else { client::message(answer).await };
    Ok(Outcome::of_upload(status, location, message.as_deref()))
}

/// The bytes of a file, which tell how far they are.
fn body(file: std::fs::File, size: u64) -> Body {
    use tokio::io::AsyncReadExt as _;
    let state = (tokio::fs::File::from_std(file), Progress::new("Uploading artifacts", Some(size)));
    let chunks = futures::stream::try_unfold(state, |(mut file, mut progress)| async move {
        let mut chunk = Vec::with_capacity(256 * 1024);
        let count = file.read_buf(&mut chunk).await?;
        progress.add(count);
        Ok::<_, std::io::Error>((count > 0).then_some((chunk, (file, progress))))
    });
    Body::wrap_stream(chunks.boxed())
}

pub fn failure(what: &str, outcome: &Outcome) -> Failure {
    let failure = Failure::step(format!("{what}: {}", outcome.words()));
    match outcome.hint() {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}
