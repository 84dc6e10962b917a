use super::*;
use crate::builtins;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A directory with these files.
fn files(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().expect("a directory for a test");
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("created");
        fs::write(path, text).expect("written");
    }
    dir
}

/// What `check` prints, without colours.
fn checked(dir: &TempDir, paths: &[&str], format: Format, strict: bool) -> String {
    let mut walk = Walk::from(dir.path(), builtins::all());
    paths.iter().for_each(|path| walk.begin(Path::new(path)));
    let files = walk.finish();
    let mut out = Vec::new();
    match format {
        Format::Text => report::text(&mut out, &files, strict).expect("written"),
        Format::Json => report::json(&mut out, &files, strict).expect("written"),
    }
    let text = String::from_utf8(out).expect("UTF-8");
    let real = dir.path().canonicalize().expect("it is there");
    anstream::adapter::strip_str(&text).to_string().replace(&real.display().to_string(), "DIR")
}

const GREET: &str = "spec:\n  inputs:\n    who: {type: string}\n    times: {type: number, default: 1}\n  outputs:\n    text: {type: string}\n---\nexec: {command: [greet]}\n";

#[test]
fn a_sound_definition_has_no_problems() {
    let dir = files(&[
        (
            "step.yml",
            "{}\n---\nrun: [{name: a, step: ./greet, inputs: {who: world}}, {name: b, step: ./greet/func.yml, inputs: {who: you}}]\n",
        ),
        ("greet/func.yml", GREET),
    ]);
    assert_eq!(checked(&dir, &["."], Format::Text, false), "checked 2 files: no problems\n");
    assert_eq!(checked(&dir, &["step.yml", "greet", "./step.yml"], Format::Text, true), "checked 2 files: no problems\n");
    assert_eq!(checked(&dir, &["."], Format::Json, false), "");
}

#[test]
fn every_problem_of_every_file_is_told() {
    let dir = files(&[
        (
            "func.yml",
            "spec: {inptus: {}}\n---\nrun:\n  - name: a\n    func: ./greet\n    inputs:\n      whom: world\n      times: many\n  - {name: b, func: ./greet, inputs: {who: \"${{ steps.a.outputs.txet }}\"}}\n  - {name: c, func: ./broken}\n  - {name: d, func: ./later}\n",
        ),
        ("greet/func.yml", GREET),
        ("broken/step.yml", "{}\n---\nexec: {command: []}\n"),
    ]);
    insta::assert_snapshot!(checked(&dir, &["."], Format::Text, false), @r#"
    warning: unknown key `inptus` in `spec` is ignored
     --> func.yml:1:8
      |
    1 | spec: {inptus: {}}
      |        ^^^^^^
      |
      = hint: did you mean `inputs`?

    error: input "who" required, but not defined
     --> func.yml:6:5
      |
    6 |     inputs:
      |     ^^^^^^
      |
      = hint: add `who` to `inputs`: a string

    error: step does not accept input with name "whom"
     --> func.yml:7:7
      |
    7 |       whom: world
      |       ^^^^
      |
      = hint: did you mean `who`?

    error: input "times" takes a number, not a string
     --> func.yml:8:14
      |
    8 |       times: many
      |              ^^^^
      |
      = hint: write a number, without quotes

    error: step `a` has no output `txet`
     --> func.yml:9:49
      |
    9 |   - {name: b, func: ./greet, inputs: {who: "${{ steps.a.outputs.txet }}"}}
      |                                                 ^^^^^^^^^^^^^^^^^^^^
      |
      = hint: did you mean `steps.a.outputs.text`?

    warning: failed to load: loading file "DIR/later/step.yml": reading file: open DIR/later/step.yml: no such file or directory
      --> func.yml:11:21
       |
    11 |   - {name: d, func: ./later}
       |                     ^^^^^^^
       |
       = hint: an earlier step has to write it before this one is reached

    error: `command` is empty: minimum 1 items required
     --> broken/step.yml:3:17
      |
    3 | exec: {command: []}
      |                 ^^
      |
      = hint: its first item is the program

    checked 3 files: 5 errors, 2 warnings
    "#);
    insta::assert_snapshot!(checked(&dir, &["."], Format::Json, true), @r#"
    {"file":"func.yml","severity":"error","code":"unknown-key","message":"unknown key `inptus` in `spec` is ignored","hint":"did you mean `inputs`?","line":1,"column":8,"end_line":1,"end_column":14,"start":7,"end":13}
    {"file":"func.yml","severity":"error","code":"missing-input","message":"input \"who\" required, but not defined","hint":"add `who` to `inputs`: a string","line":6,"column":5,"end_line":6,"end_column":11,"start":62,"end":68}
    {"file":"func.yml","severity":"error","code":"unknown-input","message":"step does not accept input with name \"whom\"","hint":"did you mean `who`?","line":7,"column":7,"end_line":7,"end_column":11,"start":76,"end":80}
    {"file":"func.yml","severity":"error","code":"input-of-other-type","message":"input \"times\" takes a number, not a string","hint":"write a number, without quotes","line":8,"column":14,"end_line":8,"end_column":18,"start":101,"end":105}
    {"file":"func.yml","severity":"error","code":"unknown-output-read","message":"step `a` has no output `txet`","hint":"did you mean `steps.a.outputs.text`?","line":9,"column":49,"end_line":9,"end_column":69,"start":154,"end":174}
    {"file":"func.yml","severity":"error","code":"not-loaded","message":"failed to load: loading file \"DIR/later/step.yml\": reading file: open DIR/later/step.yml: no such file or directory","hint":"an earlier step has to write it before this one is reached","line":11,"column":21,"end_line":11,"end_column":28,"start":231,"end":238}
    {"file":"broken/step.yml","severity":"error","code":"empty-command","message":"`command` is empty: minimum 1 items required","hint":"its first item is the program","line":3,"column":17,"end_line":3,"end_column":19,"start":23,"end":25}
    "#);
}

#[test]
fn what_is_not_there_is_named() {
    let dir = files(&[("a/step.yml", "{}\n---\nrun: [{name: a, step: ./nope}]\n"), ("empty/readme", "")]);
    insta::assert_snapshot!(checked(&dir, &["a", "empty", "nope", "empty/readme"], Format::Text, false), @r#"
    error: could not read the definition: there is no `func.yml` and no `step.yml` in it
    --> empty

    error: could not read the definition: there is no such file
    --> nope

    error: failed to load: loading file "DIR/a/nope/step.yml": reading file: open DIR/a/nope/step.yml: no such file or directory
     --> a/step.yml:3:23
      |
    3 | run: [{name: a, step: ./nope}]
      |                       ^^^^^^
      |
      = hint: a reference is relative to the directory of the file that holds it

    error: decoding: EOF: the text is empty, but a definition has two documents
    --> empty/readme
     = hint: write `{}` or `spec:`, a line `---`, and then `exec:` or `run:`

    checked 4 files: 4 errors
    "#);
}

#[test]
fn references_of_a_file_with_errors_are_followed() {
    let dir = files(&[
        ("func.yml", "{}\n---\nrun:\n  - {name: x, func: ./nope}\n  - {name: bad name, script: echo}\n  - {name: y, func: ./broken}\n"),
        ("broken/func.yml", "{}\n---\nexec: {}\n"),
    ]);
    let told = checked(&dir, &["."], Format::Text, false);
    for part in ["DIR/nope/step.yml", "`bad name` is not a name", "`exec` has no command", "checked 2 files: 3 errors"] {
        assert!(told.contains(part), "{part} is not told:\n{told}");
    }
}

#[test]
fn a_circle_is_named_once() {
    let dir = files(&[
        ("a/step.yml", "{}\n---\nrun: [{name: b, step: ../b}]\n"),
        ("b/step.yml", "{}\n---\nrun: [{name: c, step: ../c}]\n"),
        ("c/step.yml", "{}\n---\nrun: [{name: a, step: ../a}]\n"),
    ]);
    insta::assert_snapshot!(checked(&dir, &["a", "b"], Format::Text, false), @r"
    error: the definition refers to itself: a/step.yml > b/step.yml > c/step.yml > a/step.yml
     --> c/step.yml:3:23
      |
    3 | run: [{name: a, step: ../a}]
      |                       ^^^^

    checked 3 files: 1 error
    ");
}

#[test]
fn steps_that_nest_too_deep_are_refused() {
    let chain: Vec<(String, String)> = (0..70)
        .map(|number| (format!("s{number}/step.yml"), format!("{{}}\n---\nrun: [{{name: a, step: ../s{}}}]\n", number + 1)))
        .chain([("s70/step.yml".to_owned(), "{}\n---\nexec: {command: [a]}\n".to_owned())])
        .collect();
    let chain: Vec<(&str, &str)> = chain.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let told = checked(&files(&chain), &["s0"], Format::Text, false);
    assert!(told.starts_with("error: steps nest deeper than 64 levels\n --> s63/step.yml:3:23\n"), "{told}");
    assert!(told.ends_with("checked 71 files: 1 error\n"), "{told}");
}

#[cfg(unix)]
#[test]
fn a_reference_stays_in_the_repository() {
    let outside = files(&[("step.yml", "{}\n---\nexec: {command: [a]}\n")]);
    let dir = files(&[("step.yml", "{}\n---\nrun: [{name: a, step: ./link}, {name: b, step: ../../../etc}]\n"), (".git/HEAD", "")]);
    std::os::unix::fs::symlink(outside.path(), dir.path().join("link")).expect("a link");
    let told = checked(&dir, &["."], Format::Text, false);
    assert!(told.contains("outside of the repository \"DIR\""), "{told}");
}

#[cfg(feature = "docker")]
#[test]
fn what_is_handed_over_is_checked_with_its_places() {
    let job = r#"spec: {inputs: {version: {type: string}}}
---
run:
  - {name: meta, func: ./meta}
  - name: build
    func: builtin://docker
    inputs:
      imgae: rust
      inputs: {tag: "${{ steps.meta.outputs.tag }}"}
      run:
        - {name: compile, func: ./compile, inputs: {tag: "${{ steps.meta.outputs.tag }}", speed: 1}}
        - {name: test, func: ./nowhere, inputs: {tag: "${{ inputs.version }}"}}
        - {name: again, func: "./${{ inputs.tag }}"}
      outputs: {path: "${{ steps.compile.outputs.paht }}"}
  - {name: publish, func: ./meta, env: {P: "${{ steps.build.outputs.pth }}"}}
  - {name: other, func: builtin://dokcer}
"#;
    let compile = "spec: {inputs: {tag: {type: string}}, outputs: {path: {type: string}}}\n---\nexec: {command: [x]}\n";
    let meta = "spec: {outputs: {tag: {type: string}}}\n---\nexec: {command: [x]}\n";
    let dir = files(&[("func.yml", job), ("compile/func.yml", compile), ("meta/func.yml", meta)]);
    let lines = checked(&dir, &["."], Format::Json, false);
    let line = |line: &str| {
        let problem: serde_json::Value = serde_json::from_str(line).expect("JSON");
        format!(
            "{}:{} {}; {}",
            problem["line"],
            problem["column"],
            problem["message"].as_str().unwrap_or_default(),
            problem["hint"].as_str().unwrap_or("-")
        )
    };
    insta::assert_snapshot!(lines.lines().map(line).collect::<Vec<_>>().join("\n"), @r#"
    7:5 input "image" required, but not defined; add `image` to `inputs`: a string
    8:7 step does not accept input with name "imgae"; did you mean `image`?
    11:63 step `meta` runs outside of this environment: its outputs are not seen here; add `tag: ${{ steps.meta.outputs.tag }}` to `inputs`, and read `inputs.tag`
    11:91 step does not accept input with name "speed"; the step takes `tag`
    12:30 failed to load: loading file "DIR/nowhere/step.yml": reading file: open DIR/nowhere/step.yml: no such file or directory; an earlier step has to write it before this one is reached
    12:60 there is no input `version`; it is an input of the step around: add `version: ${{ inputs.version }}` to `inputs`
    13:31 `./${{ inputs.tag }}` is computed, and inside of another environment nothing is fetched: resolve it in an earlier step outside; -
    14:28 step `compile` has no output `paht`; did you mean `steps.compile.outputs.path`?
    15:49 step `build` has no output `pth`; did you mean `steps.build.outputs.path`?
    16:25 there is no builtin step `dokcer` in this program; did you mean `builtin://docker`?
    "#);
}
