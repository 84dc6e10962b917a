//! The taskscaler without machines: a test laboratory keeps phones charged on desks for test runs that come and go, and nobody here boots anything.
//!
//! `cargo run -p runner-control --example desks`

#![expect(clippy::disallowed_macros, reason = "an example prints what happens")]

use runner_control::taskscaler::policy::{Policy, ScaleThrottle, Scaling, SlotScaling};
use runner_control::taskscaler::{Effect, Event, Owner, Settings, Taskscaler};
use std::collections::VecDeque;
use std::time::Duration;
use step_model::time::{Now, Timestamp};

type Run = &'static str;

fn main() {
    // One phone is always charged; one that nobody needs goes back into the drawer after two minutes; a desk holds two test runs.
    let policy = Policy { idle_count: 1, idle_time: Duration::from_secs(120), ..Policy::on_demand() };
    let scaling = Scaling::Slots(SlotScaling { policies: vec![policy], throttle: ScaleThrottle::Unlimited, reservation_throttling: true });
    let settings = Settings { capacity_per_instance: 2, ..Settings::new(scaling, 4) };
    let (mut desks, first) = Taskscaler::<u32, Run>::start(settings, at(0));
    let (mut effects, mut made) = (VecDeque::from(first), 0);
    // What happens in the laboratory, by the second.
    let test_run = |task| Event::Wanted { task, owner: Owner(0), priority: 0 };
    let day = [(1, Event::Woken), (10, test_run("camera")), (11, test_run("radio")), (12, test_run("battery"))];
    let evening = ["camera", "radio", "battery"].map(|task| (60, Event::Released { task }));
    for (second, event) in day.into_iter().chain(evening).chain([(200, Event::Woken), (400, Event::Woken)]) {
        // The machine never waits and never looks at a clock: whoever drives it wakes it when it is due.
        while let Some(due) = desks.next_deadline().filter(|due| due.has_passed(at(second))) {
            let moment = Now { monotonic: at(second).monotonic - due.remaining(at(second)), ..at(second) };
            effects.extend(desks.on(Event::Woken, moment));
            carry_out(&mut desks, &mut effects, &mut made, second);
        }
        effects.extend(desks.on(event, at(second)));
        carry_out(&mut desks, &mut effects, &mut made, second);
    }
    assert_eq!(desks.figures().instances, 1, "one phone stays charged");
}

/// Each effect has its outcome, here at once.
fn carry_out(desks: &mut Taskscaler<u32, Run>, effects: &mut VecDeque<Effect<u32, Run>>, made: &mut u32, second: u64) {
    while let Some(effect) = effects.pop_front() {
        println!("{second:>4} s  {effect:?}");
        let outcomes = match effect {
            Effect::Grow { count } => {
                *made += count;
                let new = (*made - count..*made).map(|instance| Event::Appeared { instance });
                std::iter::once(Event::Granted { count }).chain(new).collect()
            }
            Effect::Prepare { instance } => vec![Event::Ready { instance }],
            Effect::Remove { instances } => instances.into_iter().map(|instance| Event::Gone { instance }).collect(),
            _ => vec![],
        };
        outcomes.into_iter().for_each(|outcome| effects.extend(desks.on(outcome, at(second))));
    }
}

fn at(second: u64) -> Now {
    Now { monotonic: Duration::from_secs(second), wall: Timestamp::from_nanoseconds(second as i64 * 1_000_000_000) }
}
