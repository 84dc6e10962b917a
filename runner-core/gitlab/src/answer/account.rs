//! What the answers about runners themselves mean: registering, verifying, renewing, removing.

use super::{Answer, Answered};
use crate::Token;
use serde_json::Value;
use step_model::time::Timestamp;

/// A runner as a server gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Zero where the server gives none.
    pub id: u64,
    pub token: Token,
    /// `None`: it does not expire.
    pub expires: Option<Timestamp>,
}

/// Why there is no account.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAccount {
    #[error("the server refuses: {why}")]
    Refused { why: String },
    #[error("registration tokens are switched off on this server: {why}")]
    NoRegistrationTokens { why: String },
    #[error("{why}")]
    Failed { why: String },
}

/// What verifying a token came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verified {
    /// The token is good. With an account where the server says which.
    Good(Option<Account>),
    /// The token is not known (any more).
    Bad,
    /// Nothing is known: the runner is kept.
    Unknown { why: String },
}

/// What removing a runner or a manager of it came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    Removed,
    /// It was not there.
    NotFound,
    Refused {
        why: String,
    },
    Failed {
        why: String,
    },
}

/// For `POST runners` and `POST user/runners`.
/// # Errors
/// There is no new runner; why.
pub fn registered(answered: &Answered) -> Result<Account, NoAccount> {
    let answer = answered.as_ref().map_err(|fault| NoAccount::Failed { why: fault.to_string() })?;
    match answer.status {
        201 => account(answer, None),
        400 | 401 | 403 => Err(NoAccount::Refused { why: answer.describe() }),
        410 => Err(NoAccount::NoRegistrationTokens { why: answer.describe() }),
        _ => Err(NoAccount::Failed { why: answer.describe() }),
    }
}

/// For `POST runners/verify`. A server of old answers with the word `Verified` or a number in place of JSON.
pub fn verified(answered: &Answered, token: &Token) -> Verified {
    let answer = match answered {
        Ok(answer) => answer,
        Err(fault) => return Verified::Unknown { why: fault.to_string() },
    };
    match answer.status {
        200 => Verified::Good(account(answer, Some(token)).ok()),
        403 => Verified::Bad,
        422 => Verified::Unknown { why: format!("the runner is orphaned: {}", answer.describe()) },
        _ => Verified::Unknown { why: answer.describe() },
    }
}

/// For `POST runners/reset_authentication_token` and its twin for a user. `id` is known before.
/// # Errors
/// The token stays as it is; why.
pub fn reset(answered: &Answered, id: u64) -> Result<Account, NoAccount> {
    let answer = answered.as_ref().map_err(|fault| NoAccount::Failed { why: fault.to_string() })?;
    match answer.status {
        201 => account(answer, None).map(|account| Account { id, ..account }),
        401 | 403 => Err(NoAccount::Refused { why: answer.describe() }),
        _ => Err(NoAccount::Failed { why: answer.describe() }),
    }
}

/// For `DELETE runners` and `DELETE runners/managers`.
pub fn removed(answered: &Answered) -> Removal {
    match answered {
        Ok(answer) => match answer.status {
            204 => Removal::Removed,
            404 => Removal::NotFound,
            400 | 401 | 403 => Removal::Refused { why: answer.describe() },
            _ => Removal::Failed { why: answer.describe() },
        },
        Err(fault) => Removal::Failed { why: fault.to_string() },
    }
}

/// `{id, token, token_expires_at}`. A server need not repeat a token that it was asked about.
fn account(answer: &Answer, known: Option<&Token>) -> Result<Account, NoAccount> {
    let body = answer.json().map_err(|fault| NoAccount::Failed { why: fault.to_string() })?;
    let token = body.get("token").and_then(Value::as_str).filter(|token| !token.is_empty()).map(Token::new);
    let token = token.or_else(|| known.cloned()).ok_or_else(|| NoAccount::Failed { why: "the answer holds no token".to_owned() })?;
    let expires = body.get("token_expires_at").and_then(Value::as_str).and_then(date);
    Ok(Account { id: body.get("id").and_then(Value::as_u64).unwrap_or(0), token, expires })
}

/// Go writes a date that was never set as the year 1.
fn date(text: &str) -> Option<Timestamp> {
    let date: jiff::Timestamp = text.parse().ok()?;
    i64::try_from(date.as_nanosecond()).ok().filter(|nanoseconds| *nanoseconds > 0).map(Timestamp::from_nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{answer, json, no_answer};
    use super::*;

    #[test]
    fn a_registered_runner_has_a_token_and_perhaps_a_date() {
        let body = r#"{"id":1,"token":"glrt-new","token_expires_at":"2023-01-05T00:00:00Z"}"#;
        let account = registered(&Ok(json(201, body))).expect("registered");
        assert_eq!(account.expires, Some(Timestamp::from_nanoseconds(1_672_876_800_000_000_000)));
        let account =
            registered(&Ok(json(201, r#"{"id":1,"token":"glrt-new","token_expires_at":"0001-01-01T00:00:00Z"}"#))).expect("registered");
        assert_eq!(account.expires, None);
        assert_eq!(registered(&Ok(json(201, r#"{"id":1,"token":"glrt-new","token_expires_at":null}"#))).expect("registered").expires, None);
    }

    #[test]
    fn a_refusal_says_why() {
        let why = |status| registered(&Ok(json(status, r#"{"message":"Maximum number of runners exceeded"}"#))).expect_err("refused");
        assert_eq!(why(400), NoAccount::Refused { why: "status 400: Maximum number of runners exceeded".to_owned() });
        assert!(matches!(why(410), NoAccount::NoRegistrationTokens { .. }));
        assert!(matches!(why(500), NoAccount::Failed { .. }));
        assert!(matches!(registered(&Ok(json(201, "{}"))), Err(NoAccount::Failed { .. })));
    }

    #[test]
    fn a_token_is_bad_only_when_the_server_says_so() {
        let token = Token::new("glrt-mine");
        assert_eq!(verified(&Ok(answer(403)), &token), Verified::Bad);
        for unknown in [Ok(answer(500)), Ok(answer(422)), Ok(answer(404)), Err(no_answer())] {
            assert!(matches!(verified(&unknown, &token), Verified::Unknown { .. }), "{unknown:?}");
        }
        let Verified::Good(Some(account)) = verified(&Ok(json(200, r#"{"id":7,"token":"glrt-mine"}"#)), &token) else { panic!("good") };
        assert_eq!((account.id, account.token), (7, token.clone()));
        assert_eq!(verified(&Ok(answer(200)), &token), Verified::Good(None), "a server of old says nothing more");
    }

    #[test]
    fn a_renewed_token_keeps_the_number_of_its_runner() {
        assert_eq!(reset(&Ok(json(201, r#"{"token":"glrt-next"}"#)), 7).expect("renewed").id, 7);
        assert!(reset(&Ok(json(200, r#"{"token":"glrt-next"}"#)), 7).is_err());
    }

    #[test]
    fn what_is_removed_is_gone() {
        assert_eq!(removed(&Ok(answer(204))), Removal::Removed);
        assert_eq!(removed(&Ok(answer(404))), Removal::NotFound);
        assert!(matches!(removed(&Ok(answer(403))), Removal::Refused { .. }));
        assert!(matches!(removed(&Err(no_answer())), Removal::Failed { .. }));
    }
}
