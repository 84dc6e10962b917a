//! A fleeting plugin whose instances are agent processes on this machine.
//!
//! An instance is `step-runner serve DIR`, in a session of its own: neither the plugin's end nor its host's touches it. Its directory is all that is
//! known of it, and the lock in there, never a process number, says whether it lives:
//!
//! ```text
//! DIRECTORY/.group.lock        held while instances are made, looked at or removed: two plugins may have one group
//! DIRECTORY/i-XXXXXX/          an instance; its name is its id
//!     .step-runner.lock        held by the agent that serves here
//!     step-runner.sock         where it answers
//!     instance.log             what it says
//!     ending                   it is to go
//!     work/                    where jobs run that name no directory
//! DIRECTORY/.new-XXXXXX/       one that is being made; a leftover when nobody holds the lock
//! DIRECTORY/.gone-i-XXXXXX/    one that is being removed
//! ```
//!
//! An agent that has died is started again in its directory, and finds its jobs there: they have processes of their own and went on. Under systemd
//! each stands in a scope of its own.

#[cfg(unix)]
mod agent;
#[cfg(unix)]
mod directory;
#[cfg(unix)]
mod group;
#[cfg(unix)]
mod scope;
pub mod settings;

#[cfg(unix)]
pub use group::LocalGroup;

use runner_fleeting::About;

/// What the program says about itself.
pub const ABOUT: About = About::new("fleeting-plugin-local", env!("CARGO_PKG_VERSION"));
