//! Writes checkpoints a while after they moved, so that an acknowledgement never waits for the disk.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::log::Shared;

/// Segments grow old also while nothing happens.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// A thread of its own, which ends when this is dropped: nothing is written for the log afterwards.
#[derive(Debug)]
pub(crate) struct Keeper {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(crate) fn start(shared: Arc<Shared>) -> Self {
        let (sender, receiver) = sync_channel(1);
        let spawned = std::thread::Builder::new().name("relay-keeper".to_owned()).spawn(move || keep(&shared, &receiver));
        if let Err(error) = &spawned {
            tracing::error!(%error, "no thread for checkpoints: they are written when a lease ends");
        }
        Self { wake: Some(sender), thread: spawned.ok() }
    }

    /// A checkpoint has moved.
    pub(crate) fn wake(&self) {
        if let Some(sender) = &self.wake {
            let _ = sender.try_send(()); // one wake-up that waits already is enough
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn keep(shared: &Shared, woken: &Receiver<()>) {
    loop {
        match woken.recv_timeout(LOOK_AGAIN) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => {
                retain(shared);
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
        loop {
            // Gather what moves in the meantime.
            let gathered = wait(woken, shared.options.checkpoint_every);
            match shared.groups.flush() {
                Ok(false) => break,
                Ok(true) => retain(shared),
                Err(error) => tracing::warn!(%error, "checkpoints wait to be written"),
            }
            if gathered == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }
}

fn retain(shared: &Shared) {
    if let Err(error) = shared.retain(shared.options.keep, None) {
        tracing::warn!(%error, "consumed segments stay for now");
    }
}

/// Waits for all of `time`, and says whether it was cut short.
fn wait(woken: &Receiver<()>, time: Duration) -> Result<(), RecvTimeoutError> {
    let end = Instant::now() + time;
    loop {
        match woken.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
        }
    }
}
