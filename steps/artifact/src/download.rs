//! Downloads what an earlier job made, and unpacks it.

use crate::answers::{self, Next, Outcome, Tried};
use crate::client;
use crate::kept;
use crate::progress::{Progress, shown};
use crate::settings::{Download, Place, Server, Settings};
use crate::upload::failure;
use reqwest::{Client, Response, Url};
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use step_archive::unpack::unpack;
use step_sdk::{Failure, Step, say};

/// From the server to a store of objects, and from there to another: nobody sends farther.
const MOST_REDIRECTS: u32 = 10;

/// # Errors
/// The artifacts cannot be had, or not be unpacked.
pub async fn download(settings: &Settings, download: &Download, root: &Path, step: &Step) -> Result<(), Failure> {
    say(&format!("Downloading artifacts of {}...", download.name));
    let archive = match &settings.place {
        Place::Server(server) => fetch(settings, server, download).await?,
        Place::Directory { directory, .. } => kept::find(directory, download)?,
        Place::Nowhere => {
            return Err(Failure::bad_input("nobody said where artifacts are kept").with_hint("set `url` and `id`, or `directory`"));
        }
    };
    let size = archive.metadata().map_or(0, |found| found.len());
    let unpacked = unpack(archive, root, download.outside_links)
        .map_err(|fault| Failure::step(format!("could not unpack the artifacts of `{}`: {fault}", download.name)))?;
    unpacked.said.iter().for_each(|line| say(line));
    say(&format!("Unpacked {} files, {}", unpacked.files, shown(size)));
    step.output("files", u32::try_from(unpacked.files).unwrap_or(u32::MAX))
}

async fn fetch(settings: &Settings, server: &Server, download: &Download) -> Result<File, Failure> {
    let client = client::client(server, settings.timeout)?;
    let mut tried = Tried::default();
    loop {
        // Only the first one asks for the store of objects: what fails there may work through the server.
        let outcome = match request(&client, server, download.direct && tried.tries == 0).await? {
            Ok(answer) => match to_file(answer).await? {
                Ok(file) => return Ok(file),
                Err(broken) => broken,
            },
            Err(outcome) => outcome,
        };
        tried.tries += 1;
        match answers::after_download(&outcome, tried, settings.attempts) {
            Next::Wait(pause) => {
                say(&format!("WARNING: {}; trying again in {} s", outcome.words(), pause.as_secs()));
                tokio::time::sleep(pause).await;
            }
            Next::Done | Next::At(_) | Next::GiveUp => {
                return Err(failure(&format!("could not download the artifacts of `{}`", download.name), &outcome));
            }
        }
    }
}

/// The answer that has the bytes, wherever it was sent to.
async fn request(client: &Client, server: &Server, direct: bool) -> Result<Result<Response, Outcome>, Failure> {
    let mut at = server.artifacts.clone();
    if direct {
        at.query_pairs_mut().append_pair("direct_download", "true");
    }
    for _ in 0..MOST_REDIRECTS {
        let answer = match get(client, server, &at).await {
            Ok(answer) => answer,
            Err(error) => return Ok(Err(Outcome::Failed(format!("the server could not be reached: {}", client::cause(&error))))),
        };
        let (status, location) = (answer.status().as_u16(), client::location(&answer, &at));
        if status == 200 {
            return Ok(Ok(answer));
        }
        let message = if location.is_some() { None } else { client::message(answer).await };
        match Outcome::of_download(status, location, message.as_deref()) {
            Outcome::Redirected(to) => at = to,
            other => return Ok(Err(other)),
        }
    }
    Ok(Err(Outcome::Redirected(at)))
}

async fn get(client: &Client, server: &Server, at: &Url) -> reqwest::Result<Response> {
    let mut request = client.get(at.clone());
    if answers::may_have_token(&server.artifacts, at) {
        request = client::of_job(request, &server.token);
    }
    request.send().await
}

/// The inner error: the bytes stopped coming.
async fn to_file(mut answer: Response) -> Result<Result<File, Outcome>, Failure> {
    let fault = |error: std::io::Error| Failure::step(format!("could not write a temporary file: {error}"));
    let mut file = tempfile::tempfile().map_err(fault)?;
    let mut progress = Progress::new("Downloading artifacts", answer.content_length());
    loop {
        match answer.chunk().await {
            Ok(Some(chunk)) => {
                progress.add(chunk.len());
                file.write_all(&chunk).map_err(fault)?;
            }
            Ok(None) => break,
            Err(error) => return Ok(Err(Outcome::Failed(format!("the artifacts ended in the middle: {}", client::cause(&error))))),
        }
    }
    file.rewind().map_err(fault)?;
    Ok(Ok(file))
}
