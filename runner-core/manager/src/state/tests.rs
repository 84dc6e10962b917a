//! The state of a manager: what is written is there for the next one, and only for one at a time.

use super::*;

fn keys(kept: &[Kept]) -> Vec<&str> {
    kept.iter().map(|kept| kept.key.as_str()).collect()
}

/// The thread that writes ends after its last client; the next one waits for the lock.
fn open_again(directory: &Path) -> Opened {
    loop {
        match State::open(directory) {
            Err(StateFault::InUse { .. }) => std::thread::yield_now(),
            opened => return opened.expect("opened"),
        }
    }
}

#[tokio::test]
async fn what_was_put_is_there_for_the_next_manager_and_what_was_removed_is_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let Opened { state, kept, generation } = State::open(directory.path()).expect("opened");
    assert_eq!(kept, []);
    for key in ["a/1", "a/2", "b/1"] {
        state.put(key.to_owned(), key.as_bytes().to_vec()).await.expect("written");
    }
    state.put("a/2".to_owned(), b"changed".to_vec()).await.expect("written");
    state.remove("a/1".to_owned()).await.expect("removed");
    state.remove("never".to_owned()).await.expect("nothing to remove");
    drop(state);
    let Opened { kept, generation: next, .. } = open_again(directory.path());
    assert!(next > generation, "{next:?} after {generation:?}");
    assert_eq!(keys(&kept), ["a/2", "b/1"]);
    assert_eq!(kept[0].sealed, b"changed");
}

#[tokio::test]
async fn two_managers_do_not_share_a_state() {
    let directory = tempfile::tempdir().expect("a directory");
    let _opened = State::open(directory.path()).expect("opened");
    let refused = State::open(directory.path()).expect_err("in use");
    assert!(matches!(refused, StateFault::InUse { .. }), "{refused}");
}

#[test]
fn a_state_that_is_damaged_or_of_the_future_is_said_with_the_way_out() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("runner-core.db"), "this is no database, though it is long enough to look like one ".repeat(90))
        .expect("written");
    let damaged = State::open(directory.path()).expect_err("damaged");
    assert!(matches!(damaged, StateFault::Database { .. }) && damaged.hint().is_some(), "{damaged}");

    let directory = tempfile::tempdir().expect("a directory");
    let newer = Connection::open(directory.path().join("runner-core.db")).expect("a database");
    newer.pragma_update(None, "user_version", 7).expect("set");
    drop(newer);
    assert!(matches!(State::open(directory.path()), Err(StateFault::Newer { format: 7, .. })));
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_may_read_the_state() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("state");
    let state = State::open(&place).expect("opened").state;
    state.put("a/1".to_owned(), vec![1]).await.expect("written");
    let modes = std::fs::read_dir(&place)
        .expect("listed")
        .map(|entry| entry.expect("an entry").metadata().expect("its data").permissions().mode() & 0o777);
    assert_eq!(modes.collect::<std::collections::BTreeSet<_>>(), [0o600].into());
    assert_eq!(std::fs::metadata(&place).expect("its data").permissions().mode() & 0o777, 0o700);
}
