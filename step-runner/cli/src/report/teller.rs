//! One report of a run, from what is said before the first step to the end: for people or for programs.

use super::Surface;
use super::json::Lines;
use super::outline::Outline;
use super::text::Text;
use super::words::{self, WARNING};
use crate::complain;
use crate::run::plan_text::PlanOutline;
use crate::run::settings::{Settings, Talk};
use crate::run::signals::Asked;
use crate::run::typed::Output;
use std::io;
use std::time::Duration;
use step_agent::job_process::{Audience, Stream, Streams};
use step_console::exit::{Complaint, Exit};
use step_console::tree;
use step_engine::resolve::DocumentProblems;
use step_engine::run::Headline;
use step_engine::run::Kind;
use step_model::result::StepId;
use step_payload::NotDone;

/// Tells of a run.
#[derive(Debug)]
pub enum Teller<S> {
    Text(Box<Text<S>>),
    Json(Box<Lines<S>>),
}

/// How a job has ended.
#[derive(Debug)]
pub struct Ending<'a> {
    pub run: &'a dyn Outline,
    pub exit: Exit,
    /// The job is one step that nobody has named: its level is not shown. What it is called in messages.
    pub wrapped: Option<&'a str>,
    /// What the program says before why the job failed.
    pub before: &'static str,
    /// What went wrong after the last step: the log or a result could not be written to its end.
    pub faults: &'a [String],
    /// A way out of the failure that was known before the first step.
    pub way_out: Option<&'a str>,
}

impl Ending<'_> {
    fn took(&self) -> Option<Duration> {
        let root = self.run.headline(StepId::ROOT);
        root.start.zip(root.end).map(|(start, end)| end.since(start))
    }

    /// The job without the level that nobody wrote.
    fn top(&self) -> StepId {
        match self.run.children(StepId::ROOT)[..] {
            [only] if self.wrapped.is_some() => only,
            _ => StepId::ROOT,
        }
    }

    /// Why the job did not succeed, in the original's words, without the level that nobody wrote.
    fn message(&self) -> Option<&str> {
        let message = self.run.failure()?.message.as_str();
        let level = self.wrapped.map(|name| format!("step \"{name}\": "));
        Some(level.and_then(|level| message.strip_prefix(&level)).unwrap_or(message))
    }
}

impl<S: Surface> Teller<S> {
    pub fn new(settings: &Settings, surface: S, asked: Asked) -> Self {
        match settings.output {
            Output::Text => Self::Text(Box::new(Text::new(surface, settings.talk, asked))),
            Output::Json => Self::Json(Box::new(Lines::new(surface))),
        }
    }

    /// How the two streams of a step are to be read.
    pub fn streams(&self) -> Streams {
        match self {
            Self::Text(_) => Streams::Shared,
            Self::Json(_) => Streams::Separate,
        }
    }

    /// What stands for the one step without a name.
    pub fn set_title(&mut self, title: &str) {
        match self {
            Self::Text(text) => text.set_title(title),
            Self::Json(lines) => lines.set_title(title),
        }
    }

    /// Something about the job itself, before its first step or after its last.
    pub fn note(&mut self, message: &str, talk: Talk) {
        match self {
            Self::Text(text) if text.talk() >= talk => text.say(&format!("{message}\n")),
            Self::Text(_) => {}
            Self::Json(lines) => drop(lines.note(message, false)),
        }
    }

    pub fn warn(&mut self, message: &str) {
        match self {
            Self::Text(text) if text.talk() >= Talk::Normal => text.say(&format!("{WARNING}warning{WARNING:#}: {message}\n")),
            Self::Text(_) => {}
            Self::Json(lines) => drop(lines.note(message, true)),
        }
    }

    /// A part of the job that is not carried out here, with the way out: one line.
    pub fn not_done(&mut self, part: &NotDone) {
        match self {
            Self::Text(text) if text.talk() >= Talk::Normal => text.say(&words::not_done(part)),
            Self::Text(_) => {}
            Self::Json(lines) => drop(lines.not_done(part)),
        }
    }

    /// Problems of documents: errors always, warnings unless it is to be quiet.
    pub fn problems(&mut self, files: &[DocumentProblems]) {
        for file in files {
            for problem in &file.problems {
                match self {
                    Self::Text(text) if problem.is_error() || text.talk() >= Talk::Normal => {
                        text.say(&complain::shown(problem, &file.file, file.text.as_deref(), false));
                    }
                    Self::Text(_) => {}
                    Self::Json(lines) => drop(lines.problem(&file.file, problem)),
                }
            }
        }
    }

    /// The plan of `--dry-run`: what was asked for, so it goes to standard output.
    /// # Errors
    /// Standard output cannot be written.
    pub fn plan(&mut self, plan: &PlanOutline) -> io::Result<()> {
        match self {
            Self::Text(text) => text.print(&plan.to_string()),
            Self::Json(lines) => lines.plan(plan),
        }
    }

    /// Why the report could not be written to standard output, if it could not. That of people goes elsewhere.
    pub fn lost(&self) -> Option<&str> {
        match self {
            Self::Text(_) => None,
            Self::Json(lines) => lines.lost(),
        }
    }

    /// Whether whoever read standard output does so no longer: `| head` has seen enough.
    pub fn reader_left(&self) -> bool {
        match self {
            Self::Text(text) => text.reader_left(),
            Self::Json(lines) => lines.reader_left(),
        }
    }

    /// Why nothing ran. People are told by `main`.
    pub fn stopped(&mut self, problems: &[Complaint], exit: Exit) {
        if let Self::Json(lines) = self {
            for problem in problems {
                drop(lines.error(&problem.message, &problem.hints));
            }
            drop(lines.finished("not run", exit.code()));
        }
    }

    /// The last words: the tree of what ran, and what went wrong.
    pub fn end(&mut self, ending: &Ending<'_>) {
        match self {
            Self::Text(text) => Self::end_text(text, ending),
            Self::Json(lines) => {
                for fault in ending.faults {
                    drop(lines.error(fault, &[]));
                }
                let (run, exit) = (ending.run, ending.exit.code());
                drop(lines.ended_job(run.status(), run.failure(), run.failed_step(), exit, ending.took()));
            }
        }
    }

    fn end_text(text: &mut Text<S>, ending: &Ending<'_>) {
        let run = ending.run;
        let top = ending.top();
        if text.talk() >= Talk::Normal && run.children(top).len() > usize::from(top == StepId::ROOT) {
            text.say(&format!("\n{}", tree_of(run, top, ending.wrapped, text.title())));
        }
        if let Some(message) = ending.message() {
            let failure = run.failed_step().map(|step| text.failure_of(step).map_or_else(|| circumstances(run, step), str::to_owned));
            text.say(&words::failure(&format!("{}{message}", ending.before), failure.as_deref()));
            ending.way_out.into_iter().for_each(|hint| text.say(&words::hint(hint)));
        }
        for fault in ending.faults {
            text.say(&words::failure(fault, None));
        }
        // Whoever reads that the job succeeded must be able to rely on its log and its result.
        if text.talk() >= Talk::Normal && (ending.faults.is_empty() || run.failure().is_some()) {
            let usage = run.headline(StepId::ROOT).usage.filter(|_| text.talk() == Talk::Verbose);
            text.say(&words::job(run.status(), run.failure(), ending.took(), usage.as_ref()));
        }
    }
}

/// What is known about a step that failed elsewhere: nobody here saw its last lines but in the log.
fn circumstances(run: &dyn Outline, step: StepId) -> String {
    let headline = run.headline(step);
    let names = std::iter::successors(Some(headline.clone()), |headline| headline.parent.map(|parent| run.headline(parent)));
    let mut path: Vec<String> = names.map(|headline| headline.name.to_string()).filter(|name| !name.is_empty()).collect();
    path.reverse();
    if path.is_empty() { String::new() } else { words::circumstances(&path.join("/"), &headline, &[]) }
}

fn tree_of(run: &dyn Outline, top: StepId, wrapped: Option<&str>, title: &str) -> String {
    let line = |step: StepId| {
        let headline = run.headline(step);
        let mut line = line_of(&headline);
        if wrapped == Some(&*headline.name) && headline.parent == Some(StepId::ROOT) {
            line.name = title.to_owned();
        }
        line
    };
    let mut drawn = Vec::new();
    let outcome = tree::write(&mut drawn, top, &line, &|step| run.children(step));
    debug_assert!(outcome.is_ok(), "memory can be written to");
    String::from_utf8_lossy(&drawn).into_owned()
}

/// What the tree says about a step that runs or ran here.
fn line_of(headline: &Headline) -> tree::Line {
    let what = match headline.what {
        Kind::Exec => "exec",
        Kind::Sequence => "sequence",
        Kind::Script => "script",
        Kind::Unknown => "step",
    };
    let unnamed = if headline.parent.is_none() { "job" } else { what };
    tree::Line {
        name: if headline.name.is_empty() { unnamed.to_owned() } else { headline.name.to_string() },
        status: headline.status,
        failure: headline.failure.clone(),
        allowed_to_fail: headline.allowed_to_fail,
        duration: headline.start.zip(headline.end).map(|(start, end)| end.since(start)),
        details: tree::details(&headline.limits, headline.filtered.as_deref()),
    }
}

impl<S: Surface> Audience for Teller<S> {
    fn started(&mut self, step: StepId, headline: &Headline) {
        match self {
            Self::Text(text) => text.started(step, headline),
            Self::Json(lines) => lines.started(step, headline),
        }
    }

    fn output(&mut self, step: StepId, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Text(text) => text.output(step, stream, bytes),
            Self::Json(lines) => lines.output(step, stream, bytes),
        }
    }

    fn said(&mut self, step: StepId, line: &str, warning: bool) {
        match self {
            Self::Text(text) => text.said(step, line, warning),
            Self::Json(lines) => lines.said(step, line, warning),
        }
    }

    fn ended(&mut self, step: StepId, headline: &Headline, tail: &[u8]) {
        match self {
            Self::Text(text) => text.ended(step, headline, tail),
            Self::Json(lines) => lines.ended(step, headline, tail),
        }
    }

    fn tick(&mut self) {
        match self {
            Self::Text(text) => text.tick(),
            Self::Json(_) => {}
        }
    }
}
