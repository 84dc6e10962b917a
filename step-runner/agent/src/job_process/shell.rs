//! The shell that runs scripts, and the text it gets.
//!
//! Source: original.md F.5; for the scripts of a GitLab job the script that GitLab Runner generates (`shells/bash.go`).

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;
use step_engine::effect::Script;
use step_model::document::ScriptLegacy;
use step_model::value::Value;

/// Linux takes no argument of 128 KiB or more, whatever the rest (`MAX_ARG_STRLEN`); other systems have only a limit on all together.
pub const LONGEST_ARGUMENT: usize = 128 * 1024;

/// The variable that names the file in which the scripts of a GitLab job leave variables for the scripts after them, and the file's name.
pub const GITLAB_ENV: (&str, &str) = ("GITLAB_ENV", "gitlab_runner_env");

/// As GitLab Runner reads it before each script: a line is `NAME=value`, and one that is none ends the script.
const READ_GITLAB_ENV: &str = "if [ -r \"${GITLAB_ENV:-}\" ]; then while IFS= read -r gitlab_env_line || [ -n \"$gitlab_env_line\" ]; do \
    [ -z \"$gitlab_env_line\" ] || export \"$gitlab_env_line\"; done <\"$GITLAB_ENV\"; unset gitlab_env_line; fi\n";

const SHELLS: [(&str, bool); 6] = [
    ("/usr/local/bin/bash", true),
    ("/usr/bin/bash", true),
    ("/bin/bash", true),
    ("/usr/local/bin/sh", false),
    ("/usr/bin/sh", false),
    ("/bin/sh", false),
];

/// A shell of this machine.
#[derive(Debug, Clone, Copy)]
pub struct Shell {
    pub path: &'static Path,
    is_bash: bool,
}

/// bash, else sh; looked for each time, since a step may install one.
pub fn find() -> Option<Shell> {
    let (path, is_bash) = SHELLS.into_iter().find(|(path, _)| crate::system::is_program(Path::new(path)))?;
    Some(Shell { path: Path::new(path), is_bash })
}

/// Reads a file into the shell that runs, so that `$0` and the options are those of a `-c` text.
pub fn source(file: &Path) -> String {
    format!(". {}", quoted(&file.to_string_lossy()))
}

impl Shell {
    /// The one argument of `-c`.
    pub fn text_of(self, script: &Script) -> Cow<'_, str> {
        match script {
            Script::Text(text) => Value::as_str(text).map_or_else(|| text.to_json().to_string().into(), Cow::Borrowed),
            Script::Legacy(script) => self.legacy_text(script).into(),
        }
    }

    /// One shell runs all entries and stops at the first that fails.
    fn legacy_text(self, script: &ScriptLegacy) -> String {
        // `command` keeps a shell that does not know pipefail from ending here.
        let options = if self.is_bash { "set -eo pipefail\n" } else { "set -e\ncommand set -o pipefail 2>/dev/null || :\n" };
        let mut text = [options, READ_GITLAB_ENV].concat();
        if script.debug_trace {
            text.push_str("set -o xtrace\n");
        }
        for entry in &script.lines {
            let entry = entry.trim();
            if entry.is_empty() {
                text.push_str("echo\n");
                continue;
            }
            if script.echo {
                let shown = match entry.split_once('\n') {
                    None => format!("$ {entry}"),
                    Some((first, _)) => format!("$ {} # collapsed multi-line command", first.trim_end_matches('\r')),
                };
                let _ = writeln!(text, "printf '%s\\n' {}", quoted(&shown));
            }
            text.push_str(entry);
            text.push('\n');
        }
        text
    }
}

/// One word for a shell, whatever is in it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legacy(is_bash: bool, lines: &[&str], echo: bool) -> String {
        let script = ScriptLegacy { lines: lines.iter().map(|line| (*line).into()).collect(), echo, ..ScriptLegacy::default() };
        Shell { path: Path::new("/bin/sh"), is_bash }.legacy_text(&script)
    }

    #[test]
    fn entries_are_shown_before_they_run() {
        let text = legacy(true, &["make", "echo 'a'\necho b"], true);
        let expected = "set -eo pipefail\nREAD\nprintf '%s\\n' '$ make'\nmake\n\
            printf '%s\\n' '$ echo '\\''a'\\'' # collapsed multi-line command'\necho 'a'\necho b\n";
        assert_eq!(text.replace(READ_GITLAB_ENV, "READ\n"), expected);
    }

    #[test]
    fn sh_gets_pipefail_only_where_it_knows_it() {
        let text = legacy(false, &["true"], false);
        assert_eq!(text, ["set -e\ncommand set -o pipefail 2>/dev/null || :\n", READ_GITLAB_ENV, "true\n"].concat());
    }

    #[test]
    fn a_path_with_quotes_is_one_word() {
        assert_eq!(source(Path::new("/tmp/it's")), r". '/tmp/it'\''s'");
    }
}
