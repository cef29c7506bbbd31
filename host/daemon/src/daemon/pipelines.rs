//! Pipelines, as the operator steers them.

use std::sync::{Arc, Mutex, PoisonError};

use tidegate_api::{Error, Result, code};
use tidegate_control::{Failure, status};
use tidegate_pipeline::{Handle, State, Stored};

use super::recipe::{Pinned, Recipe};
use super::source::Worker;

/// What a pipeline begins with, or why it cannot.
pub(crate) struct Prepared(Result<Pinned>);

/// A configured pipeline, from before its first row to the end of the daemon.
pub(crate) struct Running {
    pub(crate) source: Arc<Worker>,
    recipe: Recipe,
    live: Mutex<Live>,
}

#[derive(Clone)]
enum Live {
    /// Sources and destinations are looked at; it has not begun.
    Starting,
    /// It cannot begin until the operator has done something.
    Faulted(Failure),
    Working {
        handle: Arc<Handle>,
        module: Option<String>,
    },
}

impl Running {
    /// A pipeline that has not begun.
    pub(crate) fn new(recipe: Recipe) -> Self {
        Self { source: Arc::clone(&recipe.worker), recipe, live: Mutex::new(Live::Starting) }
    }

    pub(crate) fn name(&self) -> &str {
        self.recipe.name()
    }

    /// Makes its transform ready. What is wrong with the module that it ran with before is its own fault: the others go on.
    ///
    /// # Errors
    /// It never ran, and cannot.
    pub(crate) async fn prepare(&self) -> Result<Prepared> {
        let ran = self.recipe.store.module(self.name())?.is_some();
        match self.recipe.pinned().await {
            Err(error) if !ran => Err(error),
            pinned => Ok(Prepared(pinned)),
        }
    }

    /// Begins, paused where the operator left it so.
    pub(crate) fn start(&self, Prepared(pinned): Prepared) -> Result<()> {
        let live = match pinned {
            Ok(pinned) => self.working(pinned, Stored { paused: self.recipe.store.paused(self.name())? }),
            Err(error) => {
                let name = self.name();
                tracing::error!(pipeline = name, code = %error.code(), fix = error.advice(), "{name} cannot begin: {}", error.message());
                Live::Faulted(Failure::from(&error))
            }
        };
        self.set(live);
        Ok(())
    }

    fn working(&self, pinned: Pinned, stored: Stored) -> Live {
        let (transform, module) = pinned.unzip();
        Live::Working { handle: Arc::new(self.recipe.start(transform, stored)), module }
    }

    fn live(&self) -> Live {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, live: Live) {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = live;
    }

    /// The worker, where there is one.
    fn handle(&self) -> Option<Arc<Handle>> {
        if let Live::Working { handle, .. } = self.live() { Some(handle) } else { None }
    }

    pub(crate) async fn pause(&self) -> Result<()> {
        let before = self.recipe.store.paused(self.name())?;
        self.recipe.store.set_paused(self.name(), true)?;
        let Some(handle) = self.handle() else { return Ok(()) };
        let paused = handle.pause().await;
        if paused.is_err() {
            self.recipe.store.set_paused(self.name(), before)?;
        }
        paused
    }

    /// Goes on, and with it the capture of its source where that stopped on an error.
    pub(crate) async fn resume(&self) -> Result<()> {
        self.recipe.store.set_paused(self.name(), false)?;
        let source_resumed = self.source.resume().await;
        let Some(handle) = self.handle() else {
            self.set(self.working(self.recipe.pinned().await?, Stored::default()));
            return Ok(());
        };
        match handle.resume().await {
            Err(error) if source_resumed && error.code() == &code::STATE_REFUSED => Ok(()),
            resumed => resumed,
        }
    }

    /// Starts again from a snapshot. Documents are made anew, so this is also when the pipeline moves to the module of this
    /// release.
    pub(crate) async fn reset(&self) -> Result<()> {
        let newer = self.newer_module().await?;
        self.source.reset().await?;
        if let Some((transform, module)) = newer {
            self.stop().await;
            self.recipe.store.pin_module(self.name(), &module)?;
            self.set(self.working(Some((transform, module)), Stored { paused: true }));
        }
        self.recipe.store.set_paused(self.name(), false)?;
        match self.handle() {
            Some(handle) => handle.reset().await,
            None => Err(Error::new(&code::STATE_REFUSED, "reset pipeline").with("pipeline", self.name())),
        }
    }

    /// This release's module, where the pipeline does not run in it.
    async fn newer_module(&self) -> Result<Pinned> {
        let pinned = match self.live() {
            Live::Working { module: None, .. } => return Ok(None),
            Live::Working { module, .. } => module,
            Live::Starting | Live::Faulted(_) => None,
        };
        if pinned.is_some() && pinned == Some(self.recipe.newest_module()?) {
            return Ok(None);
        }
        self.recipe.newest().await.map(Some)
    }

    pub(crate) async fn stop(&self) {
        if let Some(handle) = self.handle() {
            handle.stop().await;
        }
    }

    pub(crate) fn status(&self) -> status::Pipeline {
        let Live::Working { handle, module } = self.live() else { return self.status_at_rest() };
        let now = handle.status();
        status::Pipeline {
            name: self.name().to_owned(),
            source: self.source.built.name.clone(),
            state: now.state.to_string(),
            position: now.position.map(|position| position.to_string()),
            lag_bytes: now.lag_bytes,
            lag_seconds: now.lag_seconds,
            rows: now.rows,
            snapshot_rows: now.snapshot_rows,
            snapshot_estimate: now.snapshot_estimate,
            transactions: now.transactions,
            retries: now.retries,
            fingerprint: now.fingerprint.to_string(),
            module,
            error: now.error.map(|problem| Failure { code: problem.code, message: problem.message, fix: problem.fix, path: None }),
            poison: now.poison.map(poison),
        }
    }

    /// As long as there is no worker.
    fn status_at_rest(&self) -> status::Pipeline {
        let (state, error) = match self.live() {
            Live::Faulted(failure) => (State::Faulted, Some(failure)),
            _ => (State::Provisioning, None),
        };
        status::Pipeline {
            name: self.name().to_owned(),
            source: self.source.built.name.clone(),
            state: state.to_string(),
            position: self.source.log.checkpoint(self.name()).map(|position| position.to_string()),
            module: self.recipe.store.module(self.name()).ok().flatten(),
            error,
            ..status::Pipeline::default()
        }
    }
}

fn poison(report: tidegate_pipeline::PoisonReport) -> status::PoisonReport {
    status::PoisonReport {
        kind: report.kind,
        reason: report.reason,
        relation: report.relation,
        key_hash: report.key_hash,
        position: report.position,
        xid: report.xid,
        ordinal: report.ordinal,
        size_bytes: report.size_bytes,
    }
}
