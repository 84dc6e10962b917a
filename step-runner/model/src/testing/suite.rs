//! What a `step_test.yml` says: cases of one step, with what they are given and what they expect.

use crate::diagnostic::Place;
use crate::document::ValueTemplate;
use crate::expression::Template;
use crate::reference::StepReference;
use std::sync::Arc;
use std::time::Duration;

/// The cases of one file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Suite {
    /// The definition that is tested, relative to the file. `None`: the one beside it.
    pub step: Option<Placed<Arc<str>>>,
    /// In the order of the file; a table is as many cases as it has rows.
    pub cases: Vec<Case>,
    /// Mutants that no case needs to notice.
    pub tolerated: Vec<Tolerated>,
}

/// Something and where the file says it.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed<T> {
    pub it: T,
    pub place: Place,
}

/// A change of the definition that may go unnoticed.
#[derive(Debug, Clone, PartialEq)]
pub struct Tolerated {
    /// As `--mutate` names it: `drop step notify`.
    pub mutant: Placed<Arc<str>>,
    /// Why nobody needs to notice.
    pub reason: Arc<str>,
}

/// One run of the step.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    pub name: Arc<str>,
    /// Where it begins.
    pub place: Place,
    /// Why it is not run.
    pub skip: Option<Arc<str>>,
    pub inputs: Vec<Given<ValueTemplate>>,
    /// The environment of the job, over the clean one that every case gets.
    pub env: Vec<Given<Template>>,
    /// Job variables.
    pub variables: Vec<Given<Variable>>,
    /// Files that are there before the step begins, relative to the work directory.
    pub files: Vec<Given<Source>>,
    pub fakes: Vec<Fake>,
    pub stubs: Vec<Stub>,
    /// Nothing real runs: every step has a fake, every command a stub.
    pub hermetic: bool,
    /// `None`: the limit of the program.
    pub timeout: Option<Duration>,
    pub expect: Expectation,
}

/// A value by its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Given<T> {
    pub name: Arc<str>,
    pub value: T,
    /// Of the name.
    pub place: Place,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    pub value: Template,
    pub masked: bool,
    /// The variable holds the path of a file with the value.
    pub file: bool,
}

/// What is in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub content: Content,
    pub executable: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Text(Template),
    /// A copy of a file or directory beside the test.
    From(Arc<str>),
}

/// What stands for a real step.
#[derive(Debug, Clone, PartialEq)]
pub struct Fake {
    pub of: Target,
    /// As it is written.
    pub name: Arc<str>,
    pub place: Place,
    pub inputs: Option<Vec<Arc<str>>>,
    pub outputs: Vec<Given<ValueTemplate>>,
    pub exports: Vec<Given<Template>>,
    pub exit: i32,
    pub log: Option<Template>,
    pub files: Vec<Given<Source>>,
    /// It may be that the step is never reached.
    pub optional: bool,
}

/// Which steps a fake stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// The names on the way to one step: `build/link`.
    Step(Vec<Arc<str>>),
    /// Every step that refers to this.
    Reference(StepReference),
}

/// A program on PATH that records its calls and does nothing but answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Stub {
    pub name: Arc<str>,
    pub place: Place,
    /// At least one.
    pub answers: Vec<Answer>,
    pub optional: bool,
}

/// What a stub does when it is called. Those for the same arguments are given in turn, the last again and again; one without
/// arguments is for every call that no other is for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// The arguments that the call begins with.
    pub args: Vec<Arc<str>>,
    pub exit: i32,
    pub stdout: Option<Template>,
    pub stderr: Option<Template>,
    pub files: Vec<Given<Source>>,
}

/// What has to come out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expectation {
    /// How it ends. `None`: well, unless a failure is expected.
    pub exit: Option<Placed<i32>>,
    pub failure: Option<TextMatch>,
    pub outputs: Vec<Given<Expected>>,
    pub exports: Vec<Given<Expected>>,
    pub log: Option<TextMatch>,
    pub files: Vec<Given<FileMatch>>,
    pub steps: Vec<StepExpectation>,
    /// The calls of all stubs, in order, and no others.
    pub calls: Option<Placed<Calls>>,
    /// How often a stub was called, or a faked step reached.
    pub called: Vec<Given<u64>>,
    /// Expressions that are true.
    pub that: Vec<Placed<Arc<str>>>,
}

/// Each as its words, the name of the program first.
pub type Calls = Vec<Placed<Vec<Arc<str>>>>;

/// A value; of an output that is no struct, a map of conditions stands for what holds of its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    pub value: ValueTemplate,
    /// The map as conditions, where it is one.
    pub text: Option<TextMatch>,
    pub place: Place,
}

/// Conditions of a text; all hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TextMatch {
    pub conditions: Vec<Placed<TextCondition>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TextCondition {
    Equals(Template),
    Contains(Template),
    Excludes(Template),
    /// A regular expression that occurs somewhere in the text.
    Matches(Arc<str>),
    /// The file that holds the text, relative to the test.
    Golden(Arc<str>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum FileMatch {
    Absent,
    /// It is there, whatever it holds.
    Present,
    Text(TextMatch),
}

/// What is expected of a step inside the tested one.
#[derive(Debug, Clone, PartialEq)]
pub struct StepExpectation {
    /// The names on the way to it.
    pub path: Vec<Arc<str>>,
    pub place: Place,
    pub status: Option<Placed<StepStatus>>,
    pub exit: Option<Placed<i32>>,
    pub inputs: Vec<Given<Expected>>,
    pub outputs: Vec<Given<Expected>>,
    pub exports: Vec<Given<Expected>>,
    pub env: Vec<Given<Expected>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepStatus {
    Success,
    Failure,
    /// It never began.
    Skipped,
}

impl TextMatch {
    /// The files that hold expected texts.
    pub fn goldens(&self) -> impl Iterator<Item = Placed<&Arc<str>>> {
        self.conditions.iter().filter_map(|condition| match &condition.it {
            TextCondition::Golden(path) => Some(Placed { it: path, place: condition.place.clone() }),
            _ => None,
        })
    }
}

impl Expectation {
    /// Every condition of a text, with those of steps.
    pub fn texts(&self) -> impl Iterator<Item = &TextMatch> {
        let own = self.outputs.iter().chain(&self.exports);
        let of_steps = self.steps.iter().flat_map(|step| step.inputs.iter().chain(&step.outputs).chain(&step.exports).chain(&step.env));
        let of_files = self.files.iter().filter_map(|file| match &file.value {
            FileMatch::Text(text) => Some(text),
            FileMatch::Absent | FileMatch::Present => None,
        });
        let of_values = own.chain(of_steps).filter_map(|given| given.value.text.as_ref());
        self.failure.iter().chain(&self.log).chain(of_files).chain(of_values)
    }
}

impl StepStatus {
    pub const NAMES: [(&'static str, Self); 3] = [("success", Self::Success), ("failure", Self::Failure), ("skipped", Self::Skipped)];

    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Skipped => "skipped",
        }
    }
}
