//! From a valid configuration to running pipelines, and back.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate_api::{Error, Result, Severity};
use tidegate_control::Store;
use tidegate_relay::Relay;
use tidegate_sandbox::Sandbox;
use tokio::sync::{mpsc, oneshot};

use super::data_dir::DataDir;
use super::host::Daemon;
use super::pipelines::Running;
use super::preflight::{self, Found};
use super::recipe;
use super::removed::Removed;
use super::signals::{Ending, Signals};
use super::source::Worker;
use crate::config::{Config, Relay as RelaySettings, Settings};
use crate::registry::{Destinations, Sources};

/// An orderly stop that takes longer is cut short.
const MAX_STOP: Duration = Duration::from_secs(20);

/// Runs until a signal comes; gives what the process exits with.
///
/// # Errors
/// What makes it pointless to go on: everything about the start that will not pass by itself.
pub(crate) async fn run(config: Config) -> Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let settings = &config.settings;
    let data_dir = DataDir::lock(&settings.data_dir)?;
    let (fatal, mut fatals) = mpsc::unbounded_channel();
    let made = make(settings, &data_dir, fatal)?;
    // Whoever asks is answered from here on, however long a server keeps the start waiting.
    let (stop_serving, stopped_serving) = oneshot::channel();
    let serving = serve(&made, &data_dir, stopped_serving)?;
    let daemon = &made.daemon;
    tokio::select! {
        started = start(settings, daemon, &made.destinations) => started?,
        ending = signals.next() => {
            tracing::info!("{ending:?} during the start: nothing was begun");
            return Ok(ExitCode::SUCCESS);
        }
    }
    tracing::info!(data_dir = %data_dir.path().display(), pipelines = daemon.pipelines.len(), "running");
    let (outcome, ending) = tokio::select! {
        ending = signals.next() => (Ok(()), ending),
        Some(error) = fatals.recv() => (Err(error), Ending::Terminate),
    };
    let cut_short = tokio::select! {
        () = stop(daemon) => false,
        () = tokio::time::sleep(MAX_STOP) => true,
        _ = signals.next() => true,
    };
    let _ = stop_serving.send(());
    outcome?;
    if cut_short {
        tracing::warn!("cut short: what was in work comes again at the next start");
        return Ok(ExitCode::from(ending.exit_code()));
    }
    let _ = tokio::time::timeout(Duration::from_secs(1), serving).await;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Everything that there is, before anything is begun.
struct Made {
    daemon: Arc<Daemon>,
    destinations: Destinations,
    store: Arc<Store>,
}

fn make(settings: &Settings, data_dir: &DataDir, fatal: mpsc::UnboundedSender<Error>) -> Result<Made> {
    let programs = recipe::programs(settings)?;
    let sources = Sources::build(settings)?;
    let destinations = Destinations::build(settings)?;
    let store = Arc::new(Store::open(data_dir.path())?);
    let relay = open_relay(settings, data_dir)?;
    let sandbox = open_sandbox(data_dir)?;
    let mut workers = BTreeMap::new();
    for built in sources.into_all() {
        let log = relay.log(&built.name)?;
        workers.insert(built.name.clone(), Worker::new(built, log, fatal.clone()));
    }
    let recipes = recipe::recipes(settings, &workers, &destinations, programs, &sandbox, &store, data_dir.path());
    let pipelines: BTreeMap<_, _> = recipes.into_iter().map(|recipe| (recipe.name().to_owned(), Running::new(recipe))).collect();
    let removed = Removed::find(relay, Arc::clone(&store), &pipelines)?;
    let daemon = Daemon {
        sources: workers,
        pipelines,
        removed,
        started: AtomicBool::new(false),
        stopping: AtomicBool::new(false),
        acting: tokio::sync::Mutex::new(()),
    };
    Ok(Made { daemon: Arc::new(daemon), destinations, store })
}

fn serve(made: &Made, data_dir: &DataDir, stopped: oneshot::Receiver<()>) -> Result<tokio::task::JoinHandle<()>> {
    let host = Arc::clone(&made.daemon) as Arc<dyn tidegate_control::Host>;
    let router = tidegate_control::router(host, Arc::clone(&made.store))?;
    let listener = tidegate_control::bind(data_dir.path())?;
    Ok(tokio::spawn(async move {
        let stop = async {
            let _ = stopped.await;
        };
        if let Err(error) = tidegate_control::serve(listener, router, stop).await {
            tracing::error!(code = %error.code(), "the control socket has failed: {}", error.message());
        }
    }))
}

/// Looks at everything, then lets pipelines and sources begin.
async fn start(settings: &Settings, daemon: &Daemon, destinations: &Destinations) -> Result<()> {
    let mut prepared = Vec::new();
    for pipeline in daemon.pipelines.values() {
        prepared.push((pipeline, pipeline.prepare().await?));
    }
    judge(preflight::look(settings, daemon.sources.values().map(|worker| &worker.built), destinations).await)?;
    for (pipeline, prepared) in prepared {
        pipeline.start(prepared)?;
    }
    for worker in daemon.sources.values() {
        worker.start().await;
    }
    daemon.started.store(true, Ordering::Relaxed);
    Ok(())
}

/// Says what was found, and refuses to start over what will not pass by itself.
fn judge(found: Vec<Found>) -> Result<()> {
    let mut refusal = None;
    for end in found {
        if let Ok(findings) = &end.outcome {
            for finding in findings.iter().filter(|finding| finding.severity == Severity::Warning) {
                let code = finding.code.map(ToString::to_string);
                let fix = finding.fix.as_deref();
                tracing::warn!(code, fix, "{}: {}: {}", end.subject, finding.subject, finding.detail);
            }
        }
        let subject = end.subject.clone();
        for error in end.failures() {
            if preflight::may_pass(&error) {
                tracing::warn!(code = %error.code(), fix = error.advice(), "{subject}: goes on trying: {}", error.message());
            } else if super::source::cured_by_reset(error.code()) {
                tracing::error!(code = %error.code(), fix = error.advice(), "{subject}: {}", error.message());
            } else if refusal.is_none() {
                refusal = Some(error);
            } else {
                tracing::error!(code = %error.code(), fix = error.advice(), "{subject}: {}", error.message());
            }
        }
    }
    refusal.map_or(Ok(()), Err)
}

fn open_relay(settings: &Settings, data_dir: &DataDir) -> Result<Relay> {
    let RelaySettings::Files(files) = &settings.relay;
    let mut options = tidegate_relay::Options::default();
    if let Some(limit) = files.max_bytes {
        options.max_bytes = limit.0;
    }
    Relay::open(&data_dir.path().join("relay"), Arc::new(tidegate_relay::RealDisk), options)
}

fn open_sandbox(data_dir: &DataDir) -> Result<Arc<Sandbox>> {
    let worker =
        std::env::current_exe().map_err(|error| Error::new(&tidegate_api::code::MODULE_STORE, "find own executable").because(error))?;
    Sandbox::open(tidegate_sandbox::Settings { modules: data_dir.path().join("modules"), worker, threads: None })
}

/// First what comes in, then what goes out.
async fn stop(daemon: &Daemon) {
    daemon.stopping.store(true, Ordering::Relaxed);
    futures_util::future::join_all(daemon.sources.values().map(|worker| worker.stop())).await;
    futures_util::future::join_all(daemon.pipelines.values().map(|running| running.stop())).await;
}
