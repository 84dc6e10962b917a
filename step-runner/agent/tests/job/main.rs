//! Jobs with real processes.
#![cfg(unix)]

mod ending;
mod files;
mod output;
mod programs;
mod records;
mod starting;
mod world;
