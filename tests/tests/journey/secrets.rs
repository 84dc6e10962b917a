//! Secrets: masked in everything that is written for a person, also split, over lines, and encoded.

use ci_tests::workshop::{Ends, Workshop};

const SECRET: &str = "correct horse+battery/staple";

fn job_with(commands: &str) -> (Workshop, ci_tests::program::Finished) {
    let workshop = Workshop::new();
    workshop.file(
        "inner/func.yml",
        format!(
            "spec: {{inputs: {{secret: {{type: string, sensitive: true}}}}}}\n---\nenv: {{SECRET: \"${{{{ inputs.secret }}}}\"}}\nexec:\n  command:\n    - bash\n    - -c\n    - |\n      {commands}\n"
        ),
    );
    let finished = workshop
        .step_runner(&[
            "run",
            "./inner",
            "--input",
            &format!("secret={SECRET}"),
            "--result",
            "r.json",
            "--step-results-file",
            "t.json",
            "--verbose",
        ])
        .ends(0);
    (workshop, finished)
}

#[test]
fn a_sensitive_input_is_masked_in_logs_and_results() {
    let (workshop, finished) = job_with("echo \"it is $SECRET\"; echo \"$SECRET\" >&2");
    assert_eq!(finished.stdout(), "it is [MASKED]\n[MASKED]\n");
    for text in [finished.stdout(), finished.stderr(), workshop.read("r.json"), workshop.read("t.json")] {
        assert!(!text.contains(SECRET) && !text.contains("battery"), "{text}");
    }
}

#[test]
fn a_secret_is_masked_when_it_is_split_over_writes() {
    let (_workshop, finished) = job_with("for ((i = 0; i < ${#SECRET}; i++)); do printf %s \"${SECRET:i:1}\"; done; echo");
    assert_eq!(finished.stdout(), "[MASKED]\n");
}

#[test]
fn a_secret_is_masked_in_base64_in_each_alignment_in_urls_and_in_json() {
    for prefix in ["", "a", "ab", "user:"] {
        let (_workshop, finished) = job_with(&format!("printf '%s%s' '{prefix}' \"$SECRET\" | base64 -w0; echo"));
        // Two or three letters at each end depend on what stands beside the secret; the middle must not be there.
        assert!(finished.stdout().contains("[MASKED]"), "prefix {prefix:?}\n{finished}");
    }
    let (_workshop, finished) =
        job_with("printf 'https://x/?q=%s\\n' \"$(printf %s \"$SECRET\" | sed 's/ /%20/g; s/+/%2B/g; s,/,%2F,g')\"");
    assert_eq!(finished.stdout(), "https://x/?q=[MASKED]\n");
}

#[test]
fn a_sensitive_output_is_masked_in_later_steps() {
    let workshop = Workshop::new();
    workshop.file(
        "maker/func.yml",
        "spec: {outputs: {key: {type: string, sensitive: true}}}\n---\nexec:\n  command: [sh, -c, \"printf '{\\\"name\\\":\\\"key\\\",\\\"value\\\":\\\"born-at-run-time\\\"}' >$1\", x, \"${{ output_file }}\"]\n",
    );
    workshop.file(
        "job/func.yml",
        "{}\n---\nrun:\n  - {name: make, func: ../maker}\n  - name: use\n    env: {KEY: \"key ${{ steps.make.outputs.key }}\"}\n    script: echo \"$KEY\"; echo born-at-run-time\n",
    );
    let finished = workshop.step_runner(&["run", "./job", "--result", "r.json"]).ends(0);
    assert!(finished.stdout().lines().all(|line| line.contains("[MASKED]") && !line.contains("born")), "{finished}");
    let result = workshop.read("r.json");
    assert!(!result.contains("born-at-run-time\"") || result.contains("echo born-at-run-time"), "{result}");
}

#[test]
fn a_request_that_was_kept_without_its_secrets_runs_the_same_where_they_are_supplied() {
    use ci_proto::step_runner::{Job, RunRequest, Variable};
    let workshop = Workshop::new();
    let variable = |key: &str, value: &str, file, masked| Variable { key: key.into(), value: value.into(), file, masked };
    let script = "echo $URL | tr a-z A-Z; echo in-the-text-hunter2hunter2 | tr a-z A-Z; cat ${{ vars.KEY_FILE }} | tr a-z A-Z";
    let request = RunRequest {
        id: "1".into(),
        env: [("URL".to_owned(), "https://u:hunter2hunter2@h".to_owned())].into(),
        steps: format!("{{}}\n---\nrun: [{{name: a, script: {script:?}}}]\n"),
        job: Some(Job {
            variables: vec![variable("TOKEN", "hunter2hunter2", false, true), variable("KEY_FILE", "key of \"quotes\"\n", true, false)],
            build_dir: String::new(),
        }),
        ..RunRequest::default()
    };
    let written = |name: &str, request: &RunRequest| {
        workshop.file(name, step_client::wire::request::message_to_json(request));
    };
    written("whole.json", &request);
    let kept = step_client::wire::kept_request::kept(request);
    assert_eq!(kept.withheld, ["TOKEN", "KEY_FILE"]);
    written("kept.json", &kept.request);
    assert!(!workshop.read("kept.json").contains("hunter2") && !workshop.read("kept.json").contains("quotes"));
    workshop.file("secrets.json", serde_json::json!({"TOKEN": "hunter2hunter2", "KEY_FILE": "key of \"quotes\"\n"}).to_string());
    let whole = workshop.step_runner(&["run", "whole.json"]).ends(0);
    let kept = workshop.step_runner(&["run", "kept.json", "--secrets", "secrets.json"]).ends(0);
    assert_eq!(kept.stdout(), "HTTPS://U:HUNTER2HUNTER2@H\nIN-THE-TEXT-HUNTER2HUNTER2\nKEY OF \"QUOTES\"\n");
    assert_eq!(kept.stdout(), whole.stdout());
}
