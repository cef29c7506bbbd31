//! A change that the transform refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_api::{OnDrop, Operation, Transform};
use tidegate_pipeline::{Parts, Settings, State, Stored, start};

use crate::support::transform::{Verdict, by};
use crate::support::{NAME, Read, World, change, chunk, insert, problem, transaction, until_at, until_state};

/// Refuses the row of key `bad` as long as it is not mended.
fn picky(mended: &Arc<AtomicBool>) -> Arc<dyn Transform> {
    let mended = Arc::clone(mended);
    by(
        move |change| {
            if change.key == "bad" && !mended.load(Ordering::Relaxed) { Verdict::Poison("required-value-differs") } else { Verdict::Keep }
        },
    )
}

#[tokio::test]
async fn a_refused_change_pauses_behind_the_good_ones_says_where_it_is_and_never_what_it_holds() {
    let world = World::new();
    let mended = Arc::default();
    world
        .append([
            transaction(10, &[insert("1", "{\"v\":1}")]),
            transaction(20, &[insert("2", "{}"), insert("bad", "{\"secret\":\"hunter2\"}")]),
            transaction(30, &[insert("3", "{}")]),
        ])
        .await;
    let handle = world.start_with(picky(&mended));
    let status = until_state(&handle, State::Paused).await;
    assert_eq!((world.checkpoint(), world.document("1")), (Some(10), Some("{\"v\":1}".to_owned())));
    assert_eq!(world.document("2"), None, "a transaction is applied whole or not at all");
    let report = status.poison.clone().unwrap();
    assert_eq!((report.relation.as_str(), report.position.as_str(), report.xid, report.ordinal), ("public.orders", "0/14", 20, Some(1)));
    assert_eq!((report.kind.as_str(), report.size_bytes), ("required-value-differs", 20));
    assert_eq!(report.key_hash, "2f05d4b689d270ca");
    assert_eq!(problem(&status), "TG0304");
    assert!(!format!("{status:?}").contains("hunter2"));

    // As long as nothing is mended, resuming comes to the same place.
    handle.resume().await.unwrap();
    assert_eq!(until_state(&handle, State::Paused).await.poison, Some(report));
    mended.store(true, Ordering::Relaxed);
    handle.resume().await.unwrap();
    let status = until_at(&handle, 30).await;
    assert_eq!((status.error, status.poison), (None, None));
    assert_eq!(world.store.documents(NAME).len(), 4);
    handle.stop().await;
}

#[tokio::test]
async fn a_reset_leads_out_of_poison_by_a_new_snapshot_into_the_emptied_destination() {
    let world = World::new();
    let mended = Arc::default();
    world.append([transaction(10, &[insert("old", "{}")]), transaction(20, &[insert("bad", "{}")])]).await;
    let handle = world.start_with(picky(&mended));
    let first = until_state(&handle, State::Paused).await.snapshot_epoch;
    world.source.add(20, [Read::Rows(chunk(&[change(Operation::Row, "new", Some("{}"))]))]);
    handle.reset().await.unwrap();
    let status = until_at(&handle, 20).await;
    assert_eq!(world.store.documents(NAME).into_keys().map(|(_, key)| key).collect::<Vec<_>>(), ["new"]);
    assert_ne!(status.snapshot_epoch, first);
    handle.stop().await;
}

#[tokio::test]
async fn a_refused_row_of_a_snapshot_pauses_and_resuming_begins_a_new_snapshot() {
    let world = World::new();
    let mended = Arc::default();
    let rows = || Read::Rows(chunk(&[change(Operation::Row, "1", Some("{}")), change(Operation::Row, "bad", Some("{}"))]));
    world.source.add(5, [Read::Rows(chunk(&[change(Operation::Row, "lost", Some("{}"))])), rows()]);
    world.source.add(7, [rows()]);
    let handle = world.start_with(picky(&mended));
    let status = until_state(&handle, State::Paused).await;
    assert_eq!(status.poison.map(|report| (report.position, report.ordinal)), Some(("snapshot".to_owned(), Some(1))));
    mended.store(true, Ordering::Relaxed);
    handle.resume().await.unwrap();
    let resumed = until_at(&handle, 7).await;
    assert_ne!(resumed.snapshot_epoch, status.snapshot_epoch);
    assert_eq!((world.document("1").is_some(), world.document("lost")), (true, None));
    handle.stop().await;
}

#[tokio::test]
async fn an_earlier_version_of_a_dropped_row_is_deleted_unless_it_is_to_be_retained() {
    for (on_drop, left) in [(OnDrop::Delete, None), (OnDrop::Retain, Some("{\"v\":1}".to_owned()))] {
        let world = World::new();
        let transform = by(|change| if change.new == Some(b"{\"v\":2}") { Verdict::Drop } else { Verdict::Keep });
        let settings = Settings { on_drop, ..world.settings() };
        let handle = start(Parts { settings, transform: Some(transform), ..world.parts() }, Stored::default());
        world.append([transaction(10, &[insert("1", "{\"v\":1}")])]).await;
        until_at(&handle, 10).await;
        assert_eq!(world.document("1"), Some("{\"v\":1}".to_owned()));
        world.append([transaction(20, &[change(Operation::Update, "1", Some("{\"v\":2}"))])]).await;
        until_at(&handle, 20).await;
        assert_eq!(world.document("1"), left);
        handle.stop().await;
    }
}
