//! Artifacts in a directory, and against a server of a few answers.

use super::*;
use crate::settings::tests::inputs;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};

struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self { dir: tempfile::tempdir().unwrap() };
        for name in ["job", "next"] {
            fs::create_dir_all(world.path(name)).unwrap();
        }
        world.write("job/out/a.txt", "made");
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn run(&self, root: &str, inputs: Inputs) -> Result<(), Failure> {
        let outputs = self.path("outputs");
        let step = Step::of(move |name| (name == "STEP_RUNNER_OUTPUT_FILE").then(|| outputs.clone().into()));
        run_in(&step, &Settings::of(inputs)?, &self.path(root))
    }

    fn upload(&self) -> Inputs {
        Inputs { name: "artifacts".into(), paths: vec!["out".into()], job: "build".into(), ..inputs("upload") }
    }

    fn download(&self) -> Inputs {
        Inputs { name: "build".into(), filename: "artifacts.zip".into(), ..inputs("download") }
    }

    fn kept(&self) -> String {
        self.path("kept").display().to_string()
    }
}

#[test]
fn what_a_job_kept_another_takes() {
    let world = World::new();
    world.run("job", Inputs { directory: world.kept(), ..world.upload() }).unwrap();
    assert!(world.path("kept/build/artifacts.zip").is_file());
    world.run("next", Inputs { directory: world.kept(), ..world.download() }).unwrap();
    assert_eq!(fs::read_to_string(world.path("next/out/a.txt")).unwrap(), "made");
}

#[test]
fn what_a_person_has_put_there_is_taken_packed_or_not() {
    let world = World::new();
    let download = Inputs { directory: world.kept(), filename: "other.zip".into(), ..world.download() };
    let failure = world.run("next", download.clone()).unwrap_err();
    assert!(failure.message.starts_with("there are no artifacts of `build` in"), "{failure}");
    world.write("kept/build/out/b.txt", "as it is");
    world.run("next", download.clone()).unwrap();
    assert_eq!(fs::read_to_string(world.path("next/out/b.txt")).unwrap(), "as it is");
    world.run("job", Inputs { directory: world.path("elsewhere").display().to_string(), ..world.upload() }).unwrap();
    fs::rename(world.path("elsewhere/build/artifacts.zip"), world.path("kept/build.zip")).unwrap();
    world.run("next", download).unwrap();
    assert!(world.path("next/out/a.txt").exists());
}

#[test]
fn a_report_lies_beside_the_archive() {
    let world = World::new();
    let report =
        Inputs { kind: "dotenv".into(), format: "gzip".into(), paths: vec!["out/*.txt".into()], directory: world.kept(), ..world.upload() };
    world.run("job", report).unwrap();
    assert!(world.path("kept/build/dotenv/artifacts.gz").is_file());
}

#[test]
fn art_05_without_a_place_nothing_is_uploaded_and_nothing_fails() {
    let world = World::new();
    world.run("job", world.upload()).unwrap();
    assert_eq!(fs::read_to_string(world.path("outputs")).unwrap(), "{\"name\":\"files\",\"value\":0}\n");
}

/// A request as it came: the first line, the headers in small letters, and the bytes.
struct Request {
    line: String,
    headers: String,
    body: Vec<u8>,
}

/// Answers one connection after the other with these texts, and passes on what it was asked.
fn server(answers: Vec<Vec<u8>>) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for (answer, connection) in answers.into_iter().zip(listener.incoming()) {
            let mut connection = connection.unwrap();
            let request = read(&mut connection);
            let _nobody_asks = sender.send(request);
            connection.write_all(&answer).unwrap();
        }
    });
    (url, requests)
}

fn read(connection: &mut TcpStream) -> Request {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut headers = String::new();
    while !headers.ends_with("\r\n\r\n") && headers != "\r\n" {
        reader.read_line(&mut headers).unwrap();
    }
    let headers = headers.to_lowercase();
    let length = headers.lines().find_map(|header| header.strip_prefix("content-length: ")).map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Request { line: line.trim().to_owned(), headers, body }
}

fn answer(status: &str, more: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n{more}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn at(url: &str, inputs: Inputs) -> Inputs {
    Inputs { url: url.to_owned(), id: 7.0, token: "job-token".into(), ..inputs }
}

fn archive() -> Vec<u8> {
    let world = World::new();
    world.run("job", Inputs { directory: world.kept(), ..world.upload() }).unwrap();
    fs::read(world.path("kept/build/artifacts.zip")).unwrap()
}

#[test]
fn an_upload_is_one_part_with_its_name_kind_and_token() {
    let world = World::new();
    let (url, requests) = server(vec![answer("201 Created", "", b"{}")]);
    world.run("job", at(&url, Inputs { expire_in: "1 week".into(), ..world.upload() })).unwrap();
    let request = requests.recv().unwrap();
    assert_eq!(request.line, "POST /api/v4/jobs/7/artifacts?artifact_format=zip&artifact_type=archive&expire_in=1+week HTTP/1.1");
    assert!(request.headers.contains("job-token: job-token"), "{}", request.headers);
    let body = String::from_utf8_lossy(&request.body);
    assert!(body.contains("name=\"file\"; filename=\"artifacts.zip\"") && body.contains("out/a.txt"), "{body}");
}

#[test]
fn art_02_an_upload_that_is_sent_elsewhere_goes_there_and_the_token_stays_at_its_server() {
    let world = World::new();
    let (other, there) = server(vec![answer("201 Created", "", b"")]);
    let (url, here) = server(vec![answer("307 Temporary Redirect", &format!("Location: {other}/x\r\n"), b"")]);
    world.run("job", at(&url, world.upload())).unwrap();
    assert!(here.recv().unwrap().headers.contains("job-token: job-token"));
    let moved = there.recv().unwrap();
    assert!(moved.line.starts_with("POST /api/v4/jobs/7/artifacts?artifact_format=zip") && !moved.body.is_empty());
    assert!(!moved.headers.contains("job-token"), "{}", moved.headers);
}

#[test]
fn art_01_what_the_server_says_of_a_refusal_is_said() {
    let world = World::new();
    let refusal = |status: &str, body: &str| {
        let (url, _requests) = server(vec![answer(status, "", body.as_bytes())]);
        world.run("job", at(&url, world.upload())).unwrap_err()
    };
    let too_large = refusal("413 Payload Too Large", "");
    assert_eq!(too_large.message, "could not upload the artifacts: the server takes nothing as large (413)");
    assert!(too_large.hint.is_some());
    assert_eq!(refusal("403 Forbidden", "{}").message, "could not upload the artifacts: the server forbids it (403)");
}

#[test]
fn a_failing_upload_is_tried_again_with_all_of_its_bytes() {
    let world = World::new();
    let (url, requests) = server(vec![answer("500 Oh", "", b"{\"message\":\"oh\"}"), answer("201 Created", "", b"")]);
    world.run("job", at(&url, world.upload())).unwrap();
    let (first, second) = (requests.recv().unwrap(), requests.recv().unwrap());
    assert_eq!((first.body.len(), first.body.len() > 100), (second.body.len(), true));
}

#[test]
fn a_download_follows_to_a_store_of_objects_without_the_token() {
    let world = World::new();
    let (store, there) = server(vec![answer("200 OK", "", &archive())]);
    let (url, here) = server(vec![answer("302 Found", &format!("Location: {store}/object?sig=1\r\n"), b"")]);
    world.run("next", at(&url, world.download())).unwrap();
    assert_eq!(here.recv().unwrap().line, "GET /api/v4/jobs/7/artifacts?direct_download=true HTTP/1.1");
    let asked = there.recv().unwrap();
    assert_eq!((asked.line.as_str(), asked.headers.contains("job-token")), ("GET /object?sig=1 HTTP/1.1", false));
    assert_eq!(fs::read_to_string(world.path("next/out/a.txt")).unwrap(), "made");
}

#[test]
fn art_03_a_store_that_refuses_is_forbidden_whatever_it_says() {
    let world = World::new();
    for body in ["{\"message\":\"no\"}", "<Error><Code>Broken", "<Error><Message>no</Message></Error>"] {
        let (url, _requests) = server(vec![answer("403 Forbidden", "", body.as_bytes())]);
        let failure = world.run("next", at(&url, world.download())).unwrap_err();
        assert_eq!(failure.message, "could not download the artifacts of `build`: the server forbids it (403)");
    }
}

#[test]
fn art_04_only_the_first_of_three_asks_for_the_store_of_objects() {
    let world = World::new();
    let busy = || answer("500 Oh", "", b"");
    let (url, requests) = server(vec![busy(), busy(), busy()]);
    let failure = world.run("next", at(&url, world.download())).unwrap_err();
    assert_eq!(failure.message, "could not download the artifacts of `build`: the server answered 500");
    let lines: Vec<bool> = requests.iter().map(|request| request.line.contains("direct_download")).collect();
    assert_eq!(lines, [true, false, false]);
}

#[test]
fn half_a_download_changes_nothing() {
    let world = World::new();
    let whole = archive();
    let mut half = answer("200 OK", "", &whole);
    half.truncate(half.len() - 20);
    let (url, _requests) = server(vec![half.clone(), half.clone(), half]);
    let failure = world.run("next", at(&url, world.download())).unwrap_err();
    assert!(failure.message.contains("the artifacts ended in the middle"), "{failure}");
    assert_eq!(fs::read_dir(world.path("next")).unwrap().count(), 0);
}
