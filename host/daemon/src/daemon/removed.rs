//! Pipelines that are not configured any more: the relay holds their transactions until an operator lets them go.
//!
//! Nothing of that happens by itself. A name that is missing from the configuration may be a mistake in it, and a pipeline
//! that is configured again goes on where it was.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_api::{CommitPosition, Error, Result, code};
use tidegate_control::{Store, status};
use tidegate_relay::Relay;

use super::pipelines::Running;

/// What is left of them.
pub(crate) struct Removed {
    relay: Relay,
    store: Arc<Store>,
    /// The sources that are configured.
    sources: BTreeSet<String>,
    left: Mutex<Vec<Left>>,
}

struct Left {
    pipeline: String,
    source: String,
    position: CommitPosition,
}

impl Removed {
    /// Finds them, and says each.
    ///
    /// # Errors
    /// The relay cannot be read.
    pub(crate) fn find(relay: Relay, store: Arc<Store>, configured: &BTreeMap<String, Running>) -> Result<Self> {
        let source_of = |pipeline: &str| configured.get(pipeline).map(|running| running.source.built.name.as_str());
        let groups = relay.groups()?.into_iter();
        let left: Vec<Left> = groups
            .filter(|(source, group)| source_of(&group.name) != Some(source))
            .map(|(source, group)| Left { pipeline: group.name, source, position: group.checkpoint })
            .collect();
        for Left { pipeline, source, position } in &left {
            let (code, fix) = (&code::PIPELINE_REMOVED, code::PIPELINE_REMOVED.fix);
            tracing::warn!(%code, fix, pipeline, origin = source, %position, "{}: {pipeline}", code.summary);
        }
        let sources = configured.values().map(|running| running.source.built.name.clone()).collect();
        Ok(Self { relay, store, sources, left: Mutex::new(left) })
    }

    fn left(&self) -> MutexGuard<'_, Vec<Left>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn status(&self) -> Vec<status::Removed> {
        let shown = |left: &Left| {
            // The log of a source that is not configured is not open.
            let log = self.sources.contains(&left.source).then(|| self.relay.log(&left.source).ok()).flatten();
            status::Removed {
                name: left.pipeline.clone(),
                source: left.source.clone(),
                position: left.position.to_string(),
                relay_bytes: log.map(|log| log.bytes_behind(left.position)),
            }
        };
        self.left().iter().map(shown).collect()
    }

    /// Lets go of everything that is held for this pipeline; what it wrote to its destination stays.
    ///
    /// # Errors
    /// The pipeline is configured, or nothing is held for it; the relay cannot be written.
    pub(crate) fn release(&self, pipeline: &str, configured: &BTreeMap<String, Running>) -> Result<()> {
        let configured = configured.contains_key(pipeline);
        let mut left = self.left();
        let sources: Vec<String> = left.iter().filter(|left| left.pipeline == pipeline).map(|left| left.source.clone()).collect();
        if sources.is_empty() {
            let code = if configured { &code::PIPELINE_CONFIGURED } else { &code::NO_SUCH_PIPELINE };
            return Err(Error::new(code, "remove pipeline").with("pipeline", pipeline));
        }
        for source in sources {
            let log = self.relay.log(&source)?;
            log.remove_group(pipeline)?;
            left.retain(|left| left.pipeline != pipeline || left.source != source);
            if self.sources.contains(&source) {
                log.retain()?;
            } else if log.groups().is_empty() {
                log.forget()?; // nobody is left who could read it
            }
        }
        if configured { Ok(()) } else { self.store.forget(pipeline) }
    }
}
