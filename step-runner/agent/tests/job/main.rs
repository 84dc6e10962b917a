//! Jobs with real processes.
#![cfg(unix)]

mod ending;
mod files;
mod output;
mod starting;
mod world;
