//! The agent as its callers see it: the real program, over a real socket, by the published contract.

mod calls;
mod cases;
mod client;
mod deaths;
mod faults;
mod gitlabs_runner;
mod lives;
mod loads;
mod python;
mod served;
mod ways;
