//! A named reader of a log.

use std::sync::Arc;

use tidegate_api::Result;

use crate::lease::Lease;
use crate::log::Log;

/// A consumer group: a name, a checkpoint, and at most one lease that counts.
#[derive(Clone, Debug)]
pub struct Group {
    log: Arc<Log>,
    name: String,
}

impl Group {
    pub(crate) fn new(log: Arc<Log>, name: String) -> Self {
        Self { log, name }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes the group over: every lease from before is fenced off. `owner` is only for people to read.
    ///
    /// A lease has no expiry: the folder belongs to one process, and a lease ends when it is dropped or taken over.
    ///
    /// # Errors
    /// The metadata cannot be written, or the group was removed.
    pub fn acquire(&self, owner: &str) -> Result<Lease> {
        let shared = &self.log.shared;
        let now_ms = shared.options.now_us().max(0).cast_unsigned() / 1000;
        let (fence, checkpoint) = shared.groups.acquire(&self.name, owner, now_ms)?;
        shared.tell(); // whoever waits with the lease before must learn that it is over
        Ok(Lease::new(Arc::clone(&self.log), self.name.clone(), fence, checkpoint))
    }
}
