//! The running daemon, as the control socket sees it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_api::{BoxFuture, Error, Result, code};
use tidegate_control::{Act, Host, status};

use super::pipelines::Running;
use super::removed::Removed;
use super::source::Worker;

/// Everything that runs.
pub(crate) struct Daemon {
    pub(crate) sources: BTreeMap<String, Arc<Worker>>,
    pub(crate) pipelines: BTreeMap<String, Running>,
    pub(crate) removed: Removed,
    pub(crate) started: AtomicBool,
    pub(crate) stopping: AtomicBool,
    /// Acts come one after the other.
    pub(crate) acting: tokio::sync::Mutex<()>,
}

impl Daemon {
    /// The turn to act. Before everything has begun there is nothing to act on.
    async fn turn(&self) -> Result<tokio::sync::MutexGuard<'_, ()>> {
        let turn = self.acting.lock().await;
        if self.started.load(Ordering::Relaxed) {
            return Ok(turn);
        }
        let error = Error::new(&code::STATE_REFUSED, "act").because("the daemon is starting: it looks at sources and destinations");
        Err(error.fix("try again when `tidegate status` no longer says that it is starting"))
    }

    async fn do_act(&self, name: &str, act: Act) -> Result<()> {
        let no_such = || Error::new(&code::NO_SUCH_PIPELINE, "find pipeline").with("pipeline", name);
        let pipeline = self.pipelines.get(name).ok_or_else(no_such)?;
        let _one_at_a_time = self.turn().await?;
        tracing::info!(pipeline = name, "operator: {act} {name}");
        match act {
            Act::Pause => pipeline.pause().await,
            Act::Resume => pipeline.resume().await,
            Act::Reset => pipeline.reset().await,
        }
    }

    async fn do_remove(&self, name: &str) -> Result<()> {
        let _one_at_a_time = self.turn().await?;
        tracing::info!(pipeline = name, "operator: remove {name}");
        self.removed.release(name, &self.pipelines)
    }

    async fn do_drop_slot(&self, source: &str) -> Result<()> {
        let worker = self.sources.get(source).ok_or_else(|| Error::new(&code::NO_SUCH_SOURCE, "find source").with("source", source))?;
        let _one_at_a_time = self.turn().await?;
        tracing::info!(origin = source, "operator: drop the slot of {source}");
        worker.remove().await
    }
}

impl Host for Daemon {
    fn status(&self) -> status::Status {
        status::Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: self.started.load(Ordering::Relaxed),
            stopping: self.stopping.load(Ordering::Relaxed),
            pipelines: self.pipelines.values().map(Running::status).collect(),
            sources: self.sources.values().map(|worker| worker.status()).collect(),
            removed: self.removed.status(),
        }
    }

    fn act<'a>(&'a self, pipeline: &'a str, act: Act) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.do_act(pipeline, act))
    }

    fn remove<'a>(&'a self, pipeline: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.do_remove(pipeline))
    }

    fn slots(&self) -> BoxFuture<'_, Vec<status::Source>> {
        Box::pin(futures_util::future::join_all(self.sources.values().map(|worker| worker.ask())))
    }

    fn drop_slot<'a>(&'a self, source: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.do_drop_slot(source))
    }
}
