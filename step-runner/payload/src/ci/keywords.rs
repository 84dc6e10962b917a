//! Keywords that decide something for a pipeline or on a server. Here a job runs because somebody named it, so each is named instead.

use super::tree::{Content, Tree};
use crate::NotDone;

/// What a job may hold. Others are refused by GitLab, unless they are newer than this list.
pub(super) const KNOWN: [&str; 43] = [
    "after_script",
    "allow_failure",
    "artifacts",
    "before_script",
    "cache",
    "coverage",
    "dast_configuration",
    "dependencies",
    "description",
    "environment",
    "except",
    "extends",
    "hooks",
    "id_tokens",
    "identity",
    "image",
    "inherit",
    "inputs",
    "interruptible",
    "manual_confirmation",
    "needs",
    "only",
    "pages",
    "parallel",
    "publish",
    "release",
    "resource_group",
    "retry",
    "rules",
    "run",
    "schedule",
    "script",
    "secrets",
    "services",
    "stage",
    "start_in",
    "tags",
    "timeout",
    "trigger",
    "type",
    "variables",
    "when",
    "name",
];

/// Names what of the job is not applied, in the order of the table.
pub(super) fn name_unapplied(job: &Tree, not_done: &mut Vec<NotDone>) {
    let mut say = |part: &'static str, what: String, way_out: &str| {
        not_done.push(NotDone { part, what, way_out: way_out.to_owned(), refused: false });
    };
    for part in ["rules", "only", "except"] {
        if job.get(part).is_some() {
            let what = format!("`{part}` is not applied: the job runs because you named it, without the variables that a rule would add");
            say(part, what, "`--job NAME=VALUE` sets a variable");
        }
    }
    if let Some(when) = job.get("when").and_then(Tree::as_text).filter(|when| &***when != "on_success") {
        say("when", format!("`when: {when}` is not applied: the job runs now"), "none is needed");
    }
    if let Some(needs) = job.get("needs").filter(|needs| !needs.one_or_several().is_empty()) {
        let what = format!("`needs` is not applied: what comes from other jobs is not fetched{}", names(needs));
        say("needs", what, "run those jobs first");
    }
    if let Some(dependencies) = job.get("dependencies").filter(|dependencies| !dependencies.one_or_several().is_empty()) {
        let what = format!("`dependencies` is not applied: the artifacts of other jobs are not fetched{}", names(dependencies));
        say("dependencies", what, "run those jobs first");
    }
    match job.get("parallel").map(|parallel| &parallel.content) {
        None => {}
        Some(Content::Map(_)) => {
            let what = "`parallel:matrix` is not applied: the job runs once, without the variables of the matrix".to_owned();
            say("parallel", what, "`--job NAME=VALUE` sets the variables of one cell");
        }
        Some(_) => {
            let what = "`parallel` is not applied: the job runs once, without `CI_NODE_INDEX` and `CI_NODE_TOTAL`".to_owned();
            say("parallel", what, "`--job CI_NODE_INDEX=1 --job CI_NODE_TOTAL=4` makes it one of four");
        }
    }
    let rest: [(&'static str, &str, &str); 13] = [
        ("allow_failure", "a failure here is a failure", "none is needed"),
        ("retry", "the job runs once", "run it again"),
        ("environment", "no deployment is recorded", "`--job CI_ENVIRONMENT_NAME=NAME` where the script asks for it"),
        ("release", "no release is made", "make it in GitLab"),
        ("pages", "nothing is published", "the files stay in the work tree"),
        ("resource_group", "no other job is waited for", "run one at a time"),
        ("tags", "no machine is chosen: it runs on this one", "none is needed"),
        ("coverage", "no coverage is read from the log", "read it there"),
        ("interruptible", "nothing newer interrupts it", "none is needed"),
        ("start_in", "it starts now", "none is needed"),
        ("inputs", "the inputs of the job are not filled in", "write their values into the file"),
        ("identity", "no identity is taken on", "log in beforehand"),
        ("dast_configuration", "no profile is read", "set its variables with `--job NAME=VALUE`"),
    ];
    for (part, what, way_out) in rest {
        if job.get(part).is_some() {
            say(part, format!("`{part}` is not applied: {what}"), way_out);
        }
    }
}

/// What the whole configuration decides for a pipeline.
pub(super) fn name_unapplied_of_pipeline(root: &Tree, not_done: &mut Vec<NotDone>) {
    if root.get("workflow").is_some() {
        let what = "`workflow` is not applied: there is no pipeline, and the variables of its rules are not set".to_owned();
        not_done.push(NotDone { part: "workflow", what, way_out: "`--job NAME=VALUE` sets a variable".to_owned(), refused: false });
    }
}

pub(super) fn name_includes(not_fetched: &[String], unconditional: &[String], not_done: &mut Vec<NotDone>) {
    if !not_fetched.is_empty() {
        let what = format!("only local files are included; not fetched: {}", not_fetched.join(", "));
        let way_out = "put what the job needs of them into a file of the repository".to_owned();
        not_done.push(NotDone { part: "include", what, way_out, refused: false });
    }
    if !unconditional.is_empty() {
        let what = format!("the rules of includes are not applied, so these are included: {}", unconditional.join(", "));
        not_done.push(NotDone { part: "include:rules", what, way_out: "leave out what is not wanted".to_owned(), refused: false });
    }
}

/// `: a, b`, where there are names.
fn names(value: &Tree) -> String {
    let names: Vec<String> = value
        .one_or_several()
        .iter()
        .filter_map(|item| item.as_text().or_else(|| item.get("job")?.as_text()))
        .map(|name| format!("`{name}`"))
        .collect();
    if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) }
}
