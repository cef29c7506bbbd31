//! Pipelines: from configuration to running workers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tidegate_api::{Result, Transform};
use tidegate_control::{Failure, Store, status};
use tidegate_pipeline::{Handle, Parts, RetryPolicy, Stored};
use tidegate_program::Program;
use tidegate_sandbox::Sandbox;

use super::source::Worker;
use crate::config::{OnDrop, Pipeline, Settings};
use crate::program;
use crate::registry::Destinations;

/// A pipeline at work.
pub(crate) struct Running {
    pub(crate) source: String,
    pub(crate) handle: Handle,
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

/// A pipeline's transform, and the module that it is pinned to.
pub(crate) type Pinned = (Arc<dyn Transform>, String);

/// Makes the transforms. A pipeline that has run before keeps the module that it ran with, whatever this release brings.
pub(crate) async fn transforms(
    programs: BTreeMap<String, Vec<Program>>,
    sandbox: &Arc<Sandbox>,
    store: &Store,
) -> Result<BTreeMap<String, Pinned>> {
    let mut transforms = BTreeMap::new();
    for (name, programs) in programs {
        let module = match store.module(&name)? {
            Some(module) => module,
            None => {
                let module = sandbox.provision_program_guest()?;
                store.pin_module(&name, &module)?;
                module
            }
        };
        let mut stages = Vec::new();
        for program in programs {
            stages.push(sandbox.program(program, &module).await?);
        }
        transforms.insert(name, (tidegate_sandbox::chain(stages), module));
    }
    Ok(transforms)
}

/// Starts every pipeline.
pub(crate) fn start(
    settings: &Settings,
    sources: &BTreeMap<String, Arc<Worker>>,
    destinations: &Destinations,
    mut transforms: BTreeMap<String, Pinned>,
    store: &Store,
    data_dir: &Path,
) -> Result<BTreeMap<String, Running>> {
    let mut running = BTreeMap::new();
    for (name, pipeline) in &settings.pipelines {
        let (Some(worker), Some(destination)) = (sources.get(pipeline.source.as_str()), destinations.get(name.as_str())) else { continue };
        let (transform, module) = transforms.remove(name.as_str()).unzip();
        let parts = Parts {
            settings: settings_of(name.as_str(), pipeline, data_dir),
            transform,
            destination,
            source: Arc::clone(&worker.built.source),
            log: Arc::clone(&worker.log),
        };
        let stored = Stored { paused: store.paused(name.as_str())? };
        let handle = tidegate_pipeline::start(parts, stored);
        running.insert(name.to_string(), Running { source: pipeline.source.to_string(), handle, module });
    }
    Ok(running)
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

impl Running {
    pub(crate) fn status(&self, name: &str) -> status::Pipeline {
        let now = self.handle.status();
        status::Pipeline {
            name: name.to_owned(),
            source: self.source.clone(),
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
            module: self.module.clone(),
            error: now.error.map(|problem| Failure { code: problem.code, message: problem.message, fix: problem.fix, path: None }),
            poison: now.poison.map(poison),
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
