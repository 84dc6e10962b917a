//! The program as it is called: what it prints where, with which exit code, and what it leaves behind.
#![cfg(unix)]

#[path = "program/bench.rs"]
mod bench;
#[path = "program/cases.rs"]
mod cases;
#[path = "program/ci.rs"]
mod ci;
#[path = "program/command_line.rs"]
mod command_line;
#[path = "program/report.rs"]
mod report;
#[path = "program/taken.rs"]
mod taken;
#[path = "program/terminal.rs"]
mod terminal;
