//! The library by itself, by the ids of `tests/cases/taskscaler.md`.

use super::policy::{Policy, ScaleThrottle, Scaling, SlotScaling};
use super::{Effect, Event, NoCapacity, Owner, Settings, Taskscaler};
use crate::testing::at;
use std::time::Duration;

type Machine = Taskscaler<u32, &'static str>;

fn scaling(idle_count: u64, preemptive_mode: bool) -> Scaling {
    let policy = Policy { idle_count, preemptive_mode, idle_time: Duration::from_secs(60), ..Policy::on_demand() };
    Scaling::Slots(SlotScaling { policies: vec![policy], throttle: ScaleThrottle::Unlimited, reservation_throttling: true })
}

/// With so many instances that are ready.
fn ready(settings: Settings, instances: u32) -> Machine {
    let (mut machine, _) = Machine::start(settings, at(0));
    for instance in 0..instances {
        machine.on(Event::Appeared { instance }, at(0));
        machine.on(Event::Ready { instance }, at(0));
    }
    machine.check();
    machine
}

fn wanted(machine: &mut Machine, task: &'static str) -> Vec<Effect<u32, &'static str>> {
    let effects = machine.on(Event::Wanted { task, owner: Owner(0), priority: 0 }, at(1));
    machine.check();
    effects
}

fn settings(capacity: u32, most: u32) -> Settings {
    Settings { capacity_per_instance: capacity, ..Settings::new(scaling(0, false), most) }
}

#[test]
fn tsc_22_a_key_that_is_reserved_or_wanted_twice_has_one_slot() {
    let mut machine = ready(settings(2, 1), 1);
    assert_eq!([machine.reserve("a", at(0)), machine.reserve("a", at(0))], [Ok(()), Ok(())]);
    assert_eq!(wanted(&mut machine, "a").len(), 1);
    assert_eq!((wanted(&mut machine, "a"), machine.reserve("a", at(0))), (vec![], Ok(())));
    assert_eq!(machine.figures().acquired, 1);
}

#[test]
fn tsc_24_releasing_a_key_that_nobody_knows_changes_nothing() {
    let mut machine = ready(settings(1, 1), 1);
    assert_eq!(machine.on(Event::Released { task: "a" }, at(1)), []);
    machine.reserve("a", at(0)).unwrap();
    machine.on(Event::Released { task: "a" }, at(1));
    assert_eq!(machine.reserve("b", at(0)), Ok(()), "a reservation is given back too");
}

#[test]
fn tsc_27_slots_are_numbered_and_a_third_task_goes_elsewhere() {
    let mut machine = ready(settings(2, 2), 2);
    let slots = ["a", "b", "c"].map(|task| wanted(&mut machine, task));
    let expected = [("a", 0, 0), ("b", 0, 1), ("c", 1, 0)].map(|(task, instance, slot)| vec![Effect::Assign { task, instance, slot }]);
    assert_eq!(slots, expected);
}

#[test]
fn tsc_28_the_lowest_free_slot_is_given_out_again() {
    let mut machine = ready(settings(3, 1), 1);
    ["a", "b", "c"].iter().for_each(|task| drop(wanted(&mut machine, task)));
    machine.on(Event::Released { task: "b" }, at(1));
    machine.on(Event::Released { task: "a" }, at(1));
    assert_eq!(wanted(&mut machine, "d"), [Effect::Assign { task: "d", instance: 0, slot: 0 }]);
    assert_eq!(wanted(&mut machine, "e"), [Effect::Assign { task: "e", instance: 0, slot: 1 }]);
}

#[test]
fn reservations_need_what_is_there_or_what_can_be_made() {
    let preemptive = Settings::new(scaling(1, true), 2);
    assert_eq!(ready(preemptive.clone(), 0).reserve("a", at(0)), Err(NoCapacity::NotNow));
    let mut machine = ready(settings(1, 2), 0);
    assert_eq!(["a", "b", "c"].map(|task| machine.reserve(task, at(0))), [Ok(()), Ok(()), Err(NoCapacity::AtAll)]);
    // While slots are idle, those of one instance are left.
    let mut machine = ready(Settings { capacity_per_instance: 2, ..preemptive }, 2);
    assert_eq!(["a", "b", "c"].map(|task| machine.reserve(task, at(0))), [Ok(()), Ok(()), Err(NoCapacity::NotNow)]);
}

#[test]
fn tsc_33_an_instance_that_does_not_answer_is_passed_over_and_replaced_after_three_heartbeats() {
    let mut machine = ready(settings(1, 2), 2);
    let beat = |machine: &mut Machine, is_healthy| machine.on(Event::Beaten { instance: 0, is_healthy }, at(1));
    assert_eq!(beat(&mut machine, false), []);
    assert_eq!(wanted(&mut machine, "a"), [Effect::Assign { task: "a", instance: 1, slot: 0 }]);
    assert_eq!(
        (beat(&mut machine, false), beat(&mut machine, true), beat(&mut machine, false), beat(&mut machine, false)),
        (vec![], vec![], vec![], vec![])
    );
    assert_eq!(beat(&mut machine, false), [Effect::Remove { instances: vec![0] }]);
    machine.check();
}

#[test]
fn tsc_36_an_instance_sleeps_when_all_of_its_tasks_do() {
    let mut machine = ready(settings(2, 1), 1);
    ["a", "b"].iter().for_each(|task| drop(wanted(&mut machine, task)));
    assert_eq!(machine.on(Event::Suspended { task: "a" }, at(2)), []);
    assert_eq!(machine.on(Event::Suspended { task: "b" }, at(2)), [Effect::Sleep { instance: 0 }]);
    let figures = machine.figures();
    assert_eq!((figures.total, figures.instances, figures.acquired, figures.unavailable), (1, 0, 0, 0));
    assert_eq!(machine.on(Event::Stopped, at(100)), [], "what sleeps is not removed");
    machine.check();
    assert_eq!(machine.on(Event::Resumed { task: "b" }, at(3)), [Effect::Wake { instance: 0 }]);
    assert_eq!(machine.on(Event::Ready { instance: 0 }, at(9)), [Effect::Resume { task: "b", instance: 0, slot: 1 }]);
    assert_eq!(machine.on(Event::Resumed { task: "a" }, at(9)), [Effect::Resume { task: "a", instance: 0, slot: 0 }]);
    machine.check();
}

#[test]
fn what_never_appears_or_never_becomes_ready_is_given_up() {
    let (mut machine, _) = Machine::start(Settings { creation_timeout: Duration::from_secs(60), ..settings(1, 2) }, at(0));
    wanted(&mut machine, "a");
    assert_eq!(machine.on(Event::Woken, at(2)), [Effect::Grow { count: 1 }]);
    machine.on(Event::Granted { count: 1 }, at(2));
    machine.on(Event::Woken, at(63));
    assert_eq!(machine.on(Event::Woken, at(70)), [Effect::Grow { count: 1 }], "it was granted and never appeared");
    assert_eq!(machine.on(Event::Appeared { instance: 7 }, at(71)), [Effect::Prepare { instance: 7 }]);
    assert_eq!(machine.on(Event::Woken, at(140)), [Effect::Remove { instances: vec![7] }]);
    // A removal without effect is asked for again, and a list that does not name it ends that.
    assert_eq!(machine.on(Event::Woken, at(201)).first(), Some(&Effect::Remove { instances: vec![7] }));
    machine.on(Event::Listed { instances: vec![] }, at(202));
    assert_eq!(machine.figures().total, machine.figures().creating);
    machine.check();
}

#[test]
fn a_task_hears_that_its_instance_is_gone() {
    let mut machine = ready(settings(2, 1), 1);
    ["a", "b"].iter().for_each(|task| drop(wanted(&mut machine, task)));
    let lost = machine.on(Event::Gone { instance: 0 }, at(2));
    assert_eq!(lost, [Effect::Lose { task: "a", instance: 0 }, Effect::Lose { task: "b", instance: 0 }]);
    assert_eq!((machine.share(Owner(0)), machine.figures().total), (0, 0));
    machine.check();
}
