//! The loop that reads: decode what came, hand it over, answer the server in time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Buf as _;
use tidegate_api::{Captured, CommitPosition, Error, Result, code};
use tokio::time::Instant;

use super::assemble::{Assembler, RelationMessage, Step};
use super::feedback::Feedback;
use super::handover::Handover;
use super::lookup::Lookup;
use super::row::Fill;
use crate::source::slot;
use crate::source::wire::{Frame, Wire, malformed, refusal};

const OPERATION: &str = "capture";

/// A server without a patience of its own is given up after this long without a byte.
const SILENCE: Duration = Duration::from_secs(120);

/// A server that answers is never given up sooner than this.
const SHORTEST_SILENCE: Duration = Duration::from_secs(30);

/// Idle moments are handed over this often at most, unless the server waits for one. How often they are made durable is
/// for the other end to say.
const IDLE: Duration = Duration::from_secs(1);

/// What was assembled is handed over in pieces of about this size, also in the middle of a full input.
const PIECE_BYTES: usize = 1 << 20;

/// A running capture.
pub(crate) struct Stream {
    wire: Wire,
    assembler: Assembler,
    lookup: Lookup,
    handover: Arc<Handover>,
    slot: String,
    ready: Vec<Captured>,
    feedback: Feedback,
    /// The end of what was handed over last.
    handed: CommitPosition,
    handed_at: Option<Instant>,
    /// A position behind which nothing of ours is on the way.
    idle: CommitPosition,
    idle_wanted: bool,
    heard: Instant,
    silence: Duration,
}

impl Stream {
    pub(crate) fn new(
        wire: Wire,
        assembler: Assembler,
        lookup: Lookup,
        handover: Arc<Handover>,
        position: CommitPosition,
        timeout: Option<Duration>,
        slot: String,
    ) -> Self {
        Self {
            wire,
            assembler,
            lookup,
            handover,
            slot,
            ready: Vec::new(),
            feedback: Feedback::new(timeout, position),
            handed: position,
            handed_at: None,
            idle: position,
            idle_wanted: false,
            heard: Instant::now(),
            silence: timeout.map_or(SILENCE, |timeout| (2 * timeout).max(SHORTEST_SILENCE)),
        }
    }

    /// Starts to read a slot that was made just now.
    pub(crate) async fn start(&mut self, publication: &str, position: CommitPosition) -> Result<()> {
        slot::start(&mut self.wire, &self.slot, publication, position).await
    }

    /// Reads until the other end stops it.
    ///
    /// # Errors
    /// Why there will be no more.
    pub(crate) async fn run(mut self) -> Result<()> {
        self.heard = Instant::now();
        loop {
            self.take_messages().await?;
            self.hand_idle_over();
            let room = self.handover.has_room();
            tokio::select! {
                biased;
                () = self.handover.stopped() => {
                    // The server need not send again what is durable.
                    let _ = self.feedback.send(&mut self.wire, &self.handover, false).await;
                    self.wire.close().await;
                    return Ok(());
                }
                _ = self.feedback.ticker.tick() => {
                    if !room {
                        self.heard = Instant::now();
                    }
                    self.feedback.tick(&mut self.wire, &self.handover, self.heard).await?;
                    if self.heard.elapsed() > self.silence {
                        let error = Error::new(&code::SOURCE_UNREACHABLE, OPERATION).with("silent for seconds", self.silence.as_secs());
                        return Err(error.transient());
                    }
                }
                () = self.handover.confirmation() => self.feedback.confirmed(&mut self.wire, &self.handover).await?,
                () = self.handover.freed(), if !room => {}
                read = self.wire.read(OPERATION), if room => {
                    read?;
                    self.heard = Instant::now();
                }
            }
        }
    }

    /// Takes the whole messages that are there, as long as the hand-over has room.
    async fn take_messages(&mut self) -> Result<()> {
        let mut at = 0;
        let mut bytes = 0;
        loop {
            if bytes >= PIECE_BYTES {
                self.handover.put(&mut self.ready);
                bytes = 0;
            }
            if bytes == 0 && !self.handover.has_room() {
                break;
            }
            let Some(frame) = self.wire.frame(at)? else { break };
            match frame.tag {
                b'd' => self.copy_data(frame).await?,
                b'N' | b'S' => {}
                b'E' => return Err(self.refused(frame)),
                b'c' | b'C' | b'Z' => {
                    return Err(Error::new(&code::SOURCE_UNREACHABLE, OPERATION).because("the server ended the stream").transient());
                }
                tag => return Err(malformed(OPERATION, tag)),
            }
            at = frame.end;
            bytes += frame.end - frame.start;
        }
        self.wire.advance(at);
        self.handover.put(&mut self.ready);
        if self.feedback.due {
            self.feedback.send(&mut self.wire, &self.handover, false).await?;
        }
        Ok(())
    }

    fn refused(&self, frame: Frame) -> Error {
        let refusal = refusal(self.wire.body(frame));
        // The slot exists while it is read: what does not is the publication.
        if refusal.state == "42704" {
            return Error::new(&code::PUBLICATION_MISSING, OPERATION).because(refusal.message);
        }
        slot::of_start(refusal, &self.slot, OPERATION)
    }

    async fn copy_data(&mut self, frame: Frame) -> Result<()> {
        let mut body = self.wire.body(frame);
        match body.split_first() {
            // Data: where it begins, where the server is, when it was sent.
            Some((b'w', rest)) if rest.len() >= 24 => {
                body = rest;
                self.feedback.seen(body.get_u64());
                self.take(Frame { start: frame.start + 25, ..frame }).await
            }
            // Keepalive: how far everything was sent, when, whether it wants an answer.
            Some((b'k', rest)) if rest.len() >= 17 => {
                body = rest;
                let sent = body.get_u64();
                body.advance(8);
                self.feedback.seen(sent);
                if body.get_u8() != 0 {
                    self.feedback.due = true;
                    self.idle_wanted = true;
                }
                if self.assembler.is_idle() {
                    self.idle = self.idle.max(CommitPosition::new(sent));
                }
                Ok(())
            }
            _ => Err(malformed(OPERATION, frame.tag)),
        }
    }

    /// Takes one message of the plugin, with whatever must be asked before.
    async fn take(&mut self, message: Frame) -> Result<()> {
        let before = self.ready.len();
        let mut fill: Option<Fill> = None;
        let mut looked_up = false;
        loop {
            let step = match self.assembler.take(self.wire.body(message), fill.as_ref(), &mut self.ready) {
                Err(error) if error.code() == &code::TYPE_MOVED && !looked_up => {
                    let announced = self.assembler.announced(self.wire.body(message)).ok_or(error)?;
                    looked_up = true;
                    self.describe(announced).await?;
                    continue;
                }
                step => step?,
            };
            match step {
                Step::Taken => break,
                Step::Describe(relation) => {
                    self.describe(relation).await?;
                    break;
                }
                Step::Reselect(missing) => {
                    let Self { lookup, wire, feedback, handover, .. } = self;
                    fill = Some(feedback.during(wire, handover, lookup.reselect(&missing)).await?);
                }
            }
        }
        // An empty transaction is an idle moment like any other: not each of them is handed over.
        if let [.., Captured::Idle { position }] = self.ready.get(before..).unwrap_or_default() {
            self.idle = self.idle.max(*position);
            self.ready.pop();
        }
        if let [.., Captured::Commit { meta, .. }] = self.ready.as_slice() {
            self.handed = meta.position;
            self.handed_at = Some(Instant::now());
        }
        Ok(())
    }

    async fn describe(&mut self, message: RelationMessage) -> Result<()> {
        let Self { lookup, wire, feedback, handover, .. } = self;
        let relation = feedback.during(wire, handover, lookup.relation(&message)).await?;
        self.assembler.describe(message, relation);
        Ok(())
    }

    /// Hands an idle moment over, where there is one and it is time.
    fn hand_idle_over(&mut self) {
        if !self.assembler.is_idle() || self.idle <= self.handed {
            self.idle_wanted = false;
            return;
        }
        if !self.idle_wanted && self.handed_at.is_some_and(|at| at.elapsed() < IDLE) {
            return;
        }
        self.handover.put(&mut vec![Captured::Idle { position: self.idle }]);
        self.handed = self.idle;
        self.handed_at = Some(Instant::now());
        self.idle_wanted = false;
    }
}
