//! Certificates: an authority of one's own, one that changes, one that nobody trusts.

use crate::{client_of, scenario, settings, token};
use runner_gitlab::answer::Polled;
use runner_gitlab::client::TlsFiles;
use runner_gitlab::{Client, ClientSettings, ServerUrl};
use runner_mock_gitlab::{Certificates, Server};
use std::path::Path;
use std::time::{Duration, SystemTime};

fn trusting(server: &Server, authority: &Path) -> ClientSettings {
    let mut settings = settings(&server.url());
    settings.tls = TlsFiles { authority: Some(authority.to_owned()), ..TlsFiles::default() };
    settings
}

async fn has_job(client: &Client) -> bool {
    matches!(client.request_job(&token(), None).await.polled, Polled::Job(_))
}

/// A new file, which is seen to be one: two in the same moment have the same time.
fn write(path: &Path, text: &str, age: u64) {
    std::fs::write(path, text).expect("written");
    let file = std::fs::File::options().write(true).open(path).expect("opened");
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + age)).expect("dated");
}

#[tokio::test]
async fn an_authority_of_ones_own_is_trusted_and_no_other() {
    let server = Server::start_with_tls(scenario(1, "")).await.expect("a port");
    let directory = tempfile::tempdir().expect("a directory");
    let authority = directory.path().join("ca.pem");
    write(&authority, &server.certificates().expect("TLS").authority_pem(), 0);
    assert!(has_job(&client_of(trusting(&server, &authority))).await);
    assert!(!has_job(&client_of(settings(&server.url()))).await);
}

#[tokio::test]
async fn a_server_that_signed_itself_is_trusted_under_its_own_name_only() {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Server::listen(scenario(1, ""), address, Some(Certificates::self_signed())).await.expect("a port");
    let directory = tempfile::tempdir().expect("a directory");
    let authority = directory.path().join("ca.pem");
    write(&authority, &server.certificates().expect("TLS").authority_pem(), 0);
    assert!(!has_job(&client_of(settings(&server.url()))).await);
    let mut elsewhere = trusting(&server, &authority);
    elsewhere.url = ServerUrl::parse(&server.url().replace("localhost", "127.0.0.2")).expect("an address");
    assert!(!has_job(&client_of(elsewhere)).await);
    assert!(has_job(&client_of(trusting(&server, &authority))).await);
}

#[tokio::test]
async fn an_authority_is_found_under_the_name_of_the_host() {
    let server = Server::start_with_tls(scenario(1, "")).await.expect("a port");
    let directory = tempfile::tempdir().expect("a directory");
    write(&directory.path().join("localhost.crt"), &server.certificates().expect("TLS").authority_pem(), 0);
    let mut settings = settings(&server.url());
    settings.tls.directory = Some(directory.path().to_owned());
    assert!(has_job(&client_of(settings)).await);
}

#[tokio::test]
async fn a_certificate_that_changes_is_refused_until_the_file_changes_too() {
    let server = Server::start_with_tls(scenario(2, "")).await.expect("a port");
    let directory = tempfile::tempdir().expect("a directory");
    let authority = directory.path().join("ca.pem");
    write(&authority, &server.certificates().expect("TLS").authority_pem(), 0);
    let mut settings = trusting(&server, &authority);
    // Else the connection that is there is used on.
    settings.timeouts.connection_age = Duration::ZERO;
    let client = client_of(settings);
    assert!(has_job(&client).await);
    server.certificates().expect("TLS").change();
    let polled = client.request_job(&token(), None).await.polled;
    assert!(matches!(&polled, Polled::Failed { why } if why.contains("certificate")), "{polled:?}");
    assert!(polled.is_healthy());
    write(&authority, &server.certificates().expect("TLS").authority_pem(), 60);
    assert!(has_job(&client).await);
}

#[tokio::test]
async fn settings_that_cannot_be_used_say_which_file() {
    let server = Server::start_with_tls(scenario(1, "")).await.expect("a port");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("ca.pem");
    let why = async |settings: ClientSettings| match client_of(settings).request_job(&token(), None).await.polled {
        Polled::Unusable { why } => why,
        other => panic!("{other:?}"),
    };
    assert!(why(trusting(&server, &path)).await.contains("ca.pem"));
    write(&path, "no certificate", 0);
    assert!(why(trusting(&server, &path)).await.contains("there is no certificate in"));
    let mut half = settings(&server.url());
    half.tls.certificate = Some(path.clone());
    assert!(why(half).await.contains("needs both files"));
}
