//! A plugin whose instances exist only in its memory, for tests of hosts. What it is to do wrong stands in its configuration.

use runner_fleeting::fake::FakeGroup;
use runner_fleeting::{About, serve};
use std::process::ExitCode;

fn main() -> ExitCode {
    serve(About::new("fleeting-plugin-fake", env!("CARGO_PKG_VERSION")), FakeGroup::default())
}
