//! Snapshots.

use tidegate_api::{CommitPosition, Provisioned, SnapshotState, code};

use super::scene::{Outcome, Scene, refused, same};
use crate::batches::{snapshot, transaction, upsert};

const INCOMPLETE: Provisioned = Provisioned::Ready { checkpoint: None, snapshot: SnapshotState::Incomplete };

pub(super) async fn a_snapshot_batch_twice_gives_the_same_state(scene: &mut Scene<'_>) -> Outcome {
    let epoch = scene.epoch();
    scene.destination().provision(&scene.owner).await?;
    scene.destination().begin_snapshot(&scene.owner, &epoch).await?;
    let first = snapshot(&epoch, 0, &[upsert("public.a", "1", r#"{"n":1}"#), upsert("public.a", "2", r#"{"n":2}"#)]);
    let second = snapshot(&epoch, 1, &[upsert("public.b", "1", r#"{"n":3}"#)]);
    for batch in [&first, &first, &second, &first] {
        scene.destination().apply_snapshot(&scene.owner, &epoch, batch).await?;
    }
    let expected = [("public.a", "1", r#"{"n":1}"#), ("public.a", "2", r#"{"n":2}"#), ("public.b", "1", r#"{"n":3}"#)];
    scene.destination().complete_snapshot(&scene.owner, &epoch, CommitPosition::new(100)).await?;
    scene.holds("after repeated batches", &expected).await?;
    scene.restart().await;
    scene.holds("after a restart", &expected).await
}

pub(super) async fn the_boundary_of_a_completed_snapshot_is_the_checkpoint(scene: &mut Scene<'_>) -> Outcome {
    scene.begin_with(&[upsert("public.a", "1", "{}")]).await?;
    scene.is_at("at once", 100).await?;
    scene.restart().await;
    scene.is_at("after a restart", 100).await?;
    let run = [transaction(99, &[]), transaction(100, &[upsert("public.a", "1", r#"{"by":"old"}"#)])];
    let answers: Vec<bool> =
        scene.apply(&run).await?.iter().map(|answer| matches!(answer, tidegate_api::Applied::AlreadyApplied(_))).collect();
    same("transactions up to the boundary", answers, vec![true, true])?;
    scene.holds("afterwards", &[("public.a", "1", "{}")]).await
}

pub(super) async fn completing_again_keeps_a_checkpoint_that_has_moved_on(scene: &mut Scene<'_>) -> Outcome {
    let epoch = scene.begin_with(&[]).await?;
    scene.destination().complete_snapshot(&scene.owner, &epoch, CommitPosition::new(100)).await?;
    scene.is_at("completed twice", 100).await?;
    scene.apply_new(&transaction(105, &[])).await?;
    scene.destination().complete_snapshot(&scene.owner, &epoch, CommitPosition::new(100)).await?;
    scene.is_at("completed a third time", 105).await
}

pub(super) async fn rows_of_another_epoch_are_refused(scene: &mut Scene<'_>) -> Outcome {
    let (lost, open) = (scene.epoch(), scene.epoch());
    scene.destination().provision(&scene.owner).await?;
    let rows = snapshot(&lost, 0, &[upsert("public.a", "late", "{}")]);
    let apply = scene.destination().apply_snapshot(&scene.owner, &lost, &rows).await;
    refused("before any was begun", apply, &code::SNAPSHOT_REFUSED)?;
    scene.destination().begin_snapshot(&scene.owner, &lost).await?;
    scene.destination().begin_snapshot(&scene.owner, &open).await?;
    let apply = scene.destination().apply_snapshot(&scene.owner, &lost, &rows).await;
    refused("rows of the lost epoch", apply, &code::SNAPSHOT_REFUSED)?;
    let complete = scene.destination().complete_snapshot(&scene.owner, &lost, CommitPosition::new(100)).await;
    refused("completion of the lost epoch", complete, &code::SNAPSHOT_REFUSED)?;
    same("afterwards", scene.destination().provision(&scene.owner).await?, INCOMPLETE)?;
    scene.holds("afterwards", &[]).await
}

pub(super) async fn a_late_batch_of_a_completed_snapshot_is_refused(scene: &mut Scene<'_>) -> Outcome {
    let epoch = scene.begin_with(&[upsert("public.a", "1", "{}")]).await?;
    let late = snapshot(&epoch, 1, &[upsert("public.a", "1", r#"{"by":"late"}"#)]);
    let apply = scene.destination().apply_snapshot(&scene.owner, &epoch, &late).await;
    refused("the same instance", apply, &code::SNAPSHOT_REFUSED)?;
    scene.restart().await;
    let apply = scene.destination().apply_snapshot(&scene.owner, &epoch, &late).await;
    refused("another instance", apply, &code::SNAPSHOT_REFUSED)?;
    scene.holds("afterwards", &[("public.a", "1", "{}")]).await
}

pub(super) async fn an_interrupted_snapshot_begins_anew_with_nothing_left(scene: &mut Scene<'_>) -> Outcome {
    let epoch = scene.epoch();
    scene.destination().provision(&scene.owner).await?;
    scene.destination().begin_snapshot(&scene.owner, &epoch).await?;
    let rows = snapshot(&epoch, 0, &[upsert("public.a", "deleted meanwhile", "{}")]);
    scene.destination().apply_snapshot(&scene.owner, &epoch, &rows).await?;
    scene.restart().await;
    same("after the interruption", scene.destination().provision(&scene.owner).await?, INCOMPLETE)?;
    scene.begin_with(&[upsert("public.a", "1", "{}")]).await?;
    scene.holds("after the second attempt", &[("public.a", "1", "{}")]).await
}

pub(super) async fn nothing_is_streamed_into_an_open_snapshot(scene: &mut Scene<'_>) -> Outcome {
    let epoch = scene.epoch();
    scene.destination().provision(&scene.owner).await?;
    scene.destination().begin_snapshot(&scene.owner, &epoch).await?;
    let batch = transaction(105, &[upsert("public.a", "1", "{}")]);
    refused("apply", scene.destination().apply(&scene.owner, &[batch]).await, &code::SNAPSHOT_REFUSED)?;
    scene.holds("afterwards", &[]).await
}

pub(super) async fn a_new_snapshot_empties_this_pipeline_alone(scene: &mut Scene<'_>) -> Outcome {
    let first = scene.owner.clone();
    scene.begin_with(&[upsert("public.a", "1", "{}")]).await?;
    scene.owner = scene.other(|owner| owner.pipeline.push_str("-second"));
    scene.begin_with(&[upsert("public.a", "1", r#"{"of":"second"}"#)]).await?;
    scene.apply_new(&transaction(105, &[upsert("public.b", "1", "{}")])).await?;
    let epoch = scene.epoch();
    scene.destination().begin_snapshot(&scene.owner, &epoch).await?;
    scene.holds("of the emptied pipeline", &[]).await?;
    same("the emptied pipeline", scene.destination().provision(&scene.owner).await?, INCOMPLETE)?;
    scene.owner = first;
    scene.holds("of the other pipeline", &[("public.a", "1", "{}")]).await?;
    scene.is_at("the other pipeline", 100).await
}
