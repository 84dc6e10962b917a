//! An editor talks to `step-runner lsp`: by the protocol itself, and by a real one without a screen.

use ci_tests::workshop::{Ends, Workshop};
use serde_json::{Value as Json, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A conversation, one message at a time.
struct Editor {
    server: Child,
    output: BufReader<ChildStdout>,
    number: u64,
}

impl Editor {
    fn new(dir: &Path) -> Self {
        let program = ci_tests::program::path("STEP_RUNNER");
        let mut server =
            Command::new(program).arg("lsp").current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
        let output = BufReader::new(server.stdout.take().expect("piped"));
        let mut editor = Self { server, output, number: 0 };
        let answer = editor.ask("initialize", json!({"processId": null, "rootUri": null, "capabilities": {}}));
        assert_eq!(answer["capabilities"]["hoverProvider"], true, "{answer}");
        editor.tell("initialized", json!({}));
        editor
    }

    fn send(&mut self, message: &Json) {
        let body = message.to_string();
        let input = self.server.stdin.as_mut().expect("piped");
        write!(input, "Content-Length: {}\r\n\r\n{body}", body.len()).and_then(|()| input.flush()).expect("it listens");
    }

    fn tell(&mut self, method: &str, parameters: Json) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": parameters}));
    }

    fn ask(&mut self, method: &str, parameters: Json) -> Json {
        self.number += 1;
        let number = self.number;
        self.send(&json!({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}));
        let answer = self.next();
        assert_eq!(answer["id"], number, "{answer}");
        if answer.get("error").is_some() { answer["error"].clone() } else { answer["result"].clone() }
    }

    fn next(&mut self) -> Json {
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("a header");
            match line.trim() {
                "" => break,
                header => length = header.trim_start_matches("Content-Length: ").parse().expect("a length"),
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).expect("a message");
        serde_json::from_slice(&body).expect("JSON")
    }

    /// The messages of the problems that are told next.
    fn problems(&mut self) -> Vec<String> {
        let told = self.next();
        assert_eq!(told["method"], "textDocument/publishDiagnostics", "{told}");
        let problems = told["params"]["diagnostics"].as_array().expect("a list");
        problems
            .iter()
            .map(|problem| format!("{}: {}", problem["range"]["start"]["line"], problem["message"].as_str().unwrap_or_default()))
            .collect()
    }
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// The place of the byte behind `before`.
fn behind(text: &str, before: &str) -> Json {
    let at = text.find(before).expect("it is there") + before.len();
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    json!({"line": text[..start].matches('\n').count(), "character": at - start})
}

#[test]
fn an_editor_hears_of_problems_as_they_are_typed_and_is_offered_names() {
    let workshop = Workshop::new();
    workshop.step_runner(&["new", "outer", "--run"]).ends(0);
    let path = workshop.path("outer/func.yml");
    let sound = workshop.read("outer/func.yml");
    let typed = sound.replace("      who: ${{ inputs.who }}", "      hwo: ${{ inputs.who }}");
    let mut editor = Editor::new(workshop.dir());
    let document = json!({"uri": uri(&path)});
    editor.tell("textDocument/didOpen", json!({"textDocument": {"uri": uri(&path), "languageId": "yaml", "version": 1, "text": typed}}));
    assert_eq!(editor.problems(), ["15: step does not accept input with name \"hwo\"\nhint: did you mean `who`?"]);
    editor.tell("textDocument/didChange", json!({"textDocument": {"uri": uri(&path), "version": 2}, "contentChanges": [{"text": sound}]}));
    assert_eq!(editor.problems(), [""; 0]);

    let hover = editor.ask("textDocument/hover", json!({"textDocument": document, "position": behind(&sound, "steps.say.outputs.gre")}));
    assert_eq!(hover["contents"]["value"], "output `greeting`: string\n\nWhat was said.");
    let place = editor.ask("textDocument/definition", json!({"textDocument": document, "position": behind(&sound, "func: ./s")}));
    assert_eq!(place["uri"], uri(&workshop.path("outer/say/func.yml").canonicalize().expect("there")));
    let mut labels = |before: &str, insert: &str| {
        let text = sound.replacen(before, &format!("{before}{insert}"), 1);
        editor
            .tell("textDocument/didChange", json!({"textDocument": {"uri": uri(&path), "version": 3}, "contentChanges": [{"text": text}]}));
        editor.problems();
        let position = behind(&text, &format!("{before}{insert}"));
        let list = editor.ask("textDocument/completion", json!({"textDocument": document, "position": position}));
        list["items"].as_array().expect("a list").iter().filter_map(|item| item["label"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(labels("${{ inputs.", ""), ["who"]);
    assert_eq!(labels("GREETING: ${{ steps.say.outputs.", ""), ["greeting"]);
    assert_eq!(labels("    inputs:\n", "      w"), ["who"], "the inputs of the step that is called");
    assert!(labels("  - name: report\n", "    s").contains(&"script".to_owned()));
    assert_eq!(editor.ask("textDocument/unheardOf", json!({}))["code"], -32601);
    assert_eq!(editor.ask("shutdown", Json::Null), Json::Null);
    editor.tell("exit", Json::Null);
    assert!(editor.server.wait().expect("it ends").success());
}

#[test]
fn a_test_file_has_its_problems_too() {
    let workshop = Workshop::new();
    workshop.step_runner(&["new", "greet", "--exec"]).ends(0);
    let path = workshop.path("greet/step_test.yml");
    let mut editor = Editor::new(workshop.dir());
    let text = "cases:\n  - name: a\n    inputs: {hwo: x}\n";
    editor.tell("textDocument/didOpen", json!({"textDocument": {"uri": uri(&path), "languageId": "yaml", "version": 1, "text": text}}));
    assert_eq!(editor.problems(), ["2: the step does not accept an input `hwo`\nhint: did you mean `who`?"]);
    drop(editor.server.stdin.take());
    assert_eq!(editor.server.wait().expect("it ends").code(), Some(1), "an editor that goes without a word is a fault");
}

/// Neovim's own client: what it shows is what a person sees.
#[test]
fn neovim_shows_problems_and_completes() {
    let workshop = Workshop::new();
    workshop.step_runner(&["new", "outer", "--run"]).ends(0);
    let text = workshop.read("outer/func.yml").replace("      who: ${{ inputs.who }}", "      hwo: ${{ inputs.who }}");
    workshop.file("outer/func.yml", text);
    let program = ci_tests::program::path("STEP_RUNNER");
    workshop.file(
        "client.lua",
        format!(
            "vim.cmd('edit outer/func.yml')\n\
             vim.lsp.start_client({{cmd = {{'{}', 'lsp'}}, name = 'steps', root_dir = vim.fn.getcwd(), on_init = function(client)\n\
               vim.lsp.buf_attach_client(0, client.id)\n\
             end}})\n\
             local told = vim.wait(20000, function() return #vim.diagnostic.get(0) > 0 end, 10)\n\
             for _, problem in ipairs(vim.diagnostic.get(0)) do io.stdout:write('PROBLEM ' .. problem.lnum .. ' ' .. problem.message:gsub('\\n', ' ') .. '\\n') end\n\
             local line = vim.fn.search('steps.say.outputs')\n\
             local column = vim.fn.getline(line):find('outputs', 1, true) + 7\n\
             local answers = vim.lsp.buf_request_sync(0, 'textDocument/completion', {{textDocument = vim.lsp.util.make_text_document_params(), position = {{line = line - 1, character = column}}}}, 20000)\n\
             for _, answer in pairs(answers or {{}}) do for _, item in ipairs(answer.result.items) do io.stdout:write('OFFERED ' .. item.label .. '\\n') end end\n\
             vim.cmd('qa!')\n",
            program.display()
        ),
    );
    let finished = workshop.shell("nvim --headless --clean -n -S client.lua 2>&1").ends(0);
    finished.prints("PROBLEM 15 step does not accept input with name \"hwo\" hint: did you mean `who`?").prints("OFFERED greeting");
}
