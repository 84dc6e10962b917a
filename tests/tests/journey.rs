//! The real program, real processes: what a person does, and what goes wrong for one.

mod bad_input;
mod caches;
mod checkouts;
mod containers;
mod documents;
mod editor;
mod endings;
mod engines;
mod first_page;
mod limits;
mod output;
mod page;
mod payloads;
mod processes;
mod remote;
mod runner_configuration;
mod runner_deaths;
mod runner_jobs;
mod runner_results;
mod runner_run;
mod runner_try;
mod secrets;
mod services;
mod static_agent;
mod telemetry;
mod testing;
