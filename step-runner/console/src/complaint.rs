//! An error as a person reads it: what, why, and the way out.

use crate::exit::{Exit, Stop};
use std::io::Write as _;
use std::process::ExitCode;

/// The end of `main`: says on standard error what is wrong, and gives the exit code.
pub fn ended(outcome: anyhow::Result<Exit>) -> ExitCode {
    match outcome {
        Ok(exit) => exit.into(),
        Err(error) => {
            let _ = write!(anstream::stderr(), "{}", shown(&error));
            error.downcast_ref::<Stop>().map_or(Exit::Fault, |stop| stop.exit).into()
        }
    }
}

/// The error with colours, one line for each problem and hint. What was typed may be a part of it, and a terminal obeys none of it.
pub fn shown(error: &anyhow::Error) -> String {
    let red = anstyle::AnsiColor::Red.on_default().bold();
    let Some(stop) = error.downcast_ref::<Stop>() else {
        return format!("{red}error{red:#}: {}\n", plain(&format!("{error:#}")));
    };
    let mut text = String::new();
    for problem in &stop.problems {
        text.push_str(&format!("{red}error{red:#}: {}\n", plain(&problem.message)));
        for hint in &problem.hints {
            text.push_str(&format!(" hint: {}\n", plain(hint)));
        }
    }
    text
}

/// The same text on one line and without anything that a terminal would obey.
pub fn plain(text: &str) -> String {
    if text.chars().any(char::is_control) {
        text.chars().map(|letter| if letter.is_control() { letter.escape_debug().to_string() } else { letter.to_string() }).collect()
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_colours(error: impl Into<anyhow::Error>) -> String {
        anstream::adapter::strip_str(&shown(&error.into())).to_string()
    }

    #[test]
    fn every_problem_has_a_line_and_its_hints_below() {
        let problems = vec![
            crate::exit::Complaint::new("no `a`").with_hint("write one").with_hint("or two"),
            crate::exit::Complaint::new("no `b\u{1b}[2J`"),
        ];
        insta::assert_snapshot!(without_colours(Stop::all(Exit::BadInput, problems)), @r"
        error: no `a`
         hint: write one
         hint: or two
        error: no `b\u{1b}[2J`
        ");
    }

    #[test]
    fn a_fault_of_ours_is_told_with_its_causes() {
        let fault = anyhow::anyhow!("no space left on device").context("could not write the state");
        assert_eq!(without_colours(fault), "error: could not write the state: no space left on device\n");
    }
}
