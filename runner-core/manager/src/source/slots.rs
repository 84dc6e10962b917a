//! Numbers that tell jobs apart which run at the same time: the smallest that is free (`CI_CONCURRENT_ID`).

use std::collections::{BTreeMap, BTreeSet};

/// Numbers of the jobs of one runner, and of those of each project among them.
#[derive(Debug, Default)]
pub struct Slots {
    taken: BTreeSet<u32>,
    of_projects: BTreeMap<String, BTreeSet<u32>>,
}

/// The numbers of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Slot {
    pub of_runner: u32,
    pub of_project: u32,
}

impl Slots {
    pub fn take(&mut self, project: &str) -> Slot {
        let of_project = self.of_projects.entry(project.to_owned()).or_default();
        let slot = Slot { of_runner: smallest_free(&self.taken), of_project: smallest_free(of_project) };
        self.taken.insert(slot.of_runner);
        of_project.insert(slot.of_project);
        slot
    }

    /// Of a job that another process began.
    pub fn take_again(&mut self, project: &str, slot: Slot) {
        self.taken.insert(slot.of_runner);
        self.of_projects.entry(project.to_owned()).or_default().insert(slot.of_project);
    }

    pub fn free(&mut self, project: &str, slot: Slot) {
        self.taken.remove(&slot.of_runner);
        if let Some(of_project) = self.of_projects.get_mut(project) {
            of_project.remove(&slot.of_project);
            if of_project.is_empty() {
                self.of_projects.remove(project);
            }
        }
    }
}

fn smallest_free(taken: &BTreeSet<u32>) -> u32 {
    (0..)
        .zip(taken)
        .find(|(number, used)| number != *used)
        .map_or_else(|| u32::try_from(taken.len()).unwrap_or(u32::MAX), |(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_free_numbers_are_given() {
        let mut slots = Slots::default();
        let all = ["a", "a", "b"].map(|project| slots.take(project));
        assert_eq!(all.map(|slot| (slot.of_runner, slot.of_project)), [(0, 0), (1, 1), (2, 0)]);
        slots.free("a", all[0]);
        assert_eq!(slots.take("b"), Slot { of_runner: 0, of_project: 1 });
        slots.take_again("c", Slot { of_runner: 3, of_project: 0 });
        assert_eq!(slots.take("c"), Slot { of_runner: 4, of_project: 1 });
    }
}
