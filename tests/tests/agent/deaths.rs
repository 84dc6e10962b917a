//! kill -9 at moments that a seed chooses, of the front and of a job's process: no byte that was there is lost, and nothing runs on.
//!
//! `DEATHS_SEED=7` plays one seed again; `DEATHS_ROUNDS=200` tries more.

use super::served::{Following, Served, script_job};
use ci_proto::step_runner::failure::Kind;
use ci_proto::step_runner::step_result::Status as JobStatus;
use rustix::process::{Pid, Signal};
use std::ops::Range;

/// Dice that fall the same for a seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn throw(&mut self, range: Range<usize>) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        range.start + usize::try_from((mixed ^ (mixed >> 31)) % range.len() as u64).unwrap()
    }
}

const LINES: usize = 3000;
const DIED: &str = "step-runner: the log ends here: the process that ran the job died; bytes that were still in a pipe are lost\n";

/// Writes its lines as fast as it can, with something in the background that nobody waits for.
fn script(id: &str) -> String {
    format!(
        "setsid sleep 1000 >/dev/null 2>&1 & echo $! >left-{id}; echo $PPID >job-{id}; i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); echo {id} line $i; done"
    )
}

fn whole(id: &str) -> String {
    format!("Running step \"s\"\n{}", (1..=LINES).map(|i| format!("{id} line {i}\n")).collect::<String>())
}

fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("DEATHS_SEED") {
        Some(seed) => vec![seed],
        None => (1..=number("DEATHS_ROUNDS").unwrap_or(4)).collect(),
    }
}

#[test]
fn killed_fronts_and_job_processes_lose_nothing_that_was_there() {
    for seed in seeds() {
        println!("to see it again: DEATHS_SEED={seed}");
        play(&mut Dice(seed));
    }
}

fn play(dice: &mut Dice) {
    let mut served = Served::raw();
    let victims = dice.throw(1..3);
    let ids: Vec<String> = (0..4).map(|number| format!("j{number}")).collect();
    for id in &ids {
        served.run(script_job(id, &script(id))).unwrap();
    }
    let mut known: Vec<Vec<u8>> = vec![Vec::new(); ids.len()];
    for _ in 0..dice.throw(1..4) {
        for (id, known) in ids.iter().zip(&mut known) {
            let mut following = served.follow_from(id, known.len() as i64).unwrap();
            let wanted = dice.throw(1..LINES * 12);
            read_some(&mut following, wanted, known);
        }
        served.front().signal(Signal::KILL);
        served.take_front().finish();
        served.start(&["--log", "raw", "--level", "0.12"]);
    }
    for id in &ids[..victims] {
        served.follow(id).until("line 1\n");
        let pid: i32 = served.workshop.read(&format!("work/job-{id}")).trim().parse().unwrap();
        // It may have ended by itself.
        let _ = rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
    }
    for (number, (id, known)) in ids.iter().zip(&known).enumerate() {
        let log = served.log_text(id);
        assert!(log.as_bytes().starts_with(known), "{id}: what was told has changed");
        let status = served.status(id);
        if status.status() == JobStatus::Success {
            assert!(log == whole(id) || (number < victims && log == format!("{}{DIED}", whole(id))), "{id}: {} bytes", log.len());
        } else {
            assert!(number < victims, "{id} was not killed: {status:?}");
            assert_eq!(status.failure_kind(), Kind::Interrupted, "{status:?}");
            assert!(status.message.starts_with("step \"s\": interrupted"), "{status:?}");
            let kept = log.strip_suffix(DIED).expect("one marker at the end");
            assert!(!kept.contains("the log ends here"), "there is one marker");
            // A torn line was ended; all before it is as the step wrote it.
            let kept = kept.strip_suffix('\n').unwrap_or(kept);
            assert!(whole(id).starts_with(kept), "{id}: {kept}");
        }
        let left = served.workshop.read(&format!("work/left-{id}"));
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", left.trim()));
        assert!(!stat.is_ok_and(|stat| !stat.contains(") Z ")), "{id}: what it left running runs on");
        served.close(id);
        assert!(!served.directory(id).exists());
    }
}

/// About as many bytes as are wanted, or what there is.
fn read_some(following: &mut Following<'_>, wanted: usize, known: &mut Vec<u8>) {
    let start = known.len();
    while known.len() - start < wanted {
        match following.next().unwrap() {
            Some(piece) => known.extend(piece),
            None => return,
        }
    }
}
