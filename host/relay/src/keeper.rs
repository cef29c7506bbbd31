//! Writes checkpoints a while after they moved, so that an acknowledgement never waits for the disk.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

use crate::log::Shared;

/// A thread of its own; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Keeper(SyncSender<()>);

impl Keeper {
    pub(crate) fn start(shared: Arc<Shared>) -> Self {
        let (sender, receiver) = sync_channel(1);
        let spawned = std::thread::Builder::new().name("relay-keeper".to_owned()).spawn(move || keep(&shared, &receiver));
        if let Err(error) = spawned {
            tracing::error!(%error, "no thread for checkpoints: they are written when a lease ends");
        }
        Self(sender)
    }

    /// A checkpoint has moved.
    pub(crate) fn wake(&self) {
        let _ = self.0.try_send(()); // one wake-up that waits already is enough
    }
}

fn keep(shared: &Shared, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        loop {
            // Gather what moves in the meantime.
            let gathered = woken.recv_timeout(shared.options.checkpoint_every);
            match shared.groups.flush() {
                Ok(false) => break,
                Ok(true) => {
                    if let Err(error) = shared.retain(shared.options.keep, None) {
                        tracing::warn!(%error, "consumed segments stay for now");
                    }
                }
                Err(error) => tracing::warn!(%error, "checkpoints wait to be written"),
            }
            if gathered == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }
}
