//! The trace of a job: from what its agent wrote to what its server has.
//!
//! ```text
//!   agent's log -> framed (lines of each stream) -> sanitise (addresses, tokens) --.
//!   own messages -> stamp ---------------------------------------------------------+-> limit -> spool --> sending -> server
//! ```
//!
//! [`framed`], [`sanitise`], [`stamp`], [`limit`] and [`sending`] decide and are pure; [`spool`] keeps the bytes and [`deliver`] sends them.

pub mod deliver;
pub mod framed;
pub mod limit;
pub mod sanitise;
pub mod sending;
pub mod spool;
pub mod stamp;
