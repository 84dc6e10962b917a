//! Events per second with 10,000 jobs in flight, beside their floor: the same events moved through a queue and an ordered map without a decision, in the same run.
//! And what must not grow with the number of jobs: time per event.
//!
//! `cargo bench -p runner-control --bench events`

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark reads the clock and prints; the crate does neither"
)]

use runner_control::effect::{Ask, Effect};
use runner_control::event::{Acknowledgement, Event, FollowEnd, Granted, InstanceState, Offer, PollAnswer, ReportAnswer};
use runner_control::id::{EffectId, Generation, InstanceName, JobId, RunnerId};
use runner_control::record::Requirements;
use runner_control::report::Outcome;
use runner_control::settings::{Environments, RunnerSettings, Settings, Shape};
use runner_control::{Controller, Seed};
use std::collections::{BTreeMap, VecDeque};
use std::hint::black_box;
use std::time::{Duration, Instant};
use step_model::time::{Now, Timestamp};

/// Each measured often, and the best taken: the machine has other things to do.
const ROUNDS: usize = 7;
const IN_FLIGHT: u32 = 10_000;
const JOBS: u64 = 20_000;
const EVENTS_GOAL: f64 = 100_000.0;
const GROWTH_GOAL: f64 = 2.0;

fn main() {
    let floor = best(|| floor_of(IN_FLIGHT));
    let many = best(|| driven(IN_FLIGHT));
    let few = best(|| driven(IN_FLIGHT / 10));
    let per_second = 1.0 / many;
    let figures = (format!("{per_second:.0}/s"), format!("{:.0}/s", 1.0 / floor));
    line("events with 10000 jobs in flight", &figures, many / floor, "at least 100000/s", per_second >= EVENTS_GOAL);
    let figures = (format!("{:.2} µs", many * 1e6), format!("{:.2} µs", few * 1e6));
    line("an event with 10000 jobs in flight against one with 1000", &figures, many / few, "at most 2.0", many / few <= GROWTH_GOAL);
}

/// A line of the table of `./bench`; `|` separates its columns.
fn line(name: &str, (figure, floor): &(String, String), ratio: f64, goal: &str, is_met: bool) {
    println!("bench: {name} | {figure} | {floor} | {ratio:.2} | {goal} | {}", if is_met { "met" } else { "MISSED" });
}

/// Seconds per event.
fn best(work: impl Fn() -> (Duration, u64)) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let (time, events) = work();
        time.as_secs_f64() / events as f64
    });
    rounds.fold(f64::INFINITY, f64::min)
}

fn now() -> Now {
    Now { monotonic: Duration::ZERO, wall: Timestamp::default() }
}

fn settings(in_flight: u32) -> Settings {
    let environments = Environments { capacity_per_instance: 10, ..Environments::new(Shape::Group, in_flight / 10) };
    let runner = RunnerSettings { request_concurrency: 50, is_adaptive: false, ..RunnerSettings::new("a", environments) };
    Settings { concurrent: in_flight + 50, runners: [(RunnerId::new("gitlab.example/1"), runner)].into(), ..Settings::default() }
}

/// The whole of what a world would answer: jobs come without end, and the oldest ends when as many as may run do. Only that steady state is measured.
fn driven(in_flight: u32) -> (Duration, u64) {
    let (mut controller, effects) = Controller::start(settings(in_flight), Vec::new(), Generation(1), Seed(1), now());
    let mut open = VecDeque::from(effects);
    let mut running: VecDeque<(EffectId, JobId)> = VecDeque::new();
    let (mut offered, mut ended, mut events, mut granted) = (0, 0, 0, 0);
    let mut start = None;
    while ended < JOBS {
        let event = match open.pop_front() {
            Some(Effect::Follow { id, job, .. }) => {
                running.push_back((id, job));
                continue;
            }
            Some(effect) => match answer(effect, &mut offered, &mut granted) {
                Some(event) => event,
                None => continue,
            },
            // Everything is quiet: as many jobs run as may.
            None => {
                start.get_or_insert_with(Instant::now);
                let Some((id, job)) = running.pop_front() else { break };
                ended += 1;
                Event::Followed { id, job, end: FollowEnd::Ended(Outcome::Success) }
            }
        };
        events += u64::from(start.is_some());
        open.extend(controller.on(event, now()));
    }
    let time = start.map_or(Duration::ZERO, |start| start.elapsed());
    black_box(&controller);
    (time, events)
}

fn answer(effect: Effect, offered: &mut u64, granted: &mut u32) -> Option<Event> {
    Some(match effect {
        Effect::Take { id, runner, .. } => {
            *offered += 1;
            let offer = Offer { number: *offered, timeout: Duration::from_secs(3600), requirements: Requirements::default(), fault: None };
            Event::Polled { id, runner, answer: PollAnswer::Job(Box::new(offer)), was_retried: false }
        }
        Effect::Save { id, record } => Event::Saved { id, job: record.job, outcome: Ok(()) },
        Effect::Accept { id, job } => Event::Accepted { id, job, answer: Acknowledgement::Good },
        Effect::Increase { id, runner, ask: Ask::Count(count) } => {
            *granted += count;
            Event::Increased { id, runner, outcome: Ok(Granted::Count(count)) }
        }
        Effect::Update { id, runner } => {
            let listed = (0..*granted).map(|number| (InstanceName::new(&format!("i-{number}")), InstanceState::Running)).collect();
            Event::Updated { id, runner, outcome: Ok(listed) }
        }
        Effect::Connect { id, instance, .. } => Event::Connected { id, instance, outcome: Ok(Vec::new()) },
        Effect::Dispatch { id, job, .. } => Event::Dispatched { id, job, outcome: Ok(()) },
        Effect::Close { id, job, .. } => Event::Closed { id, job, outcome: Ok(()) },
        Effect::Report { id, job, .. } => Event::Reported { id, job, answer: ReportAnswer::Delivered },
        _ => return None,
    })
}

/// As many jobs in an ordered map, and for each that ends the nine events that one has, moved through a queue: what no controller can save.
fn floor_of(in_flight: u32) -> (Duration, u64) {
    let runner = RunnerId::new("gitlab.example/1");
    let mut jobs: BTreeMap<JobId, [u64; 64]> = (0..u64::from(in_flight)).map(|number| (JobId::new(&runner, number), [0; 64])).collect();
    let mut queue = VecDeque::new();
    let mut events = 0;
    let start = Instant::now();
    for number in 0..JOBS {
        let job = JobId::new(&runner, number);
        for id in 0..9 {
            queue.push_back(Event::Saved { id: EffectId(id), job: job.clone(), outcome: Ok(()) });
        }
        while let Some(event) = queue.pop_front() {
            if let Event::Saved { id, job, .. } = &event
                && let Some(known) = jobs.get_mut(job)
            {
                known[0] = id.0;
            }
            black_box(event);
            events += 1;
        }
        jobs.remove(&job);
        jobs.insert(JobId::new(&runner, number + u64::from(in_flight)), [0; 64]);
    }
    (start.elapsed(), events)
}
