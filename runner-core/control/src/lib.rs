//! Decides which job runs where and when: offered, claimed, placed, connected, dispatched, followed, reported. Pure.
