//! The program of the plugin. The group itself is the library, which others have in their own process.

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    runner_fleeting::serve(fleeting_plugin_local::ABOUT, fleeting_plugin_local::LocalGroup::default())
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    eprintln!("fleeting-plugin-local: agents do not serve on this system yet");
    ExitCode::FAILURE
}
