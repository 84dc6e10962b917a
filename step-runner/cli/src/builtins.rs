//! The steps that are compiled into this program.

use step_model::builtin::Builtins;

/// Each is this program again, with a word that says which step it is.
#[cfg(feature = "docker")]
pub fn all() -> Builtins {
    use step_model::builtin::Builtin;
    let program = std::env::current_exe().map_or_else(|_| "step-runner".into(), std::path::PathBuf::into_os_string);
    let builtin = |name: &str, definition: &str| Builtin {
        name: name.to_owned(),
        definition: definition.to_owned(),
        command: vec![program.to_string_lossy().into_owned(), name.to_owned()],
    };
    let steps = [builtin("docker", step_docker::DEFINITION), builtin("service", step_service::DEFINITION)];
    #[expect(clippy::expect_used, reason = "the definitions are our own, and a test reads them")]
    Builtins::new(steps).expect("the definitions of the builtin steps are sound")
}

/// None is, in this build.
#[cfg(not(feature = "docker"))]
pub fn all() -> Builtins {
    Builtins::default()
}

/// The names of those that can be carried out here.
pub fn names(no_containers: &Option<String>) -> Vec<String> {
    let are_there = |name: &str| no_containers.is_none() || !matches!(name, "docker" | "service");
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
    std::os::unix::net::UnixStream::connect(socket).err().map(|fault| crate::run::source::words(&fault))
}

#[cfg(not(unix))]
fn no_listener(_socket: &std::path::Path) -> Option<String> {
    Some("there are no such sockets on this system".to_owned())
}

#[cfg(all(test, feature = "docker"))]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_of_the_builtin_steps_are_sound() {
        let builtins = all();
        assert_eq!(builtins.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["docker", "service"]);
    }
}
