//! When a runner's token is renewed, and what a runner is beyond its token.

use crate::Token;
use step_model::time::Timestamp;

/// The dates of a token, as they stand in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenDates {
    pub obtained: Timestamp,
    pub expires: Timestamp,
}

/// A token is renewed after three quarters of its life (GitLab: `TokenResetIntervalFactor`).
const QUARTERS: i64 = 3;

impl TokenDates {
    /// When it is renewed. `None` for a token that does not expire: a date that was never set is zero.
    pub fn due(self) -> Option<Timestamp> {
        let (obtained, expires) = (self.obtained.nanoseconds(), self.expires.nanoseconds());
        (obtained > 0 && expires > 0).then(|| Timestamp::from_nanoseconds(obtained + (expires - obtained) / 4 * QUARTERS))
    }
}

/// The runner whose token is due first, by its place in the list. Of several at the same instant the first in the list.
pub fn next(runners: &[Option<TokenDates>]) -> Option<(usize, Timestamp)> {
    let due = runners.iter().enumerate().filter_map(|(index, dates)| Some((index, (*dates)?.due()?)));
    due.min_by_key(|(_, at)| *at)
}

/// What a runner is, whatever its token is just now: instances and jobs are kept under it, so a renewed token prunes nothing (gl#39380).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunnerIdentity {
    /// The number that the server gave it, at that server.
    Number { url: String, id: u64 },
    /// An entry without a number, as old configurations have it.
    Token(Token),
}

impl RunnerIdentity {
    pub fn of(url: &str, id: u64, token: &Token) -> Self {
        if id == 0 { Self::Token(token.clone()) } else { Self::Number { url: url.to_owned(), id } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 3600 * 1_000_000_000;

    fn january(day: i64) -> Timestamp {
        Timestamp::from_nanoseconds(1_672_531_200_000_000_000 + (day - 1) * DAY)
    }

    fn dates(obtained: i64, expires: i64) -> Option<TokenDates> {
        Some(TokenDates { obtained: january(obtained), expires: january(expires) })
    }

    #[test]
    fn runner_56_without_runners_or_dates_nothing_is_due() {
        let zero = TokenDates { obtained: Timestamp::default(), expires: Timestamp::default() };
        assert_eq!(next(&[]), None);
        assert_eq!(next(&[None, Some(zero), Some(TokenDates { obtained: january(1), ..zero })]), None);
    }

    #[test]
    fn runner_57_a_token_is_due_after_three_quarters_of_its_life() {
        assert_eq!(next(&[dates(1, 5)]), Some((0, january(4))));
    }

    #[test]
    fn runner_59_the_one_that_is_due_first_comes_first() {
        assert_eq!(next(&[dates(5, 9), dates(1, 9)]), Some((1, january(7))));
    }

    #[test]
    fn runner_60_of_two_with_equal_dates_the_first_in_the_list() {
        assert_eq!(next(&[None, dates(1, 5), dates(1, 5)]), Some((1, january(4))));
    }

    #[test]
    fn runner_62_a_rotated_token_is_the_same_runner_and_without_a_number_the_token_is_the_runner() {
        let (old, new) = (Token::new("glrt-old"), Token::new("glrt-new"));
        let url = "https://gitlab.example";
        assert_eq!(RunnerIdentity::of(url, 7, &old), RunnerIdentity::of(url, 7, &new));
        assert_ne!(RunnerIdentity::of(url, 0, &old), RunnerIdentity::of(url, 0, &new));
        assert_ne!(RunnerIdentity::of(url, 7, &old), RunnerIdentity::of("https://other.example", 7, &old));
    }
}
