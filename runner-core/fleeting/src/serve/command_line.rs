//! What a plugin is asked on its command line, as programs on the Go library answer it (observed F.3.4).

use super::About;

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    Serve,
    Say { out: String, err: String, code: u8 },
}

/// The first argument is the program's name.
pub fn read(arguments: &[String], about: &About) -> Typed {
    let name = arguments.first().map_or(about.name, String::as_str);
    let say = |out: String, err: String, code| Typed::Say { out, err, code };
    match arguments.get(1).map(String::as_str) {
        Some("version" | "-version" | "--version") => say(version(about, name), String::new(), 0),
        Some("-h" | "-help" | "--help") => say(String::new(), usage(name), 0),
        Some(flag) if flag.starts_with('-') => {
            say(String::new(), format!("flag provided but not defined: -{}\n{}", flag.trim_start_matches('-'), usage(name)), 2)
        }
        _ => Typed::Serve,
    }
}

fn usage(name: &str) -> String {
    format!("Usage of {name}:\n  -version\n    \tShow version information and exit\n")
}

fn version(about: &About, program: &str) -> String {
    let About { name, version, revision, reference, built_at } = about;
    let (os, arch) = platform();
    let name = if name.is_empty() { program } else { name };
    format!(
        "Name:         {name}\nVersion:      {version}\nGit revision: {revision}\nGit ref:      {reference}\nGO version:   none, built with Rust\n\
         Built:        {built_at}\nOS/Arch:      {os}/{arch}\n\n"
    )
}

/// As Go names them.
pub fn platform() -> (&'static str, &'static str) {
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    };
    (os, arch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(arguments: &[&str]) -> Typed {
        let arguments: Vec<String> = ["/p/x"].iter().chain(arguments).map(|&text| text.to_owned()).collect();
        read(&arguments, &About::new("fleeting-plugin-x", "1.2.3"))
    }

    #[test]
    fn fls_02_the_version_is_told_in_three_spellings_whatever_else_is_typed() {
        for spelling in ["version", "-version", "--version"] {
            let Typed::Say { out, err, code: 0 } = typed(&[spelling, "more"]) else { panic!("{spelling} serves") };
            assert!(out.starts_with("Name:         fleeting-plugin-x\nVersion:      1.2.3\nGit revision: "), "{out}");
            assert_eq!((out.lines().count(), err.as_str()), (8, ""), "seven lines and an empty one");
        }
    }

    #[test]
    fn an_unknown_flag_is_refused_and_an_unknown_word_is_not_looked_at() {
        let Typed::Say { err, code, .. } = typed(&["--foo"]) else { panic!("it serves") };
        assert_eq!((err.lines().next(), code), (Some("flag provided but not defined: -foo"), 2));
        assert_eq!((typed(&[]), typed(&["foo"])), (Typed::Serve, Typed::Serve));
    }
}
