use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tidegate_api::{
    BoxFuture, Capture, Captured, CommitPosition, Error, Finding, Result, Resume, SnapshotSource, Source, SourceIdentity, SourceStatus,
    TableName, code,
};
use tidegate_relay::{CaptureEvent, capture};
use tokio::sync::watch;

use crate::support::*;

/// What a source does, in order: each list is one opening.
#[derive(Default)]
struct Scripted {
    openings: Mutex<VecDeque<Opening>>,
    seen: Mutex<Vec<Resume>>,
    confirmed: watch::Sender<u64>,
}

enum Opening {
    Refused(Error),
    As(SourceIdentity, Vec<Result<Vec<Captured>>>),
}

struct Running {
    identity: SourceIdentity,
    script: VecDeque<Result<Vec<Captured>>>,
    confirmed: watch::Sender<u64>,
}

impl Scripted {
    fn new(openings: Vec<Opening>) -> Self {
        Self { openings: Mutex::new(openings.into()), ..Self::default() }
    }

    async fn confirms(&self, position: u64) {
        self.confirmed.subscribe().wait_for(|confirmed| *confirmed >= position).await.unwrap();
    }
}

impl Source for Scripted {
    fn preflight<'a>(&'a self, _: &'a [TableName]) -> BoxFuture<'a, Result<Vec<Finding>>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn open<'a>(&'a self, resume: &'a Resume, _: &'a [TableName]) -> BoxFuture<'a, Result<Box<dyn Capture>>> {
        self.seen.lock().unwrap().push(resume.clone());
        let opening = self.openings.lock().unwrap().pop_front();
        Box::pin(async move {
            match opening {
                Some(Opening::Refused(error)) => Err(error),
                Some(Opening::As(identity, script)) => {
                    Ok(Box::new(Running { identity, script: script.into(), confirmed: self.confirmed.clone() }) as Box<dyn Capture>)
                }
                None => Err(Error::new(&code::SLOT_LOST, "open")),
            }
        })
    }

    fn remove(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn status(&self) -> BoxFuture<'_, Result<SourceStatus>> {
        Box::pin(std::future::ready(Ok(SourceStatus::default())))
    }

    fn snapshots(&self) -> Option<&dyn SnapshotSource> {
        None
    }
}

impl Capture for Running {
    fn identity(&self) -> &SourceIdentity {
        &self.identity
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Captured>>> {
        match self.script.pop_front() {
            Some(item) => Box::pin(std::future::ready(item)),
            None => Box::pin(std::future::pending()),
        }
    }

    fn confirm(&mut self, position: CommitPosition) {
        self.confirmed.send_modify(|confirmed| {
            assert!(*confirmed <= position.offset(), "confirmed positions grow");
            *confirmed = position.offset();
        });
    }
}

fn away() -> Error {
    Error::new(&code::SOURCE_UNREACHABLE, "read").transient()
}

fn names(events: &Mutex<Vec<String>>) -> Vec<String> {
    events.lock().unwrap().clone()
}

fn recorder() -> (Arc<Mutex<Vec<String>>>, impl Fn(CaptureEvent<'_>) + Send + Sync) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let report = {
        let events = Arc::clone(&events);
        move |event: CaptureEvent<'_>| {
            let text = match event {
                CaptureEvent::Connected { .. } => "connected".to_owned(),
                CaptureEvent::Waiting { error, .. } => error.code().name.to_owned(),
                CaptureEvent::Captured { transactions, head, .. } => format!("{transactions} to {head}"),
                _ => "other".to_owned(),
            };
            events.lock().unwrap().push(text);
        }
    };
    (events, report)
}

#[tokio::test]
async fn a_new_source_is_created_durably_and_captured_through_whatever_passes() {
    let place = Place::new();
    let disk = Arc::new(place.disk.clone());
    let log = tidegate_relay::Relay::open(place.folder.path(), disk, options()).unwrap().log(SOURCE).unwrap();
    let whole = large(30, 2, 2, 20);
    let source = Scripted::new(vec![
        Opening::Refused(away()),
        Opening::As(identity(), vec![Ok(vec![transaction(10, 1), transaction(20, 1)]), Ok(whole[..2].to_vec()), Err(away())]),
        Opening::As(identity(), vec![Ok(whole.clone()), Err(Error::new(&code::SLOT_LOST, "read"))]),
    ]);
    let (events, report) = recorder();
    let error = capture(&source, &log, &[], &report).await;
    assert!(is(&error, &code::SLOT_LOST));
    let resumed = |durable| Resume::At { identity: identity(), durable: at(durable) };
    assert_eq!(*source.seen.lock().unwrap(), [Resume::New, Resume::Interrupted, resumed(20)]);
    let waiting = "source-unreachable";
    assert_eq!(names(&events), [waiting, "connected", "2 to 0/14", "0 to 0/14", waiting, "connected", "1 to 0/1E"]);
    assert_eq!((*source.confirmed.borrow(), log.head()), (30, at(30)));
}

#[tokio::test]
async fn an_error_that_does_not_pass_ends_the_capture() {
    for refusal in [&code::SOURCE_AHEAD_OF_RELAY, &code::TABLE_WITHOUT_KEY] {
        let place = Place::new();
        let log = place.log();
        let source = Scripted::new(vec![Opening::Refused(Error::new(refusal, "open"))]);
        assert!(is(&capture(&source, &log, &[], &|_| ()).await, refusal));
    }
}

#[tokio::test]
async fn another_identity_is_never_captured() {
    // Invariant 7
    let place = Place::new();
    let log = place.log();
    let other = SourceIdentity { system: "1".to_owned(), ..identity() };
    let source = Scripted::new(vec![Opening::As(other, vec![Ok(vec![transaction(10, 1)])])]);
    assert!(is(&capture(&source, &log, &[], &|_| ()).await, &code::SOURCE_IDENTITY));
    assert_eq!((*source.confirmed.borrow(), log.head()), (0, at(0)));
}

#[tokio::test]
async fn what_was_durable_before_a_crash_is_confirmed_after_it() {
    let place = Place::new();
    let log = place.log();
    log.append(vec![transaction(10, 1)]).await.unwrap();
    let source = Scripted::new(vec![Opening::As(identity(), vec![Ok(vec![transaction(10, 1)])])]);
    tokio::select! {
        error = capture(&source, &log, &[], &|_| ()) => panic!("{error}"),
        () = source.confirms(10) => {}
    }
}

#[tokio::test]
async fn nothing_is_confirmed_that_could_not_be_stored() {
    let place = Place::new();
    let log = place.log();
    log.append(vec![transaction(10, 1)]).await.unwrap();
    place.disk.fail_syncs(2);
    let openings = (0..3).map(|_| Opening::As(identity(), vec![Ok(vec![transaction(20, 1)])])).collect();
    let source = Scripted::new(openings);
    let (events, report) = recorder();
    let head = |_: &()| log.head().offset();
    tokio::select! {
        error = capture(&source, &log, &[], &report) => panic!("{error}"),
        () = source.confirms(20) => assert_eq!(head(&()), 20),
    }
    let failed = "relay-write";
    assert_eq!(names(&events), ["connected", failed, "connected", failed, "connected", "1 to 0/14"][..names(&events).len()]);
    let again = Resume::At { identity: identity(), durable: at(10) };
    assert_eq!(*source.seen.lock().unwrap(), vec![again; 3]);
}

#[tokio::test]
async fn an_idle_position_is_durable_before_it_is_confirmed() {
    let place = Place::new();
    let log = place.log();
    let source = Scripted::new(vec![Opening::As(identity(), vec![Ok(vec![idle(50)])])]);
    tokio::select! {
        error = capture(&source, &log, &[], &|_| ()) => panic!("{error}"),
        () = source.confirms(50) => {}
    }
    drop(log);
    place.disk.cut();
    place.disk.restart(tidegate_relay::power_cut::Survival::Nothing);
    assert_eq!(durable(&place.log()), 50);
}

#[tokio::test]
async fn idle_positions_wait_unless_transactions_flow() {
    let hour = std::time::Duration::from_secs(3600);
    let place = Place::with(tidegate_relay::Options { idle_every: hour, ..options() });
    let log = place.log();
    let script = vec![
        Ok(vec![transaction(10, 1)]),
        Ok(vec![idle(20)]),
        Ok(vec![idle(30)]),
        Ok(vec![transaction(40, 1), idle(45)]),
        Ok(vec![idle(50)]),
    ];
    let source = Scripted::new(vec![Opening::As(identity(), script)]);
    let (events, report) = recorder();
    tokio::select! {
        error = capture(&source, &log, &[], &report) => panic!("{error}"),
        () = source.confirms(45) => {}
    }
    assert_eq!(log.head(), at(45));
    assert!(!names(&events).iter().any(|event| event.starts_with("0 to")), "{:?}", names(&events));
}
