//! The steps that are compiled into this program.

use step_model::builtin::Builtins;

/// Containers are this program again, with a word that says which step it is; checkout, cache and artifact are another one that lies beside it.
#[cfg(any(feature = "docker", feature = "steps"))]
pub fn all() -> Builtins {
    use step_model::builtin::Builtin;
    let builtin = |program: &std::path::Path, name: &str, definition: &str| Builtin {
        name: name.to_owned(),
        definition: definition.to_owned(),
        command: vec![program.to_string_lossy().into_owned(), name.to_owned()],
    };
    let mut steps = Vec::new();
    #[cfg(feature = "docker")]
    {
        let program = std::env::current_exe().unwrap_or_else(|_| "step-runner".into());
        steps.push(builtin(&program, "docker", step_docker::DEFINITION));
        steps.push(builtin(&program, "service", step_service::DEFINITION));
    }
    #[cfg(feature = "steps")]
    {
        let program = steps_program();
        steps.push(builtin(&program, "artifact", step_artifact::DEFINITION));
        steps.push(builtin(&program, "cache", step_cache::DEFINITION));
        steps.push(builtin(&program, "checkout", step_checkout::DEFINITION));
    }
    #[expect(clippy::expect_used, reason = "the definitions are our own, and a test reads them")]
    Builtins::new(steps).expect("the definitions of the builtin steps are sound")
}

/// None is, in this build.
#[cfg(not(any(feature = "docker", feature = "steps")))]
pub fn all() -> Builtins {
    Builtins::default()
}

/// The program of checkout, cache and artifact: beside this one, unless `STEP_RUNNER_STEPS` names another.
pub fn steps_program() -> std::path::PathBuf {
    if let Some(named) = std::env::var_os("STEP_RUNNER_STEPS").filter(|value| !value.is_empty()) {
        return named.into();
    }
    let name = format!("step-runner-steps{}", std::env::consts::EXE_SUFFIX);
    let beside = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join(&name)));
    beside.unwrap_or_else(|| name.into())
}

/// The names of those that can be carried out here. `wanted`: those that a laptop takes only when it is told to, since they change its files.
pub fn names(no_containers: &Option<String>, wanted: &[&str]) -> Vec<String> {
    let are_there = |name: &str| match name {
        "docker" | "service" => no_containers.is_none(),
        other => wanted.contains(&other),
    };
    all().iter().map(|(name, _)| name.to_owned()).filter(|name| are_there(name)).collect()
}

/// Why there are no containers here, if so: nobody listens where the engine should be. One that is not on this machine is believed in until it is asked.
pub fn no_containers(env: &std::collections::BTreeMap<String, String>) -> Option<String> {
    if cfg!(not(feature = "docker")) {
        return Some("this build has no containers".to_owned());
    }
    let host = env.get("DOCKER_HOST").map_or("unix:///var/run/docker.sock", String::as_str);
    let host = if host.is_empty() { "unix:///var/run/docker.sock" } else { host };
    let socket = host.strip_prefix("unix://")?;
    no_listener(std::path::Path::new(socket)).map(|why| format!("no container engine answers at {socket}: {why}"))
}

#[cfg(unix)]
fn no_listener(socket: &std::path::Path) -> Option<String> {
    std::os::unix::net::UnixStream::connect(socket).err().map(|fault| step_console::given::words(&fault))
}

#[cfg(not(unix))]
fn no_listener(_socket: &std::path::Path) -> Option<String> {
    Some("there are no such sockets on this system".to_owned())
}

#[cfg(all(test, feature = "docker", feature = "steps"))]
mod tests {
    use super::*;

    #[test]
    fn a_laptop_has_its_files_changed_only_when_it_is_told_to() {
        assert_eq!(names(&Some("none".into()), &[]), Vec::<String>::new());
        assert_eq!(names(&None, &["checkout"]), ["checkout", "docker", "service"]);
    }

    #[test]
    fn the_definitions_of_the_builtin_steps_are_sound() {
        let builtins = all();
        assert_eq!(builtins.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["artifact", "cache", "checkout", "docker", "service"]);
    }
}
