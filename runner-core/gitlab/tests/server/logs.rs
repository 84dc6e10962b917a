//! What the client logs: enough to find a request on the server, and nothing secret.

use crate::{client, server, token};
use runner_gitlab::Client;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What one request for a job logs, at every level.
async fn logged(client: &Client) -> String {
    let logged = Logged::default();
    let writer = logged.clone();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::TRACE).with_ansi(false);
    let guard = tracing::subscriber::set_default(subscriber.with_writer(move || writer.clone()).finish());
    client.request_job(&token(), None).await;
    drop(guard);
    let bytes = logged.0.lock().expect("nobody panicked").clone();
    String::from_utf8(bytes).expect("text")
}

#[tokio::test]
async fn runner_14_a_job_is_logged_with_its_correlation_id_and_without_its_password() {
    let fault = "[[fault]]\ncall = \"request\"\nkind = \"status\"\nstatus = 201\nheaders = { X-Request-Id = \"foobar\", content-type = \"application/json\" }\n\
                 body = '{\"id\": 10, \"token\": \"glcbt-secret\", \"git_info\": {\"repo_url\": \"https://gitlab-ci-token:glcbt-secret@gitlab.example/a.git\"}}'";
    let server = server(0, fault).await;
    let text = logged(&client(&server)).await;
    for part in ["a job was received", "job=10", "correlation_id=\"foobar\"", "repository=\"https://gitlab.example/a.git\""] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("glcbt-secret"), "{text}");
}

#[tokio::test]
async fn whatever_happens_no_token_is_logged() {
    for fault in [
        "kind = \"close\"",
        "kind = \"half\"",
        "kind = \"html\"",
        "kind = \"wrong_types\"",
        "kind = \"status\"\nstatus = 403",
        "kind = \"status\"\nstatus = 500",
    ] {
        let server = server(1, &format!("[[fault]]\ncall = \"request\"\ntimes = 0\n{fault}")).await;
        let text = logged(&client(&server)).await;
        assert!(!text.is_empty() && !text.contains(token().expose()) && !text.contains("glcbt-"), "{fault}: {text}");
    }
}
