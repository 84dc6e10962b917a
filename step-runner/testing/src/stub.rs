//! Stubs: which answer a call gets, the program that gives it where a real process calls, and what that program wrote down.

use crate::outcome::Call;
use std::sync::Arc;
use step_model::testing::suite::{Answer, Stub};

/// What a stub does, with its texts evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reply {
    pub exit: i32,
    pub stdout: String,
    pub stderr: String,
    /// Relative to where the stub is called.
    pub files: Vec<(Arc<str>, String)>,
}

/// A stub with its replies, one for each answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    pub name: Arc<str>,
    groups: Vec<Group>,
}

/// Answers for the same arguments, given in turn.
#[derive(Debug, Clone, PartialEq)]
struct Group {
    args: Vec<Arc<str>>,
    replies: Vec<Reply>,
}

impl Program {
    /// `replies`: of the stub's answers, in their order.
    pub fn new(stub: &Stub, replies: Vec<Reply>) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        for (Answer { args, .. }, reply) in stub.answers.iter().zip(replies) {
            match groups.iter_mut().find(|group| group.args == *args) {
                Some(group) => group.replies.push(reply),
                None => groups.push(Group { args: args.clone(), replies: vec![reply] }),
            }
        }
        // The one that says most about the arguments comes first.
        groups.sort_by_key(|group| std::cmp::Reverse(group.args.len()));
        Self { name: Arc::clone(&stub.name), groups }
    }

    /// The reply to a call that comes after `earlier` ones. `None`: no answer is for these arguments.
    pub fn reply(&self, args: &[Arc<str>], earlier: &[Call]) -> Option<&Reply> {
        let (_, group) = self.group(args)?;
        let is_alike = |call: &&Call| call.name == self.name && self.group(&call.args).is_some_and(|(_, other)| std::ptr::eq(other, group));
        let number = earlier.iter().filter(is_alike).count();
        group.replies.get(number.min(group.replies.len() - 1))
    }

    fn group(&self, args: &[Arc<str>]) -> Option<(usize, &Group)> {
        self.groups.iter().enumerate().find(|(_, group)| args.starts_with(&group.args))
    }

    /// How many calls of each group there have been: the program counts on from there.
    pub fn counts(&self, earlier: &[Call]) -> Vec<usize> {
        let mut counts = vec![0; self.groups.len()];
        for call in earlier.iter().filter(|call| call.name == self.name) {
            if let Some((index, _)) = self.group(&call.args) {
                counts[index] += 1;
            }
        }
        counts
    }

    /// A program for a shell that answers and writes down its calls in `record`. `counts`: see [`Program::counts`]. It starts no other program
    /// unless it has files to write.
    pub fn script(&self, record: &str, counts: &[usize]) -> String {
        let mut script = String::from("#!/bin/sh\n");
        script += &format!("printf '%s\\0' {} \"$PWD\" \"$#\" \"$@\" >>{}\n", quoted(&self.name), quoted(record));
        for (index, group) in self.groups.iter().enumerate() {
            let tests: Vec<String> =
                group.args.iter().enumerate().map(|(number, arg)| format!("[ \"${{{}-}}\" = {} ]", number + 1, quoted(arg))).collect();
            let number = format!("[ $# -ge {} ]", group.args.len());
            let condition = [vec![number], tests].concat().join(" && ");
            script += &format!("{} {condition}; then g={index}\n", if index == 0 { "if" } else { "elif" });
        }
        script +=
            &format!("else echo \"the stub {} has no answer for: $*\" >&2; exit 127; fi\n", self.name.replace(['"', '$', '`', '\\'], "_"));
        script += &format!(
            "case $g in\n{}esac\n",
            counts.iter().enumerate().map(|(index, count)| format!("{index}) n={};;\n", count + 1)).collect::<String>()
        );
        let state = quoted(&format!("{record}.{}.", self.name));
        script += &format!("while [ -e {state}\"$g.$n\" ]; do n=$((n+1)); done\n: >{state}\"$g.$n\"\ncase $g.$n in\n");
        for (index, group) in self.groups.iter().enumerate() {
            for (number, reply) in group.replies.iter().enumerate() {
                let is_last = number + 1 == group.replies.len();
                let pattern = if is_last { format!("{index}.*") } else { format!("{index}.{}", number + 1) };
                script += &format!("{pattern}) {};;\n", reply.commands());
            }
        }
        script + "esac\n"
    }
}

impl Reply {
    fn commands(&self) -> String {
        let mut commands = Vec::new();
        if !self.stdout.is_empty() {
            commands.push(format!("printf '%s' {}", quoted(&self.stdout)));
        }
        if !self.stderr.is_empty() {
            commands.push(format!("printf '%s' {} >&2", quoted(&self.stderr)));
        }
        for (path, content) in &self.files {
            if let Some((dir, _)) = path.rsplit_once('/') {
                commands.push(format!("command -p mkdir -p {}", quoted(dir)));
            }
            commands.push(format!("printf '%s' {} >{}", quoted(content), quoted(path)));
        }
        commands.push(format!("exit {}", self.exit));
        commands.join("; ")
    }
}

/// The calls that programs wrote down. What was torn off at the end is left out.
pub fn recorded(bytes: &[u8]) -> Vec<Call> {
    let mut fields = bytes.split(|byte| *byte == 0).map(|field| Arc::<str>::from(String::from_utf8_lossy(field)));
    let mut calls = Vec::new();
    while let (Some(name), Some(dir), Some(count)) = (fields.next(), fields.next(), fields.next()) {
        let Ok(count) = count.parse::<usize>() else { break };
        let args: Vec<Arc<str>> = fields.by_ref().take(count).collect();
        if args.len() < count {
            break;
        }
        calls.push(Call { name, args, dir });
    }
    calls
}

/// One word for a shell, whatever is in it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use step_model::diagnostic::Place;

    fn answer(args: &[&str], exit: i32) -> (Answer, Reply) {
        let args = args.iter().map(|arg| Arc::from(*arg)).collect();
        (Answer { args, exit, ..Answer::default() }, Reply { exit, stdout: format!("it's {exit}\n"), ..Reply::default() })
    }

    fn program(answers: Vec<(Answer, Reply)>) -> Program {
        let (answers, replies) = answers.into_iter().unzip();
        let place = Place { line: 1, column: 1, span: 0..0 };
        Program::new(&Stub { name: "docker".into(), place, answers, optional: false }, replies)
    }

    fn call(args: &[&str]) -> Call {
        Call { name: "docker".into(), args: args.iter().map(|arg| Arc::from(*arg)).collect(), dir: "/".into() }
    }

    #[test]
    fn answers_are_given_in_turn_to_those_who_call_alike() {
        let program = program(vec![answer(&[], 1), answer(&["push"], 2), answer(&["push"], 3), answer(&["push", "-f"], 4)]);
        let mut earlier = Vec::new();
        let mut exits = Vec::new();
        for args in [&["push", "a"][..], &["build"], &["push"], &["push", "-f"], &["push"], &["pull"]] {
            let call = call(args);
            exits.push(program.reply(&call.args, &earlier).map(|reply| reply.exit));
            earlier.push(call);
        }
        assert_eq!(exits, [Some(2), Some(1), Some(3), Some(4), Some(3), Some(1)]);
        assert_eq!(program.counts(&earlier), [1, 3, 2]);
    }

    #[test]
    fn a_call_that_no_answer_is_for_has_none() {
        let program = program(vec![answer(&["build"], 0)]);
        assert_eq!(program.reply(&call(&["push"]).args, &[]), None);
    }

    #[test]
    fn calls_are_read_as_they_were_written_down() {
        let written = b"docker\0/w\x002\0build\0a b\0docker\0/w\x000\0docker\0/w\x003\0torn";
        let calls = recorded(written);
        assert_eq!(calls.iter().map(|call| call.args.join("|")).collect::<Vec<_>>(), ["build|a b", ""]);
    }

    #[cfg(unix)]
    #[test]
    fn the_program_answers_as_is_said_without_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let record = dir.path().join("calls");
        let program = program(vec![answer(&[], 1), answer(&["push"], 2), answer(&["push"], 3)]);
        let path = dir.path().join("docker");
        std::fs::write(&path, program.script(record.to_str().unwrap(), &[0, 0])).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut earlier = Vec::new();
        for args in [&["push", "a 'b'"][..], &[], &["push"], &["push", ""], &["x\ny"]] {
            let output = std::process::Command::new("/bin/sh").arg(&path).args(args).output().unwrap();
            let expected = program.reply(&call(args).args, &earlier).unwrap();
            assert_eq!(
                (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()),
                (Some(expected.exit), expected.stdout.clone())
            );
            earlier.push(call(args));
        }
        let written = recorded(&std::fs::read(&record).unwrap());
        assert_eq!(
            written.iter().map(|call| call.args.clone()).collect::<Vec<_>>(),
            earlier.iter().map(|call| call.args.clone()).collect::<Vec<_>>()
        );
    }
}
