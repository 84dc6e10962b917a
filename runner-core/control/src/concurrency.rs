//! How many polls of a runner may be open: a number that grows with jobs and shrinks when the server asks to slow down.

/// After each poll the value becomes half of it (the server asked to slow down), 1.1 of it (a job) or 0.95 of it (nothing), and stays between one and
/// `request_concurrency`. It begins at zero, so the first job makes it one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct RequestConcurrency(f64);

impl RequestConcurrency {
    /// Polls that may be open at once.
    pub fn allowed(self, most: u32, is_adaptive: bool) -> u32 {
        if !is_adaptive {
            return most;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between zero and `most` by the rule above")]
        let value = self.0.ceil() as u32;
        value.max(1).min(most)
    }

    pub fn after_poll(&mut self, most: u32, is_adaptive: bool, had_job: bool, was_retried: bool) {
        if !is_adaptive {
            return;
        }
        let factor = match (was_retried, had_job) {
            (true, _) => 0.5,
            (false, true) => 1.1,
            (false, false) => 0.95,
        };
        self.0 = (self.0 * factor).clamp(1.0, f64::from(most.max(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a number of polls of one kind makes of it.
    fn after(polls: usize, most: u32, had_job: bool, was_retried: bool) -> RequestConcurrency {
        let mut value = RequestConcurrency::default();
        (0..polls).for_each(|_| value.after_poll(most, true, had_job, was_retried));
        value
    }

    #[test]
    fn runner_41_no_request_concurrency_is_one() {
        let settings = crate::testing::runner(1);
        assert_eq!(crate::settings::RunnerSettings { request_concurrency: 0, ..settings }.request_concurrency(), 1);
    }

    #[test]
    fn runner_42_the_first_job_makes_it_one_and_the_second_allows_two_polls() {
        let mut value = after(1, 2, true, false);
        assert_eq!((value, value.allowed(2, true)), (RequestConcurrency(1.0), 1));
        value.after_poll(2, true, true, false);
        assert_eq!((value, value.allowed(2, true)), (RequestConcurrency(1.1), 2));
    }

    #[test]
    fn runner_44_polls_that_were_retried_keep_it_at_one() {
        assert_eq!(after(20, 10, true, true), RequestConcurrency(1.0));
    }

    #[test]
    fn runner_45_six_polls_that_were_retried_bring_twenty_down_to_one() {
        let mut value = after(100, 20, true, false);
        assert_eq!(value.allowed(20, true), 20);
        (0..6).for_each(|_| value.after_poll(20, true, true, true));
        assert_eq!(value, RequestConcurrency(1.0));
    }

    #[test]
    fn runner_47_without_adapting_the_value_is_not_touched() {
        let mut value = RequestConcurrency::default();
        value.after_poll(10, false, true, true);
        assert_eq!((value, value.allowed(10, false)), (RequestConcurrency(0.0), 10));
    }
}
