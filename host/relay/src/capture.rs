//! From the source into the log: open, read, make durable, confirm; and again after whatever may pass.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tidegate_api::{Capture, Captured, CommitPosition, Error, Result, Resume, Source, SourceIdentity, TableName};
use tokio::time::{Instant, sleep, sleep_until};

use crate::failpoints;
use crate::log::Log;
use crate::options::Options;

/// What happens to a capture.
#[derive(Debug)]
#[non_exhaustive]
pub enum CaptureEvent<'a> {
    /// The source is open.
    Connected {
        /// Whose changes these are.
        identity: &'a SourceIdentity,
    },
    /// It failed in a way that may pass; it is tried again after a pause.
    Waiting {
        /// Why.
        error: &'a Error,
        /// The pause.
        pause: Duration,
    },
    /// Transactions are durable.
    Captured {
        /// How many.
        transactions: u64,
        /// The bytes of their chunks.
        bytes: u64,
        /// Everything up to here is durable.
        head: CommitPosition,
    },
}

/// Reads `source` into `log` for as long as it may, and gives the error after which it may not. Drop it to stop.
///
/// Errors that are transient are reported, and tried again after a pause that grows. A source that was never created is,
/// and a creation that was interrupted is begun again.
pub async fn capture(source: &dyn Source, log: &Log, tables: &[TableName], report: &(dyn Fn(CaptureEvent<'_>) + Send + Sync)) -> Error {
    let mut backoff = Backoff::new(&log.shared.options);
    loop {
        let Err(error) = stream(source, log, tables, report, &mut backoff).await;
        if !error.is_transient() {
            return error;
        }
        let pause = backoff.pause();
        report(CaptureEvent::Waiting { error: &error, pause });
        sleep(pause).await;
    }
}

async fn stream(
    source: &dyn Source,
    log: &Log,
    tables: &[TableName],
    report: &(dyn Fn(CaptureEvent<'_>) + Send + Sync),
    backoff: &mut Backoff,
) -> Result<std::convert::Infallible> {
    let mut capture = open(source, log, tables).await?;
    report(CaptureEvent::Connected { identity: capture.identity() });
    log.abandon_parts();
    // Durable before a crash, perhaps not confirmed.
    if log.head() > CommitPosition::ZERO {
        capture.confirm(log.head()); // Invariant 1
    }
    let every = log.shared.options.idle_every;
    let mut idle: Option<CommitPosition> = None;
    let mut stored: Option<Instant> = None;
    loop {
        let due = idle.map(|_| stored.map_or_else(Instant::now, |stored| stored + every));
        let captured = tokio::select! {
            captured = capture.next() => captured?,
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => Vec::new(),
        };
        let flows = captured.iter().any(|item| !matches!(item, Captured::Idle { .. }));
        let position = captured.iter().filter_map(idle_position).max();
        idle = idle.max(position).filter(|position| *position > log.head());
        let due = due.is_some_and(|due| due <= Instant::now());
        let group = match idle {
            _ if flows => captured,
            Some(position) if due => vec![Captured::Idle { position }],
            _ => continue,
        };
        let (transactions, bytes) = measure(&group);
        failpoints::after_decode();
        let head = log.append(group).await?;
        capture.confirm(head); // Invariant 1: behind the append, and only what it says
        stored = Some(Instant::now());
        idle = idle.filter(|position| *position > head);
        backoff.reset();
        report(CaptureEvent::Captured { transactions, bytes, head });
    }
}

async fn open(source: &dyn Source, log: &Log, tables: &[TableName]) -> Result<Box<dyn Capture>> {
    let resume = log.resume();
    let known = log.identity();
    if known.is_none() {
        log.begin_creation()?;
    }
    let capture = source.open(&resume, tables).await?;
    match (&resume, known) {
        (Resume::At { .. }, Some(known)) => log.shared.same(&known, capture.identity())?, // Invariant 7
        _ => log.created(capture.identity())?,
    }
    Ok(capture)
}

fn idle_position(item: &Captured) -> Option<CommitPosition> {
    if let Captured::Idle { position } = item { Some(*position) } else { None }
}

fn measure(group: &[Captured]) -> (u64, u64) {
    group.iter().fold((0, 0), |(transactions, bytes), item| match item {
        Captured::Part(chunk) => (transactions, bytes + chunk.bytes().len() as u64),
        Captured::Commit { chunk, .. } => (transactions + 1, bytes + chunk.bytes().len() as u64),
        Captured::Idle { .. } => (transactions, bytes),
    })
}

/// Pauses that double, with jitter, so that many daemons do not come back at the same moment.
#[derive(Debug)]
struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    fn new(options: &Options) -> Self {
        let (first, longest) = options.backoff;
        Self { first, longest, next: first }
    }

    /// Between half of the pause that is due and all of it.
    fn pause(&mut self) -> Duration {
        let due = self.next;
        self.next = (due * 2).min(self.longest);
        let random = RandomState::new().hash_one(0) as u32;
        due.mul_f64(0.5 + f64::from(random) / f64::from(u32::MAX) / 2.0)
    }

    fn reset(&mut self) {
        self.next = self.first;
    }
}
