//! A conversation with an editor: open texts, and which answers its messages get.

use super::answers;
use super::position::range;
use crate::builtins;
use crate::check::walk::Walk;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use step_model::diagnostic::Problem;
use step_testing::suite_file::SuiteFile;

/// Codes of JSON-RPC and of the protocol.
const NOT_INITIALIZED: i32 = -32002;
const NO_SUCH_METHOD: i32 = -32601;
const AFTER_SHUTDOWN: i32 = -32600;

/// An open file.
#[derive(Debug)]
pub struct Open {
    pub path: PathBuf,
    pub text: String,
    version: Json,
}

#[derive(Debug, Default)]
pub struct Session {
    state: State,
    open: BTreeMap<String, Open>,
    /// Texts that changed since their problems were told.
    stale: BTreeSet<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    New,
    Talking,
    Over,
}

/// What follows from a message.
pub enum Next {
    Answers(Vec<Json>),
    End,
}

impl Session {
    /// The editor said goodbye as it should.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    pub fn on(&mut self, message: &Json) -> Next {
        let method = message["method"].as_str().unwrap_or_default();
        let parameters = &message["params"];
        let Some(id) = message.get("id").filter(|_| !method.is_empty()) else {
            if method == "exit" {
                return Next::End;
            }
            return Next::Answers(self.notice(method, parameters));
        };
        let answer = match (method, &self.state) {
            ("initialize", _) => {
                self.state = State::Talking;
                Ok(capabilities())
            }
            (_, State::New) => Err((NOT_INITIALIZED, "the conversation begins with `initialize`")),
            (_, State::Over) => Err((AFTER_SHUTDOWN, "the conversation is over")),
            ("shutdown", _) => {
                self.state = State::Over;
                Ok(Json::Null)
            }
            ("textDocument/hover", _) => Ok(self.at(parameters, answers::hover)),
            ("textDocument/completion", _) => Ok(self.at(parameters, answers::completion)),
            ("textDocument/definition", _) => Ok(self.at(parameters, answers::definition)),
            ("textDocument/formatting", _) => Ok(self.formatted(parameters)),
            _ => Err((NO_SUCH_METHOD, "there is no such method")),
        };
        Next::Answers(vec![match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, why)) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": why}}),
        }])
    }

    fn notice(&mut self, method: &str, parameters: &Json) -> Vec<Json> {
        let document = &parameters["textDocument"];
        let Some(uri) = document["uri"].as_str() else { return Vec::new() };
        match method {
            "textDocument/didOpen" => {
                let Some(path) = path_of(uri) else { return Vec::new() };
                let text = document["text"].as_str().unwrap_or_default().to_owned();
                self.open.insert(uri.to_owned(), Open { path, text, version: document["version"].clone() });
            }
            "textDocument/didChange" => {
                let Some(open) = self.open.get_mut(uri) else { return Vec::new() };
                // Whole texts were asked for: the last one counts.
                if let Some(text) = parameters["contentChanges"].as_array().and_then(|changes| changes.last()?["text"].as_str()) {
                    text.clone_into(&mut open.text);
                }
                open.version = document["version"].clone();
            }
            "textDocument/didClose" => {
                self.open.remove(uri);
                self.stale.remove(uri);
                return vec![published(uri, &Json::Null, Vec::new())];
            }
            "textDocument/didSave" => {
                // Others may refer to it.
                self.stale.extend(self.open.keys().cloned());
                return Vec::new();
            }
            _ => return Vec::new(),
        }
        self.stale.insert(uri.to_owned());
        Vec::new()
    }

    /// The problems of all texts that changed.
    pub fn diagnostics(&mut self) -> Vec<Json> {
        let stale = std::mem::take(&mut self.stale);
        stale
            .iter()
            .filter_map(|uri| {
                let open = self.open.get(uri)?;
                let problems = problems(open).iter().map(|problem| diagnostic(&open.text, problem)).collect();
                Some(published(uri, &open.version, problems))
            })
            .collect()
    }

    fn at(&self, parameters: &Json, answer: fn(&Open, usize) -> Option<Json>) -> Json {
        let open = parameters["textDocument"]["uri"].as_str().and_then(|uri| self.open.get(uri));
        open.and_then(|open| answer(open, super::position::byte(&open.text, &parameters["position"]))).unwrap_or(Json::Null)
    }

    fn formatted(&self, parameters: &Json) -> Json {
        let open = parameters["textDocument"]["uri"].as_str().and_then(|uri| self.open.get(uri));
        let Some(open) = open else { return Json::Null };
        match step_model::document::format::format(&open.text) {
            Ok(text) if text == open.text => json!([]),
            Ok(text) => json!([{"range": range(&open.text, &(0..open.text.len())), "newText": text}]),
            Err(_) => Json::Null,
        }
    }
}

fn capabilities() -> Json {
    json!({
        "capabilities": {
            "positionEncoding": "utf-16",
            "textDocumentSync": {"openClose": true, "change": 1, "save": {"includeText": false}},
            "hoverProvider": true,
            "definitionProvider": true,
            "documentFormattingProvider": true,
            "completionProvider": {"triggerCharacters": [".", "{", " "]},
        },
        "serverInfo": {"name": "step-runner", "version": env!("CARGO_PKG_VERSION")},
    })
}

fn problems(open: &Open) -> Vec<Problem> {
    let name = open.path.file_name().unwrap_or_default().to_string_lossy();
    if name.ends_with("_test.yml") {
        let shown = open.path.display().to_string();
        let refused = SuiteFile::of_text(&open.path, &shown, open.text.clone(), &builtins::all()).err();
        let files = refused.into_iter().flat_map(|refused| refused.files);
        return files.filter(|(name, ..)| *name == shown).flat_map(|(.., problems)| problems).collect();
    }
    let dir = open.path.parent().unwrap_or(Path::new("/"));
    let mut walk = Walk::from(dir, crate::builtins::all());
    walk.begin_typed(&open.path, &open.text);
    walk.finish().into_iter().next().map(|file| file.problems).unwrap_or_default()
}

fn diagnostic(text: &str, problem: &Problem) -> Json {
    let span = problem.place.as_ref().map_or(0..0, |place| place.span.clone());
    let message = match &problem.hint {
        Some(hint) => format!("{}\nhint: {hint}", problem.message),
        None => problem.message.clone(),
    };
    let severity = if problem.is_error() { 1 } else { 2 };
    json!({"range": range(text, &span), "severity": severity, "code": problem.code, "source": "step-runner", "message": message})
}

fn published(uri: &str, version: &Json, diagnostics: Vec<Json>) -> Json {
    let mut parameters = json!({"uri": uri, "diagnostics": diagnostics});
    if !version.is_null() {
        parameters["version"] = version.clone();
    }
    json!({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": parameters})
}

/// `file:///a%20b` as a path.
pub fn path_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let mut bytes = Vec::with_capacity(rest.len());
    let mut letters = rest.bytes();
    while let Some(byte) = letters.next() {
        if byte == b'%' {
            let digits = [letters.next()?, letters.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

/// A path as an editor names it.
pub fn uri_of(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let text = path.to_string_lossy();
    let encoded: String =
        text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect();
    format!("file://{encoded}")
}
