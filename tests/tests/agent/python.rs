//! A client in another language, made from nothing but the published proto files.

use super::served::Served;
use ci_tests::program::Invocation;
use ci_tests::{repository, skipped};
use std::path::PathBuf;
use std::time::Duration;

#[test]
fn a_client_in_python_runs_follows_cancels_and_reads_results() {
    let Some(python) = std::env::var_os("PYTHON_CLIENT").map(PathBuf::from).filter(|python| python.is_file()) else {
        skipped::because("no Python with grpcio: `./test` makes one where python3, its venv module and PyPI are there");
        return;
    };
    let served = Served::with(&[]);
    let scratch = served.workshop.path("generated");
    std::fs::create_dir(&scratch).expect("a directory can be made");
    let (drive, proto) = (repository::root().join("tests/clients/python/drive.py"), repository::root().join("proto"));
    let arguments = [drive, served.socket(), proto, scratch];
    let driven = Invocation::of(&python, &arguments).limit(Duration::from_secs(180)).finish().exits(0);
    let seen = [
        "run and follow, from any byte",
        "status with the owner's record",
        "the result, whole and from any byte",
        "a failure with its exit code",
        "cancel while following, and the log ends",
        "close, and nothing is left",
        "reflection describes the services",
        "the health service says that it serves",
    ];
    assert_eq!(driven.stdout().lines().collect::<Vec<_>>(), seen);
}
