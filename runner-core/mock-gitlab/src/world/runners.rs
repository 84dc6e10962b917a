//! Runners as the server knows them: registering, verifying, renewing, removing.

use super::World;
use crate::message::{Reply, Request};
use crate::scenario::Scenario;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub struct Account {
    pub id: u64,
    pub cell: u64,
    pub paused: bool,
    /// Grows when there is something new to look at: what `X-GitLab-Last-Update` tells.
    pub news: u64,
    /// What each manager last said of itself.
    pub managers: BTreeMap<String, Value>,
}

impl Account {
    pub fn ticket(&self) -> String {
        format!("{:08x}-{}", self.id, self.news)
    }

    pub fn contact(&mut self, system_id: &str, info: &Value) {
        self.managers.insert(system_id.to_owned(), info.clone());
    }
}

pub(super) fn of(scenario: &Scenario) -> BTreeMap<String, Account> {
    let account = |runner: &crate::scenario::Runner| Account {
        id: runner.id,
        cell: runner.cell,
        paused: runner.paused,
        news: 0,
        managers: BTreeMap::new(),
    };
    scenario.runners.iter().map(|runner| (runner.token.clone(), account(runner))).collect()
}

impl World {
    pub(super) fn register(&mut self, request: &Request) -> Reply {
        let body = request.json();
        let said = body["token"].as_str().unwrap_or_default();
        if self.scenario.registration_token.is_empty() {
            return Reply::message(410, "Gone");
        }
        if said != self.scenario.registration_token {
            return Reply::message(403, "Forbidden");
        }
        let (id, token) = self.new_runner(body["paused"].as_bool().unwrap_or(false));
        Reply::json(201, &json!({"id": id, "token": token, "token_expires_at": null}))
    }

    pub(super) fn create(&mut self, request: &Request) -> Reply {
        if request.header("private-token") != Some(self.scenario.user_token.as_str()) {
            return Reply::message(401, "Unauthorized");
        }
        let body = request.json();
        let is_whole = match body["runner_type"].as_str() {
            Some("instance_type") => true,
            Some("group_type") => body["group_id"].is_u64(),
            Some("project_type") => body["project_id"].is_u64(),
            _ => false,
        };
        if !is_whole {
            return Reply::json(400, &json!({"message": {"runner_type": ["needs its group_id or project_id"]}}));
        }
        let (id, token) = self.new_runner(body["paused"].as_bool().unwrap_or(false));
        Reply::json(201, &json!({"id": id, "token": token, "token_expires_at": null}))
    }

    fn new_runner(&mut self, paused: bool) -> (u64, String) {
        let id = self.next_runner;
        self.next_runner += 1;
        let token = format!("glrt-mock{:016x}", id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let cell = self.scenario.cells.first().map_or(1, |cell| cell.id);
        self.runners.insert(token.clone(), Account { id, cell, paused, news: 0, managers: BTreeMap::new() });
        (id, token)
    }

    pub(super) fn verify(&mut self, request: &Request) -> Reply {
        let body = request.json();
        let token = body["token"].as_str().unwrap_or_default();
        let Some(runner) = self.runners.get_mut(token) else { return Reply::message(403, "Forbidden") };
        runner.contact(body["system_id"].as_str().unwrap_or_default(), &body["info"]);
        Reply::json(200, &json!({"id": runner.id, "token": token, "token_expires_at": null}))
    }

    pub(super) fn reset(&mut self, request: &Request) -> Reply {
        let token = request.json()["token"].as_str().unwrap_or_default().to_owned();
        self.renew(&token)
    }

    pub(super) fn reset_by_user(&mut self, request: &Request, id: &str) -> Reply {
        if request.header("private-token") != Some(self.scenario.user_token.as_str()) {
            return Reply::message(401, "Unauthorized");
        }
        match self.runners.iter().find(|(_, runner)| runner.id.to_string() == id).map(|(token, _)| token.clone()) {
            Some(token) => self.renew(&token),
            None => Reply::message(404, "Not Found"),
        }
    }

    fn renew(&mut self, token: &str) -> Reply {
        let Some(runner) = self.runners.remove(token) else { return Reply::message(403, "Forbidden") };
        let renewed = format!("{token}-next");
        self.runners.insert(renewed.clone(), runner);
        Reply::json(201, &json!({"token": renewed, "token_expires_at": null}))
    }

    pub(super) fn remove(&mut self, request: &Request) -> Reply {
        match self.runners.remove(request.json()["token"].as_str().unwrap_or_default()) {
            Some(_) => Reply::status(204),
            None => Reply::message(403, "Forbidden"),
        }
    }

    pub(super) fn remove_manager(&mut self, request: &Request) -> Reply {
        let body = request.json();
        let Some(system_id) = body["system_id"].as_str() else { return Reply::message(400, "system_id is missing") };
        match self.runners.get_mut(body["token"].as_str().unwrap_or_default()).map(|runner| runner.managers.remove(system_id)) {
            None => Reply::message(403, "Forbidden"),
            Some(None) => Reply::message(404, "Not Found"),
            Some(Some(_)) => Reply::status(204),
        }
    }

    /// What each manager of a runner last said of itself.
    pub fn managers(&self, token: &str) -> Option<&BTreeMap<String, Value>> {
        self.runners.get(token).map(|runner| &runner.managers)
    }
}
