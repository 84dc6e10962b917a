//! Prints the JSON Schemas of the files.

use crate::builtins;
use clap::ValueEnum as _;
use std::io::Write as _;
use step_console::exit::{Exit, Stop};
use step_model::document::{Dialect, schema};

#[derive(Debug, clap::Args)]
pub struct SchemaArguments {
    /// Which file. With several, or none for all: an object of the schemas by their names.
    #[arg(value_name = "FILE", value_enum)]
    files: Vec<File>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum File {
    /// A document of `func.yml`.
    Func,
    /// A document of `step.yml`.
    Step,
    /// The list behind `run:` of a job.
    JobRun,
    /// `step_test.yml`.
    StepTest,
}

/// # Errors
/// Standard output cannot be written.
pub fn run(arguments: &SchemaArguments) -> anyhow::Result<Exit> {
    let schema = match arguments.files.as_slice() {
        [file] => file.schema(),
        [] => by_name(File::value_variants()),
        files => by_name(files),
    };
    writeln!(std::io::stdout(), "{schema:#}").map_err(|error| Stop::new(Exit::Fault, format!("could not write the schema: {error}")))?;
    Ok(Exit::Done)
}

fn by_name(files: &[File]) -> serde_json::Value {
    files.iter().map(|file| (file.name(), file.schema())).collect::<serde_json::Map<_, _>>().into()
}

impl File {
    fn schema(self) -> serde_json::Value {
        let mut schema = match self {
            Self::Func => schema::definition_file(Dialect::Functions),
            Self::Step => schema::definition_file(Dialect::Steps),
            Self::JobRun => schema::job_run(),
            Self::StepTest => return step_model::testing::schema::step_test(),
        };
        schema::add_builtins(&mut schema, &builtins::all());
        schema
    }

    /// As it is typed.
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_schema_has_the_name_that_is_typed() {
        let all = by_name(File::value_variants());
        let ids: Vec<(&str, &str)> =
            all.as_object().unwrap().iter().map(|(name, schema)| (name.as_str(), schema["$id"].as_str().unwrap())).collect();
        let names = ["func", "job-run", "step", "step-test"];
        assert_eq!(ids, names.map(|name| (name, ["urn:step-runner:", name].concat())).each_ref().map(|(name, id)| (*name, id.as_str())));
    }
}
