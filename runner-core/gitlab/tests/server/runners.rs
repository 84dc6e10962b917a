//! Runners are registered, created, verified, renewed and removed.

use crate::{client, server, token};
use runner_gitlab::Token;
use runner_gitlab::answer::{NoAccount, Removal, Verified};
use runner_gitlab::request::{RunnerOptions, RunnerScope};

fn user() -> Token {
    Token::new("glpat-user")
}

#[tokio::test]
async fn runner_24_a_runner_says_what_it_can_do_when_it_is_verified() {
    let server = server(0, "").await;
    let Verified::Good(Some(account)) = client(&server).verify(&token()).await else { panic!("good") };
    assert_eq!((account.id, account.expires), (1, None));
    server.look(|world| {
        let info = &world.managers(token().expose()).expect("the runner")["s_0123456789ab"];
        assert_eq!((&info["features"]["two_phase_job_commit"], &info["features"]["job_inputs"]), (&true.into(), &true.into()));
    });
}

#[tokio::test]
async fn a_token_that_is_not_known_is_bad() {
    let server = server(0, "").await;
    assert_eq!(client(&server).verify(&Token::new("glrt-unknown")).await, Verified::Bad);
}

#[tokio::test]
async fn a_runner_is_registered_by_a_registration_token() {
    let server = server(0, "").await;
    let client = client(&server);
    let account = client.register(&Token::new("GR1348941registration"), &RunnerOptions::default()).await.expect("registered");
    assert!(matches!(client.verify(&account.token).await, Verified::Good(Some(known)) if known.id == account.id));
    assert!(matches!(client.register(&Token::new("GR1348941wrong"), &RunnerOptions::default()).await, Err(NoAccount::Refused { .. })));
}

#[tokio::test]
async fn a_server_without_registration_tokens_says_so() {
    let server = server(0, "registration_token = \"\"").await;
    let refused = client(&server).register(&Token::new("GR1348941registration"), &RunnerOptions::default()).await;
    assert!(matches!(refused, Err(NoAccount::NoRegistrationTokens { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_user_creates_a_runner() {
    let server = server(0, "").await;
    let client = client(&server);
    let account = client.create(&user(), &RunnerScope::Group { group_id: 7 }, &RunnerOptions::default()).await.expect("created");
    assert!(account.token.is_of_created_runner());
    let refused = client.create(&Token::new("glpat-wrong"), &RunnerScope::Instance, &RunnerOptions::default()).await;
    assert!(matches!(refused, Err(NoAccount::Refused { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_token_is_renewed_by_itself_or_by_a_user_and_the_old_one_is_bad() {
    let server = server(0, "").await;
    let client = client(&server);
    let second = client.reset_token(1, &token()).await.expect("renewed");
    assert_eq!(client.verify(&token()).await, Verified::Bad);
    let third = client.reset_token_of(second.id, &user()).await.expect("renewed");
    assert_eq!((second.id, third.id), (1, 1));
    assert!(matches!(client.verify(&third.token).await, Verified::Good(_)));
}

#[tokio::test]
async fn a_manager_is_removed_and_then_the_runner() {
    let server = server(0, "").await;
    let client = client(&server);
    client.verify(&token()).await;
    assert_eq!(client.unregister_manager(&token()).await, Removal::Removed);
    assert_eq!(client.unregister_manager(&token()).await, Removal::NotFound);
    assert_eq!(client.unregister(&token()).await, Removal::Removed);
    assert!(matches!(client.unregister(&token()).await, Removal::Refused { .. }));
}
