//! The cases of the trace loop, told to the machine as values.

use super::*;
use step_model::time::Timestamp;

fn at(seconds: u64) -> Now {
    Now { monotonic: Duration::from_secs(seconds), wall: Timestamp::default() }
}

fn digest(bytes: u64) -> TraceDigest {
    TraceDigest { bytes, crc: 7 }
}

fn settings(piece: u64) -> SendingSettings {
    SendingSettings { piece, ..SendingSettings::default() }
}

fn start(piece: u64) -> Sending {
    Sending::start(settings(piece), digest(0), 0, at(0))
}

fn patched(outcome: PatchOutcome) -> Event {
    Event::Patched(Patched { outcome, cancel_requested: false, interval: None })
}

fn accepted(end: u64) -> Event {
    patched(PatchOutcome::Accepted { end })
}

fn failed() -> Event {
    patched(PatchOutcome::Failed { why: "status 500".to_owned() })
}

fn updated(outcome: UpdateOutcome) -> Event {
    Event::Updated(Updated { outcome, cancel_requested: false, interval: None })
}

fn success() -> Event {
    updated(UpdateOutcome::Succeeded)
}

fn patch(first: u64, length: u64) -> Vec<Effect> {
    vec![Effect::Patch { first, length }]
}

fn put(bytes: u64) -> Vec<Effect> {
    vec![Effect::Final { finished: Finished::success(), trace: digest(bytes) }]
}

fn end() -> Event {
    Event::Ended(Finished::success())
}

/// With an answer that carries an interval.
fn with_interval(seconds: u64) -> Event {
    Event::Patched(Patched {
        outcome: PatchOutcome::Accepted { end: 1 },
        cancel_requested: false,
        interval: Some(Duration::from_secs(seconds)),
    })
}

#[test]
fn runner_76_only_the_first_end_counts() {
    let mut sending = start(100);
    assert_eq!(sending.on(end(), at(1)), put(0));
    assert_eq!(sending.on(Event::Ended(Finished::failure("script_failure", 1)), at(1)), []);
    assert_eq!(sending.on(success(), at(1)), [Effect::Done(Delivered::Reported)]);
    assert_eq!(sending.on(Event::Ended(Finished::failure("script_failure", 1)), at(2)), []);
    assert_eq!(sending.next_deadline(), None);
}

#[test]
fn runner_77_a_touch_that_is_aborted_aborts_and_the_end_is_still_reported() {
    let mut sending = start(100);
    assert_eq!(sending.on(Event::Woken, at(30)), [Effect::Touch { trace: digest(0) }]);
    assert_eq!(sending.on(updated(UpdateOutcome::Aborted), at(30)), [Effect::Abort]);
    assert_eq!(sending.on(Event::Woken, at(90)), []);
    assert_eq!(sending.on(end(), at(91)), put(0));
    assert_eq!(sending.on(updated(UpdateOutcome::Aborted), at(91)), [Effect::Done(Delivered::Refused)]);
}

#[test]
fn runner_79_a_piece_that_is_aborted_aborts_and_at_the_end_one_more_piece_and_one_update_are_tried() {
    let mut sending = start(100);
    sending.on(Event::Written(digest(13)), at(0));
    assert_eq!(sending.on(Event::Woken, at(3)), patch(0, 13));
    assert_eq!(sending.on(patched(PatchOutcome::Aborted), at(3)), [Effect::Abort]);
    assert_eq!(sending.on(Event::Written(digest(20)), at(9)), []);
    assert_eq!(sending.on(end(), at(10)), patch(0, 20));
    assert_eq!(sending.on(patched(PatchOutcome::Aborted), at(10)), put(20));
    assert_eq!(sending.on(updated(UpdateOutcome::Aborted), at(10)), [Effect::Done(Delivered::Refused)]);
}

#[test]
fn runner_81_what_the_server_takes_and_tells_is_where_the_next_piece_begins() {
    let mut sending = start(100);
    sending.on(Event::Written(digest(13)), at(0));
    assert_eq!(sending.on(Event::Woken, at(3)), patch(0, 13));
    assert_eq!(sending.on(accepted(3), at(3)), patch(3, 10));
    assert_eq!(sending.on(failed(), at(3)), []);
    assert_eq!(sending.on(Event::Woken, at(6)), patch(3, 10));
    assert_eq!(sending.on(accepted(9), at(6)), patch(9, 4));
    assert_eq!(sending.on(patched(PatchOutcome::RangeMismatch { server_has: 6 }), at(6)), []);
    assert_eq!(sending.on(Event::Woken, at(9)), patch(6, 7));
    assert_eq!(sending.on(accepted(13), at(9)), []);
    assert_eq!(sending.on(end(), at(10)), put(13));
}

#[test]
fn runner_82_an_end_that_is_not_complete_is_asked_for_again_and_an_invalid_trace_is_sent_again() {
    let mut sending = start(10);
    sending.on(Event::Written(digest(13)), at(0));
    assert_eq!(sending.on(end(), at(1)), patch(0, 10));
    assert_eq!(sending.on(accepted(10), at(1)), patch(10, 3));
    assert_eq!(sending.on(accepted(13), at(1)), put(13));
    for (answer, next) in [(1, 4), (4, 7)] {
        assert_eq!(sending.on(updated(UpdateOutcome::NotComplete), at(answer)), []);
        assert_eq!(sending.on(Event::Woken, at(next)), put(13));
    }
    assert_eq!(sending.on(updated(UpdateOutcome::TraceInvalid), at(7)), []);
    assert_eq!(sending.on(Event::Woken, at(10)), patch(0, 10));
    assert_eq!(sending.on(accepted(10), at(10)), patch(10, 3));
    assert_eq!(sending.on(accepted(13), at(10)), put(13));
    for (answer, next) in [(10, 13), (13, 16)] {
        assert_eq!(sending.on(updated(UpdateOutcome::NotComplete), at(answer)), []);
        assert_eq!(sending.on(Event::Woken, at(next)), put(13));
    }
    assert_eq!(sending.on(success(), at(16)), [Effect::Done(Delivered::Reported)]);
}

#[test]
fn runner_83_a_trace_is_sent_in_pieces() {
    let mut sending = start(5);
    sending.on(Event::Written(digest(13)), at(0));
    assert_eq!(sending.on(Event::Woken, at(3)), patch(0, 5));
    assert_eq!(sending.on(accepted(5), at(3)), patch(5, 5));
    assert_eq!(sending.on(accepted(10), at(3)), patch(10, 3));
    assert_eq!(sending.on(accepted(13), at(3)), []);
}

#[test]
fn runner_85_output_goes_out_while_the_job_runs_and_never_before_the_first_interval() {
    let mut sending = start(100);
    assert_eq!(sending.on(Event::Written(digest(13)), at(1)), []);
    assert_eq!(sending.next_deadline(), Some(Deadline::after(at(3), Duration::ZERO)));
    assert_eq!(sending.on(Event::Woken, at(2)), []);
    assert_eq!(sending.on(Event::Woken, at(3)), patch(0, 13));
}

#[test]
fn runner_86_a_job_without_output_is_touched() {
    let mut sending = start(100);
    assert_eq!(sending.next_deadline(), Some(Deadline::after(at(30), Duration::ZERO)));
    assert_eq!(sending.on(Event::Woken, at(29)), []);
    assert_eq!(sending.on(Event::Woken, at(30)), [Effect::Touch { trace: digest(0) }]);
    assert_eq!(sending.on(success(), at(30)), []);
    assert_eq!(sending.on(Event::Woken, at(59)), []);
    assert_eq!(sending.on(Event::Woken, at(60)), [Effect::Touch { trace: digest(0) }]);
    assert_eq!(sending.on(success(), at(60)), []);
    assert_eq!(sending.on(end(), at(61)), put(0));
}

#[test]
fn runner_88_an_interval_that_is_none_changes_nothing_and_the_end_begins_with_the_first_one() {
    let mut sending = start(100);
    sending.on(Event::Written(digest(1)), at(0));
    sending.on(Event::Woken, at(3));
    sending.on(with_interval(0), at(3));
    assert_eq!(sending.interval, Duration::from_secs(3));
    sending.on(Event::Written(digest(2)), at(3));
    sending.on(Event::Woken, at(6));
    sending.on(with_interval(60), at(6));
    assert_eq!(sending.interval, Duration::from_secs(60));
    sending.on(end(), at(7));
    assert_eq!(sending.interval, Duration::from_secs(3));
}

#[test]
fn runner_89_a_server_says_how_often_it_wants_to_hear_also_when_it_aborts() {
    let ten = Some(Duration::from_secs(10));
    for event in [
        Event::Patched(Patched { outcome: PatchOutcome::Accepted { end: 1 }, cancel_requested: false, interval: ten }),
        Event::Patched(Patched { outcome: PatchOutcome::Aborted, cancel_requested: false, interval: ten }),
        Event::Updated(Updated { outcome: UpdateOutcome::Succeeded, cancel_requested: false, interval: ten }),
        Event::Updated(Updated { outcome: UpdateOutcome::Aborted, cancel_requested: false, interval: ten }),
    ] {
        let mut sending = start(100);
        sending.on(event, at(3));
        assert_eq!(sending.interval, Duration::from_secs(10));
    }
    let mut sending = start(100);
    sending.on(with_interval(100_000), at(3));
    assert_eq!(sending.interval, Duration::from_secs(900), "never less often than every 15 minutes");
}

#[test]
fn runner_94_the_environment_is_named_at_the_end_only() {
    let mut sending = start(100);
    let Effect::Touch { trace } = &sending.on(Event::Woken, at(30))[0] else { panic!("a touch") };
    assert_eq!(*trace, digest(0), "a touch has no room for it");
    sending.on(success(), at(30));
    let finished = Finished { environment: Some("1/s_0/e".to_owned()), ..Finished::success() };
    assert_eq!(sending.on(Event::Ended(finished.clone()), at(31)), [Effect::Final { finished, trace: digest(0) }]);
}

#[test]
fn a_cancel_is_told_once() {
    let mut sending = start(100);
    let canceling = |end| Event::Patched(Patched { outcome: PatchOutcome::Accepted { end }, cancel_requested: true, interval: None });
    sending.on(Event::Written(digest(5)), at(0));
    sending.on(Event::Woken, at(3));
    assert_eq!(sending.on(canceling(5), at(3)), [Effect::Cancel]);
    sending.on(Event::Written(digest(9)), at(4));
    sending.on(Event::Woken, at(6));
    assert_eq!(sending.on(canceling(9), at(6)), []);
}

#[test]
fn with_an_interval_of_a_minute_a_quiet_job_is_touched_every_minute() {
    let mut sending = start(100);
    sending.on(Event::Written(digest(1)), at(0));
    sending.on(Event::Woken, at(3));
    sending.on(with_interval(60), at(3));
    assert_eq!(sending.on(Event::Woken, at(40)), []);
    assert_eq!(sending.on(Event::Woken, at(63)), [Effect::Touch { trace: digest(1) }]);
}

#[test]
fn whole_pieces_do_not_wait_while_somebody_watches_and_do_when_nobody_does() {
    let mut sending = start(5);
    sending.on(Event::Written(digest(5)), at(0));
    sending.on(Event::Woken, at(3));
    assert_eq!(sending.on(accepted(5), at(3)), []);
    assert_eq!(sending.on(Event::Written(digest(9)), at(3)), []);
    assert_eq!(sending.on(Event::Written(digest(10)), at(3)), patch(5, 5));
    let sixty = Event::Patched(Patched {
        outcome: PatchOutcome::Accepted { end: 10 },
        cancel_requested: false,
        interval: Some(Duration::from_secs(60)),
    });
    assert_eq!(sending.on(sixty, at(3)), []);
    assert_eq!(sending.on(Event::Written(digest(100)), at(4)), []);
    assert_eq!(sending.on(Event::Woken, at(63)), patch(10, 5));
}

#[test]
fn an_end_that_cannot_be_reported_is_tried_for_a_day() {
    let mut sending = start(100);
    assert_eq!(sending.on(end(), at(0)), put(0));
    let (mut now, mut tries, mut overdue) = (0, 0, None);
    loop {
        tries += 1;
        let effects = sending.on(updated(UpdateOutcome::Failed { why: "status 502".to_owned() }), at(now));
        if effects.contains(&Effect::Overdue) {
            overdue = Some(tries);
        }
        now += sending.next_deadline().expect("it goes on").remaining(at(now)).as_secs();
        match sending.on(Event::Woken, at(now)).as_slice() {
            [Effect::Final { .. }] => {}
            effects => {
                assert_eq!(effects, [Effect::Done(Delivered::GaveUp)]);
                break;
            }
        }
    }
    assert_eq!(overdue, Some(10));
    assert!((24 * 3600..26 * 3600).contains(&now), "{now}");
}

#[test]
fn a_new_process_begins_where_the_old_one_may_have_been_and_is_told_the_truth() {
    let mut sending = Sending::start(settings(100), digest(50), 0, at(0));
    assert_eq!(sending.on(Event::Woken, at(3)), patch(0, 50));
    assert_eq!(sending.on(patched(PatchOutcome::RangeMismatch { server_has: 40 }), at(3)), []);
    assert_eq!(sending.on(Event::Woken, at(6)), patch(40, 10));
}

#[test]
fn an_end_waits_for_the_call_that_is_open() {
    let mut sending = start(100);
    sending.on(Event::Written(digest(5)), at(0));
    assert_eq!(sending.on(Event::Woken, at(3)), patch(0, 5));
    assert_eq!(sending.on(end(), at(4)), []);
    assert_eq!(sending.on(accepted(5), at(5)), put(5));
}
