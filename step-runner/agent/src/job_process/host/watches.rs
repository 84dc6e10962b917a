//! The tasks that watch processes: as many as run, not as many as ever ran.

use std::future::Future;
use tokio::task::JoinSet;

/// Tasks whose ends nobody waits for one by one. Dropped, it ends them.
#[derive(Debug, Default)]
pub struct Watches {
    tasks: JoinSet<()>,
}

impl Watches {
    /// The set keeps what has ended until somebody takes it, 1.1 kB a step; so it is taken whenever one is added.
    pub fn start(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(task);
    }

    pub async fn all_have_ended(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_has_ended_is_let_go_when_the_next_begins() {
        let mut watches = Watches::default();
        for _ in 0..100 {
            watches.start(async {});
            tokio::task::yield_now().await;
        }
        assert!(watches.tasks.len() <= 2, "{} tasks are kept", watches.tasks.len());
        watches.all_have_ended().await;
        assert!(watches.tasks.is_empty());
    }
}
