//! What the server is told: how far everything is durable, on a timer that nothing behind it can stop.

use std::time::Duration;

use tidegate_api::{CommitPosition, Error, Result, code};
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::handover::Handover;
use crate::source::wire::{Wire, text};

const OPERATION: &str = "send feedback";

/// The server hears from us at least this often, and four times within its own patience.
const FEEDBACK: Duration = Duration::from_secs(10);

/// A newly confirmed position waits no longer than this.
const PROMPT: Duration = Duration::from_secs(1);

/// A server that takes no answer for this long is given up.
const STUCK: Duration = Duration::from_secs(30);

/// The server's `wal_sender_timeout` as it holds for this session; `None` where it is off.
pub(crate) async fn server_timeout(replication: &mut Wire) -> Result<Option<Duration>> {
    let sql = "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'wal_sender_timeout'";
    let rows = replication.query(sql, "read wal_sender_timeout").await?;
    let milliseconds = rows.first().and_then(|row| text(row, 0).parse().ok()).unwrap_or(60_000);
    Ok((milliseconds > 0).then(|| Duration::from_millis(milliseconds)))
}

/// What the server is told.
pub(super) struct Feedback {
    pub(super) ticker: Interval,
    /// The longest silence of ours.
    interval: Duration,
    received: u64,
    told: CommitPosition,
    told_at: Instant,
    /// Whether the server asked.
    pub(super) due: bool,
}

impl Feedback {
    pub(super) fn new(timeout: Option<Duration>, position: CommitPosition) -> Self {
        let interval = timeout.map_or(FEEDBACK, |timeout| FEEDBACK.min(timeout / 4)).max(Duration::from_millis(10));
        let mut ticker = tokio::time::interval(interval.min(PROMPT));
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { ticker, interval, received: position.offset(), told: CommitPosition::ZERO, told_at: Instant::now(), due: false }
    }

    pub(super) fn seen(&mut self, position: u64) {
        self.received = self.received.max(position);
    }

    /// Tells what is due by now; asks for an answer where the server has been silent.
    pub(super) async fn tick(&mut self, wire: &mut Wire, handover: &Handover, heard: Instant) -> Result<()> {
        if handover.confirmed() > self.told || self.told_at.elapsed() + self.interval / 8 >= self.interval {
            self.send(wire, handover, heard.elapsed() >= self.interval).await?;
        }
        Ok(())
    }

    /// Something was confirmed: told at once, unless something was told just now.
    pub(super) async fn confirmed(&mut self, wire: &mut Wire, handover: &Handover) -> Result<()> {
        if handover.confirmed() > self.told && self.told_at.elapsed() >= PROMPT / 10 {
            self.send(wire, handover, false).await?;
        }
        Ok(())
    }

    /// Waits for something else while the ticks go on.
    pub(super) async fn during<T>(&mut self, wire: &mut Wire, handover: &Handover, what: impl Future<Output = Result<T>>) -> Result<T> {
        let mut what = std::pin::pin!(what);
        loop {
            tokio::select! {
                answer = &mut what => return answer,
                _ = self.ticker.tick() => self.tick(wire, handover, Instant::now()).await?,
            }
        }
    }

    pub(super) async fn send(&mut self, wire: &mut Wire, handover: &Handover, ask: bool) -> Result<()> {
        // Invariant 1: flushed and applied are what was confirmed as durable, never what was only received.
        let durable = handover.confirmed();
        let received = self.received.max(durable.offset());
        let mut message = [0u8; 34];
        let mut rest: &mut [u8] = &mut message;
        bytes::BufMut::put_u8(&mut rest, b'r');
        for position in [received, durable.offset(), durable.offset()] {
            bytes::BufMut::put_u64(&mut rest, position);
        }
        bytes::BufMut::put_i64(&mut rest, microseconds_now());
        bytes::BufMut::put_u8(&mut rest, u8::from(ask));
        let sent = tokio::time::timeout(STUCK, wire.send_copy_data(&message, OPERATION)).await;
        sent.unwrap_or_else(|_| Err(Error::new(&code::SOURCE_UNREACHABLE, OPERATION).because("the server takes no answers").transient()))?;
        self.told = durable;
        self.told_at = Instant::now();
        self.due = false;
        Ok(())
    }
}

/// Microseconds since 2000-01-01, for the server's statistics.
fn microseconds_now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX).saturating_sub(946_684_800_000_000)
}
