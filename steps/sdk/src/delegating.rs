//! The `main` of a step that takes steps.

use crate::{Cancellation, DelegatedResult, Failure, Step, say};
use std::future::Future;
use std::process::ExitCode;

/// Runs the step to its end: gives back what `run` gives, or its failure as a result, and ends with the exit code that belongs to it.
pub fn delegating<F>(run: impl FnOnce(Step, Cancellation) -> F) -> ExitCode
where
    F: Future<Output = Result<DelegatedResult, Failure>>,
{
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let built = built.map_err(|error| Failure::internal(format!("could not start: {error}")));
    match built.and_then(|runtime| runtime.block_on(to_the_end(run))) {
        Ok(code) => code,
        Err(failure) => crate::end(Err(failure)),
    }
}

async fn to_the_end<F>(run: impl FnOnce(Step, Cancellation) -> F) -> Result<ExitCode, Failure>
where
    F: Future<Output = Result<DelegatedResult, Failure>>,
{
    let step = Step::from_environment();
    let cancellation = Cancellation::of_signals();
    let cancellation = cancellation.map_err(|error| Failure::internal(format!("could not listen to signals: {error}")))?;
    let (result, code) = match run(step.clone(), cancellation).await {
        // What failed inside has said so in the log.
        Ok(result) => {
            let code = u8::from(!result.has_succeeded());
            (result, code)
        }
        Err(failure) => {
            say(&failure.to_string());
            (DelegatedResult::failed(&failure), failure.exit_code())
        }
    };
    step.give_back(&result)?;
    Ok(code.into())
}
