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

#[cfg(all(test, feature = "docker"))]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_of_the_builtin_steps_are_sound() {
        let builtins = all();
        assert_eq!(builtins.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["docker", "service"]);
    }
}
