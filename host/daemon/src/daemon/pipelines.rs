//! Pipelines: from configuration to running workers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_api::{Destination, Error, Result, Transform, code};
use tidegate_control::{Failure, Store, status};
use tidegate_pipeline::{Handle, Parts, RetryPolicy, Stored};
use tidegate_program::Program;
use tidegate_sandbox::Sandbox;

use super::source::Worker;
use crate::config::{OnDrop, Pipeline, Settings};
use crate::program;
use crate::registry::Destinations;

/// Everything that a pipeline's worker is made of, so that another one can be made in its place.
pub(crate) struct Recipe {
    settings: tidegate_pipeline::Settings,
    programs: Vec<Program>,
    destination: Arc<dyn Destination>,
    worker: Arc<Worker>,
    sandbox: Arc<Sandbox>,
    store: Arc<Store>,
}

/// A transform, and the module that it runs in. `None`: documents pass unchanged.
type Pinned = Option<(Arc<dyn Transform>, String)>;

/// A pipeline at work.
pub(crate) struct Running {
    pub(crate) source: Arc<Worker>,
    recipe: Recipe,
    live: Mutex<Live>,
}

#[derive(Clone)]
struct Live {
    handle: Arc<Handle>,
    module: Option<String>,
}

/// The programs of each pipeline that has some, checked.
pub(crate) fn programs(settings: &Settings) -> Result<BTreeMap<String, Vec<Program>>> {
    let mut programs: BTreeMap<String, Vec<Program>> = BTreeMap::new();
    for (name, pipeline) in &settings.pipelines {
        for file in pipeline.transform.iter().filter_map(|stage| stage.program.as_deref()) {
            programs.entry(name.to_string()).or_default().push(program::load(file)?);
        }
    }
    Ok(programs)
}

/// What the pipelines are made of; nothing runs yet.
pub(crate) fn recipes(
    settings: &Settings,
    sources: &BTreeMap<String, Arc<Worker>>,
    destinations: &Destinations,
    mut programs: BTreeMap<String, Vec<Program>>,
    sandbox: &Arc<Sandbox>,
    store: &Arc<Store>,
    data_dir: &Path,
) -> Vec<Recipe> {
    let recipe = |(name, pipeline): (&crate::config::Name, &Pipeline)| {
        Some(Recipe {
            settings: settings_of(name.as_str(), pipeline, data_dir),
            programs: programs.remove(name.as_str()).unwrap_or_default(),
            destination: destinations.get(name.as_str())?,
            worker: Arc::clone(sources.get(pipeline.source.as_str())?),
            sandbox: Arc::clone(sandbox),
            store: Arc::clone(store),
        })
    };
    settings.pipelines.iter().filter_map(recipe).collect()
}

impl Recipe {
    pub(crate) fn name(&self) -> &str {
        &self.settings.name
    }

    /// The transform in the module that this pipeline ran with before, whatever this release brings; a pipeline that never ran
    /// is pinned to this release's.
    pub(crate) async fn pinned(&self) -> Result<Pinned> {
        if self.programs.is_empty() {
            return Ok(None);
        }
        let module = match self.store.module(self.name())? {
            Some(module) => module,
            None => {
                let module = self.sandbox.provision_program_guest()?;
                self.store.pin_module(self.name(), &module)?;
                module
            }
        };
        let transform = self.transform(&module).await.map_err(|error| match error.code() == &code::MODULE_MISSING {
            true => error.fix("restore the module into data_dir/modules, or give the pipeline another name: it begins anew then"),
            false => error,
        })?;
        Ok(Some((transform, module)))
    }

    async fn transform(&self, module: &str) -> Result<Arc<dyn Transform>> {
        let mut stages = Vec::new();
        for program in &self.programs {
            stages.push(self.sandbox.program(program.clone(), module).await?);
        }
        Ok(tidegate_sandbox::chain(stages))
    }

    fn start(&self, pinned: Pinned, stored: Stored) -> Live {
        let (transform, module) = pinned.unzip();
        let parts = Parts {
            settings: self.settings.clone(),
            transform,
            destination: Arc::clone(&self.destination),
            source: Arc::clone(&self.worker.built.source),
            log: Arc::clone(&self.worker.log),
        };
        Live { handle: Arc::new(tidegate_pipeline::start(parts, stored)), module }
    }
}

impl Running {
    /// Starts the pipeline, paused where the operator left it so.
    pub(crate) fn start(recipe: Recipe, pinned: Pinned) -> Result<Self> {
        let stored = Stored { paused: recipe.store.paused(recipe.name())? };
        let live = Mutex::new(recipe.start(pinned, stored));
        Ok(Self { source: Arc::clone(&recipe.worker), recipe, live })
    }

    fn live(&self) -> Live {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) async fn pause(&self) -> Result<()> {
        let name = self.recipe.name();
        let before = self.recipe.store.paused(name)?;
        self.recipe.store.set_paused(name, true)?;
        let paused = self.live().handle.pause().await;
        if paused.is_err() {
            self.recipe.store.set_paused(name, before)?;
        }
        paused
    }

    /// Goes on, and with it the capture of its source where that stopped on an error.
    pub(crate) async fn resume(&self) -> Result<()> {
        self.recipe.store.set_paused(self.recipe.name(), false)?;
        let source_resumed = self.source.resume().await;
        match self.live().handle.resume().await {
            Err(error) if source_resumed && error.code() == &code::STATE_REFUSED => Ok(()),
            resumed => resumed,
        }
    }

    /// Starts again from a snapshot. Documents are made anew, so this is also when the pipeline moves to the module of this
    /// release.
    pub(crate) async fn reset(&self) -> Result<()> {
        let name = self.recipe.name();
        if let Some(pinned) = self.newer_module().await? {
            self.live().handle.stop().await;
            self.recipe.store.pin_module(name, &pinned.1)?;
            let live = self.recipe.start(Some(pinned), Stored { paused: true });
            *self.live.lock().unwrap_or_else(PoisonError::into_inner) = live;
        }
        self.source.reset().await?;
        self.recipe.store.set_paused(name, false)?;
        self.live().handle.reset().await
    }

    async fn newer_module(&self) -> Result<Pinned> {
        let Some(pinned) = self.live().module else { return Ok(None) };
        let module = self.recipe.sandbox.provision_program_guest()?;
        if module == pinned { Ok(None) } else { Ok(Some((self.recipe.transform(&module).await?, module))) }
    }

    pub(crate) async fn stop(&self) {
        self.live().handle.stop().await;
    }

    pub(crate) fn status(&self) -> status::Pipeline {
        let Live { handle, module } = self.live();
        let now = handle.status();
        status::Pipeline {
            name: self.recipe.name().to_owned(),
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
}

fn settings_of(name: &str, pipeline: &Pipeline, data_dir: &Path) -> tidegate_pipeline::Settings {
    tidegate_pipeline::Settings {
        name: name.to_owned(),
        tables: pipeline.tables.iter().map(|table| table.name.clone()).collect(),
        on_drop: match pipeline.on_drop {
            OnDrop::Delete => tidegate_api::OnDrop::Delete,
            OnDrop::Retain => tidegate_api::OnDrop::Retain,
        },
        retry: RetryPolicy {
            attempts: pipeline.retry.attempts,
            base: pipeline.retry.base.0,
            max: pipeline.retry.max.0,
            factor: pipeline.retry.factor,
            jitter: pipeline.retry.jitter,
        },
        max_transaction: tidegate_pipeline::MaxTransaction { rows: pipeline.max_transaction.rows, bytes: pipeline.max_transaction.bytes.0 },
        spool: data_dir.join("spool").join(name),
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

/// The pipeline of this name.
pub(crate) fn find<'a>(pipelines: &'a BTreeMap<String, Running>, name: &str) -> Result<&'a Running> {
    pipelines.get(name).ok_or_else(|| Error::new(&code::NO_SUCH_PIPELINE, "find pipeline").with("pipeline", name))
}
