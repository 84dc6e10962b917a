//! One binary for all tests of the whole: it is linked once. A part is run by its name: `./test architecture`.

#[cfg(unix)]
mod agent;
mod architecture;
mod contracts;
#[cfg(unix)]
mod fleeting;
mod fuzz;
#[cfg(unix)]
mod journey;
mod licences;
mod schemas;
mod sources;
