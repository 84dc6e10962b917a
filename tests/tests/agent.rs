//! The agent as its callers see it: the real program, over a real socket, by the published contract.

mod calls;
mod client;
mod gitlabs_runner;
mod lives;
mod python;
mod served;
mod ways;
