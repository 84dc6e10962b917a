//! Calls about runners themselves: registering, creating, verifying, renewing tokens, removing.

use super::call::{Call, Content};
use super::jobs::json;
use super::{Client, Endpoint};
use crate::Token;
use crate::answer::{self, Account, Answered, NoAccount, Removal, Verified};
use crate::request::{CreateBody, RegisterBody, RunnerOptions, RunnerScope, TokenBody, VerifyBody};

impl Client {
    /// Registers a runner with a registration token of old. One that was created in the interface is verified instead.
    /// # Errors
    /// There is no new runner; why.
    pub async fn register(&self, registration: &Token, options: &RunnerOptions) -> Result<Account, NoAccount> {
        let body = RegisterBody { info: &self.inner.settings.info, token: registration, options };
        answer::registered(
            &self.about_runner(Endpoint::RegisterRunner, "POST", "runners", ("runner-token", registration), json(&body)).await,
        )
    }

    /// Creates a runner in the name of a user, whose token needs the scope `create_runner`.
    /// # Errors
    /// There is no new runner; why.
    pub async fn create(&self, user: &Token, scope: &RunnerScope, options: &RunnerOptions) -> Result<Account, NoAccount> {
        let body = CreateBody { scope, options };
        answer::registered(&self.about_runner(Endpoint::CreateRunner, "POST", "user/runners", ("private-token", user), json(&body)).await)
    }

    /// Asks whether a runner's token is good, and says what this manager can do.
    pub async fn verify(&self, token: &Token) -> Verified {
        let settings = &self.inner.settings;
        let body = VerifyBody { info: &settings.info, token, system_id: &settings.system_id };
        answer::verified(
            &self.about_runner(Endpoint::VerifyRunner, "POST", "runners/verify", ("runner-token", token), json(&body)).await,
            token,
        )
    }

    /// Removes a runner, with all its managers.
    pub async fn unregister(&self, token: &Token) -> Removal {
        let body = json(&TokenBody { token, system_id: None });
        answer::removed(&self.about_runner(Endpoint::UnregisterRunner, "DELETE", "runners", ("runner-token", token), body).await)
    }

    /// Removes this manager of a runner that was created in the interface; the runner stays.
    pub async fn unregister_manager(&self, token: &Token) -> Removal {
        let body = json(&TokenBody { token, system_id: Some(self.inner.settings.system_id.as_str()) });
        answer::removed(
            &self.about_runner(Endpoint::UnregisterRunnerManager, "DELETE", "runners/managers", ("runner-token", token), body).await,
        )
    }

    /// Gets a new token for a runner in exchange for its old one.
    /// # Errors
    /// The token stays as it is; why.
    pub async fn reset_token(&self, id: u64, token: &Token) -> Result<Account, NoAccount> {
        let body = json(&TokenBody { token, system_id: None });
        let path = "runners/reset_authentication_token";
        answer::reset(&self.about_runner(Endpoint::ResetToken, "POST", path, ("runner-token", token), body).await, id)
    }

    /// Gets a new token for a runner in the name of a user.
    /// # Errors
    /// The token stays as it is; why.
    pub async fn reset_token_of(&self, id: u64, user: &Token) -> Result<Account, NoAccount> {
        let path = format!("runners/{id}/reset_authentication_token");
        answer::reset(&self.about_runner(Endpoint::ResetToken, "POST", &path, ("private-token", user), Content::None).await, id)
    }

    async fn about_runner(
        &self,
        endpoint: Endpoint,
        method: &'static str,
        path: &str,
        token: (&'static str, &Token),
        content: Content,
    ) -> Answered {
        self.call(&Call {
            endpoint,
            method,
            url: self.address(token.1).endpoint(path),
            token: Some(token),
            headers: Vec::new(),
            content,
            expects_json: true,
            longest_answer: self.inner.settings.limits.other,
        })
        .await
    }
}
