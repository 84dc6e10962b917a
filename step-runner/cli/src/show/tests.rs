use super::*;
use clap::Parser;

const RESULT: &str = r#"{"step":{},"status":"failure","env":{},"subStepResults":[
  {"step":{"name":"build","step":{"protocol":"local","path":[".","build"],"filename":"step.yml"}},"status":"success",
   "outputs":{"path":"/tmp/a","token":"[MASKED string 0ba59821]","list":[1,2]},"exports":{"A":"b c"},
   "execResult":{"command":["sh","-c","make it"],"workDir":"/w"},
   "startTime":"2023-11-14T22:13:20Z","endTime":"2023-11-14T22:13:21.250Z",
   "usage":{"cpuUser":"0.5s","cpuSystem":"0.004s","peakMemory":"5000000"},
   "digest":"sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","commit":"0a1b","dirty":true},
  {"step":{"step":{"protocol":"dist","path":["script"]},"inputs":{"script":"exit 7"}},"status":"failure",
   "execResult":{"command":["bash"],"workDir":"/w","exitCode":7}},
  {"step":{"step":{"protocol":"local","path":["/","opt"]}},"status":"failure","execResult":{"exitCode":-1},"failureKind":"timeout",
   "failureMessage":"step \"\": timed out after 1m"}]}"#;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    show: ShowArguments,
}

/// What `show` prints for a file of this content, without colours.
fn shown(content: &str, flags: &[&str]) -> Result<String, Stop> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), content).unwrap();
    let arguments = ["show"].iter().chain(flags).map(std::ffi::OsStr::new).chain([file.path().as_os_str()]);
    let arguments = Line::parse_from(arguments).show;
    let (tree, last_step) = tree_of(&arguments).map_err(|mut stop| {
        for problem in &mut stop.problems {
            let name = file.path().display().to_string();
            problem.message = problem.message.replace(&name, "result.json");
            problem.hints.iter_mut().for_each(|hint| *hint = hint.replace(&name, "result.json"));
        }
        stop
    })?;
    let mut out = anstream::StripStream::new(Vec::new());
    show(&mut out, &tree, last_step.as_deref(), arguments.verbose, arguments.output).unwrap();
    Ok(String::from_utf8(out.into_inner()).unwrap())
}

#[test]
fn a_result_is_shown_as_a_tree() {
    insta::assert_snapshot!(shown(RESULT, &[]).unwrap(), @r#"
    failed               job
    ok            1.25s  ├─ build
                         │     list = [1,2]
                         │     path = "/tmp/a"
                         │     token = "[MASKED string 0ba59821]"
    failed               ├─ script: exec: exit status 7
    timed out            └─ /opt: timed out after 1m
    "#);
}

#[test]
fn verbose_tells_everything() {
    insta::assert_snapshot!(shown(RESULT, &["--verbose"]).unwrap(), @r#"
    failed               job
    ok            1.25s  ├─ build
                         │     command: sh -c 'make it'
                         │     directory: /w
                         │     list = [1,2]
                         │     path = "/tmp/a"
                         │     token = "[MASKED string 0ba59821]"
                         │     export A=b c
                         │     used: 500ms of CPU time and 4.0ms in the system; 4.7 MiB of memory at the peak
                         │     definition: sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881
                         │     commit: 0a1b, and the directory differs from it
    failed               ├─ script: exec: exit status 7
                         │     command: bash
                         │     directory: /w
    timed out            └─ /opt: timed out after 1m
    "#);
}

#[test]
fn json_is_the_result_on_one_line() {
    let first = shown(RESULT, &["--output", "json"]).unwrap();
    assert!(first.starts_with(r#"{"step":{},"status":"failure","subStepResults":[{"step":{"name":"build","#), "{first}");
    assert!(first.contains(r#""token":"[MASKED string 0ba59821]""#));
    assert_eq!(shown(&first, &["--output", "json"]).unwrap(), first);
    assert_eq!(first.lines().count(), 1);
}

#[test]
fn a_long_output_is_cut_unless_everything_is_asked_for() {
    let result = format!(r#"{{"status":"success","outputs":{{"o":"{}"}}}}"#, "ä".repeat(200));
    let short = shown(&result, &[]).unwrap();
    assert!(short.ends_with("ä… (406 bytes)\n"), "{short}");
    assert!(shown(&result, &["-v"]).unwrap().contains(&"ä".repeat(200)));
}

#[test]
fn what_is_no_result_is_said_with_the_way_out() {
    let said = |content: &str| {
        let stop = shown(content, &[]).unwrap_err();
        assert_eq!(stop.exit, Exit::BadInput);
        let problem = &stop.problems[0];
        format!("{}\n{}", problem.message, problem.hints.join("\n"))
    };
    insta::assert_snapshot!(said("{\"status\": \"succ"), @"
    `result.json` is no result: it is cut off: the JSON has no end (line 1, column 16)
    `show` takes the file that `step-runner run JOB --result FILE` writes
    ");
    insta::assert_snapshot!(said("[1, 2]"), @"
    `result.json` is no result: it is not an object
    `show` takes the file that `step-runner run JOB --result FILE` writes
    ");
    insta::assert_snapshot!(said(r#"{"id": "7", "steps": "{}"}"#), @"
    `result.json` is no result: it has neither `status` nor `step`
    it can be run: `step-runner run result.json`
    ");
    insta::assert_snapshot!(said(r#"{"status": "success", "env": [1]}"#), @"
    `result.json` is no result: `result` is not what a result has there: invalid type: sequence, expected a map
    `show` takes the file that `step-runner run JOB --result FILE` writes
    ");
}
