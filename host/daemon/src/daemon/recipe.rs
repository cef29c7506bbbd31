//! From configuration to what a pipeline's worker is made of.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tidegate_api::{Destination, Result, Transform};
use tidegate_control::Store;
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
    pub(super) worker: Arc<Worker>,
    sandbox: Arc<Sandbox>,
    pub(super) store: Arc<Store>,
}

/// A transform, and the module that it runs in. `None`: documents pass unchanged.
pub(super) type Pinned = Option<(Arc<dyn Transform>, String)>;

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
    pub(super) async fn pinned(&self) -> Result<Pinned> {
        if self.programs.is_empty() {
            return Ok(None);
        }
        let Some(module) = self.store.module(self.name())? else {
            let (transform, module) = self.newest().await?;
            self.store.pin_module(self.name(), &module)?;
            return Ok(Some((transform, module)));
        };
        Ok(Some((self.transform(&module).await?, module)))
    }

    /// The transform in this release's module.
    pub(super) async fn newest(&self) -> Result<(Arc<dyn Transform>, String)> {
        let module = self.newest_module()?;
        Ok((self.transform(&module).await?, module))
    }

    async fn transform(&self, module: &str) -> Result<Arc<dyn Transform>> {
        let mut stages = Vec::new();
        for program in &self.programs {
            stages.push(self.sandbox.program(program.clone(), module).await?);
        }
        Ok(tidegate_sandbox::chain(stages))
    }

    /// The digest of the module that this release brings.
    pub(super) fn newest_module(&self) -> Result<String> {
        self.sandbox.provision_program_guest()
    }

    /// Starts a worker.
    pub(super) fn start(&self, transform: Option<Arc<dyn Transform>>, stored: Stored) -> Handle {
        let parts = Parts {
            settings: self.settings.clone(),
            transform,
            destination: Arc::clone(&self.destination),
            source: Arc::clone(&self.worker.built.source),
            log: Arc::clone(&self.worker.log),
        };
        tidegate_pipeline::start(parts, stored)
    }
}

fn settings_of(name: &str, pipeline: &Pipeline, data_dir: &Path) -> tidegate_pipeline::Settings {
    tidegate_pipeline::Settings {
        name: name.to_owned(),
        tables: pipeline.tables.iter().map(|table| table.name.clone()).collect(),
        collections: pipeline.collections.clone(),
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
