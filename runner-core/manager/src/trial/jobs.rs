//! What was given to `try` becomes jobs: payloads of GitLab, and jobs of a `.gitlab-ci.yml`.

use std::collections::BTreeMap;
use std::path::Path;
use step_console::exit::{Complaint, Exit, Stop};
use step_console::given::{self, Given};
use step_console::pipeline;
use step_model::diagnostic::Problem;
use step_model::expression::nearest;
use step_payload::ci::Configuration;
use step_payload::recognise::{Recognised, recognise};
use step_payload::{Here, Translation, steps_of};

/// A job that can be offered.
#[derive(Debug)]
pub struct GivenJob {
    /// What people call it: the file, or the name in the `.gitlab-ci.yml`.
    pub title: String,
    pub translation: Translation,
}

/// Reads the words: a file with a payload is a job; a `.gitlab-ci.yml` is followed by the names of its jobs; `-` is a payload on standard input.
/// # Errors
/// Every problem of every job.
pub fn read(words: &[String], here: &Here, supplied: &BTreeMap<String, String>) -> Result<Vec<GivenJob>, Stop> {
    let mut reading = Reading { here, supplied, pipeline: None, jobs: Vec::new(), problems: Vec::new() };
    for word in words {
        reading.word(word)?;
    }
    reading.end_of_pipeline();
    if reading.problems.is_empty() { Ok(reading.jobs) } else { Err(Stop::all(Exit::BadInput, reading.problems)) }
}

struct Reading<'a> {
    here: &'a Here,
    supplied: &'a BTreeMap<String, String>,
    pipeline: Option<Pipeline>,
    jobs: Vec<GivenJob>,
    problems: Vec<Complaint>,
}

struct Pipeline {
    name: String,
    configuration: Configuration,
    /// Whether a job of it was named.
    is_used: bool,
}

impl Reading<'_> {
    fn word(&mut self, word: &str) -> Result<(), Stop> {
        let is_job = |pipeline: &Pipeline| pipeline.configuration.job_names().iter().any(|name| **name == *word);
        if let Some(pipeline) = self.pipeline.as_mut().filter(|pipeline| is_job(pipeline)) {
            pipeline.is_used = true;
            return {
                self.job_of_pipeline(word);
                Ok(())
            };
        }
        let is_file = word == "-" || Path::new(word).is_file();
        if let (Some(pipeline), false) = (&self.pipeline, is_file) {
            self.problems.push(unknown_job(pipeline, word));
            return Ok(());
        }
        self.end_of_pipeline();
        let given = if word == "-" { given::standard_input()? } else { given::file(Path::new(word))? };
        self.file(given)
    }

    fn file(&mut self, given: Given) -> Result<(), Stop> {
        match recognise(&given.text) {
            Recognised::GitlabPayload => self.payload(&given),
            Recognised::GitlabCi => {
                let configuration = pipeline::read(&given)?;
                self.pipeline = Some(Pipeline { name: given.name, configuration, is_used: false });
            }
            _ => self.problems.push(
                Complaint::new(format!("`{}` is neither a job payload of GitLab nor a `.gitlab-ci.yml`", given.name))
                    .with_hint("`step-runner run` runs run requests, definitions and steps"),
            ),
        }
        Ok(())
    }

    fn payload(&mut self, given: &Given) {
        match steps_of(&given.text, self.here, self.supplied) {
            Ok(translation) => self.add(given.name.clone(), translation),
            Err(problems) => {
                self.problems.extend(problems.iter().filter(|problem| problem.is_error()).map(|one| complaint(&given.name, one)))
            }
        }
    }

    fn job_of_pipeline(&mut self, name: &str) {
        let Some(pipeline) = &self.pipeline else { return };
        match pipeline.configuration.job(name, self.here, self.supplied) {
            Ok(translation) => self.add(name.to_owned(), translation),
            Err(files) => {
                let all =
                    files.iter().flat_map(|file| file.problems.iter().filter(|one| one.is_error()).map(|one| complaint(&file.file, one)));
                self.problems.extend(all);
            }
        }
    }

    fn add(&mut self, title: String, translation: Translation) {
        for part in translation.not_done.iter().filter(|part| part.refused) {
            self.problems.push(Complaint::new(format!("`{title}`: {}", part.what)).with_hint(&part.way_out));
        }
        if !translation.missing.is_empty() {
            let names = translation.missing.join("`, `");
            let hint = "`--job NAME=VALUE` gives one, `--job NAME` takes it from the environment";
            self.problems.push(Complaint::new(format!("`{title}`: these values are not in the payload: `{names}`")).with_hint(hint));
        }
        self.jobs.push(GivenJob { title, translation });
    }

    /// A `.gitlab-ci.yml` of which no job was named is a question.
    fn end_of_pipeline(&mut self) {
        let Some(pipeline) = self.pipeline.take().filter(|pipeline| !pipeline.is_used) else { return };
        self.problems.push(Complaint::new(format!("which job of `{}`?", pipeline.name)).with_hint(listed(&pipeline)));
    }
}

fn unknown_job(pipeline: &Pipeline, word: &str) -> Complaint {
    let names = pipeline.configuration.job_names();
    let near = nearest(word, names.iter().map(|name| &**name)).map(|near| format!("did you mean `{near}`?"));
    Complaint::new(format!("`{}` has no job `{word}`, and there is no such file", pipeline.name))
        .with_hint(near.unwrap_or_else(|| listed(pipeline)))
}

fn listed(pipeline: &Pipeline) -> String {
    let names = pipeline.configuration.job_names();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    if names.is_empty() { "it has no jobs".to_owned() } else { format!("its jobs are `{}`", names.join("`, `")) }
}

/// `job.json:3:5: what is wrong`
fn complaint(file: &str, problem: &Problem) -> Complaint {
    let place = problem.place.as_ref().map(|place| format!(":{}:{}", place.line, place.column)).unwrap_or_default();
    let complaint = Complaint::new(format!("{file}{place}: {}", problem.message));
    match &problem.hint {
        Some(hint) => complaint.with_hint(hint),
        None => complaint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workshop() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("ci.yml"), "build:\n  script: [make]\ntest:\n  script: [make test]\n").expect("written");
        std::fs::write(
            dir.path().join("job.json"),
            r#"{"id": 7, "token": "t", "job_info": {"name": "x"}, "steps": [{"name": "script", "script": ["true"]}]}"#,
        )
        .expect("written");
        std::fs::write(dir.path().join("list.yml"), "- a\n").expect("written");
        dir
    }

    fn titles(words: &[&str]) -> Result<Vec<String>, String> {
        let dir = workshop();
        let words: Vec<String> = words
            .iter()
            .map(|word| if word.contains('.') { dir.path().join(word).to_string_lossy().into_owned() } else { (*word).to_owned() })
            .collect();
        let place = dir.path().to_string_lossy().into_owned() + "/";
        let jobs = read(&words, &Here::default(), &BTreeMap::new());
        let jobs = jobs.map_err(|stop| {
            stop.problems
                .iter()
                .map(|problem| format!("{}\n {}", problem.message, problem.hints.join(" ")).replace(&place, ""))
                .collect::<Vec<_>>()
                .join("\n")
        })?;
        Ok(jobs.into_iter().map(|job| job.title.replace(&place, "")).collect())
    }

    #[test]
    fn payloads_and_jobs_of_a_pipeline_may_be_mixed() {
        assert_eq!(
            titles(&["job.json", "ci.yml", "build", "test", "job.json"]),
            Ok(["job.json", "build", "test", "job.json"].map(str::to_owned).to_vec())
        );
    }

    #[test]
    fn what_is_no_job_is_said_with_what_could_be_meant() {
        insta::assert_snapshot!(titles(&["ci.yml", "biuld"]).expect_err("no job"), @r"
        `ci.yml` has no job `biuld`, and there is no such file
         did you mean `build`?
        which job of `ci.yml`?
         its jobs are `build`, `test`
        ");
        insta::assert_snapshot!(titles(&["ci.yml"]).expect_err("no job"), @r"
        which job of `ci.yml`?
         its jobs are `build`, `test`
        ");
        insta::assert_snapshot!(titles(&["list.yml"]).expect_err("no job"), @r"
        `list.yml` is neither a job payload of GitLab nor a `.gitlab-ci.yml`
         `step-runner run` runs run requests, definitions and steps
        ");
    }
}
