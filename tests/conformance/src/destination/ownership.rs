//! Who may write.

use tidegate_api::{CommitPosition, Fingerprint, Provisioned, Severity, SnapshotState, code};

use super::scene::{Outcome, Scene, Unexpected, refused, same};
use crate::batches::{snapshot, transaction, upsert};

const NOTHING: Provisioned = Provisioned::Ready { checkpoint: None, snapshot: SnapshotState::Absent };
const DRIFTED: Fingerprint = Fingerprint([0x22; 32]);

pub(super) async fn a_preflight_finds_nothing_wrong_and_leaves_nothing_behind(scene: &mut Scene<'_>) -> Outcome {
    for finding in scene.destination().preflight().await? {
        if finding.severity == Severity::Failed {
            return Err(Unexpected(format!("{finding:?}")));
        }
    }
    same("documents", scene.documents().await, Vec::new())
}

pub(super) async fn a_pipeline_starts_with_nothing_and_provisioning_again_changes_nothing(scene: &mut Scene<'_>) -> Outcome {
    same("the first time", scene.destination().provision(&scene.owner).await?, NOTHING)?;
    same("the second time", scene.destination().provision(&scene.owner).await?, NOTHING)?;
    scene.restart().await;
    same("after a restart", scene.destination().provision(&scene.owner).await?, NOTHING)?;
    scene.begin_with(&[upsert("public.a", "1", "{}")]).await?;
    scene.is_at("with documents", 100).await?;
    scene.holds("with documents", &[("public.a", "1", "{}")]).await
}

pub(super) async fn a_pipeline_that_never_began_is_taken_over_by_another_definition(scene: &mut Scene<'_>) -> Outcome {
    scene.destination().provision(&scene.owner).await?;
    scene.owner.fingerprint = DRIFTED;
    scene.owner.source.timeline += 1;
    same("by another definition", scene.destination().provision(&scene.owner).await?, NOTHING)?;
    scene.begin_with(&[]).await?;
    scene.is_at("afterwards", 100).await
}

pub(super) async fn drift_of_the_fingerprint_requires_a_rebuild(scene: &mut Scene<'_>) -> Outcome {
    let epoch = scene.begin_with(&[upsert("public.a", "1", "{}")]).await?;
    scene.restart().await;
    let drifted = scene.other(|owner| owner.fingerprint = DRIFTED);
    let found = Provisioned::RebuildRequired { found: scene.owner.fingerprint };
    same("provision", scene.destination().provision(&drifted).await?, found.clone())?;
    same("provision again", scene.destination().provision(&drifted).await?, found)?;
    let batch = transaction(105, &[upsert("public.a", "1", r#"{"by":"drifted"}"#)]);
    refused("apply", scene.destination().apply(&drifted, std::slice::from_ref(&batch)).await, &code::REBUILD_REQUIRED)?;
    let complete = scene.destination().complete_snapshot(&drifted, &epoch, CommitPosition::new(200)).await;
    refused("complete snapshot", complete, &code::REBUILD_REQUIRED)?;
    scene.holds("after drift", &[("public.a", "1", "{}")]).await?;
    scene.is_at("the first definition", 100).await?;

    scene.owner = drifted;
    scene.begin_with(&[upsert("public.a", "2", "{}")]).await?;
    scene.holds("after the rebuild", &[("public.a", "2", "{}")]).await?;
    scene.is_at("after the rebuild", 100).await
}

pub(super) async fn another_source_is_never_already_applied(scene: &mut Scene<'_>) -> Outcome {
    // Invariant 7
    scene.begin_with(&[upsert("public.a", "1", "{}")]).await?;
    scene.restart().await;
    for part in 0..4 {
        let other = scene.other(|owner| match part {
            0 => owner.source.system.push('0'),
            1 => owner.source.timeline += 1,
            2 => owner.source.database.push('2'),
            _ => owner.source.epoch.push('0'),
        });
        let found = Provisioned::OtherSource { found: scene.owner.source.clone() };
        same("provision", scene.destination().provision(&other).await?, found)?;
        let batch = transaction(90, &[upsert("public.a", "1", r#"{"by":"other"}"#)]);
        refused("apply at or below the checkpoint", scene.destination().apply(&other, &[batch]).await, &code::DESTINATION_OWNED)?;
    }
    scene.holds("afterwards", &[("public.a", "1", "{}")]).await?;
    scene.is_at("the first source", 100).await
}

pub(super) async fn a_lower_fence_is_refused_in_every_call(scene: &mut Scene<'_>) -> Outcome {
    let epoch = scene.begin_with(&[upsert("public.a", "1", "{}")]).await?;
    scene.restart().await;
    let old = scene.other(|owner| owner.fence -= 1);
    let destination = scene.destination();
    let fenced = &code::DESTINATION_FENCED;
    refused("provision", destination.provision(&old).await, fenced)?;
    refused("begin snapshot", destination.begin_snapshot(&old, &scene.epoch()).await, fenced)?;
    let rows = snapshot(&epoch, 1, &[upsert("public.a", "2", "{}")]);
    refused("apply snapshot", destination.apply_snapshot(&old, &epoch, &rows).await, fenced)?;
    refused("complete snapshot", destination.complete_snapshot(&old, &epoch, CommitPosition::new(100)).await, fenced)?;
    refused("apply", destination.apply(&old, &[transaction(105, &[upsert("public.a", "3", "{}")])]).await, fenced)?;
    refused("apply of what was applied", destination.apply(&old, &[transaction(90, &[])]).await, fenced)?;
    scene.holds("afterwards", &[("public.a", "1", "{}")]).await?;
    scene.is_at("afterwards", 100).await
}

pub(super) async fn a_higher_fence_that_writes_shuts_the_old_worker_out(scene: &mut Scene<'_>) -> Outcome {
    scene.begin_with(&[]).await?;
    let old = scene.owner.clone();
    scene.owner.fence = u64::MAX;
    scene.apply_new(&transaction(105, &[upsert("public.a", "1", "{}")])).await?;
    let late = transaction(110, &[upsert("public.a", "1", r#"{"by":"late"}"#)]);
    refused("the old worker", scene.destination().apply(&old, &[late]).await, &code::DESTINATION_FENCED)?;
    scene.restart().await;
    refused("the old worker after a restart", scene.destination().provision(&old).await, &code::DESTINATION_FENCED)?;
    scene.holds("afterwards", &[("public.a", "1", "{}")]).await?;
    scene.is_at("afterwards", 105).await
}

pub(super) async fn a_pipeline_that_was_never_provisioned_is_refused(scene: &mut Scene<'_>) -> Outcome {
    let stranger = scene.other(|owner| owner.pipeline.push_str("-stranger"));
    scene.destination().provision(&scene.owner).await?;
    let batch = transaction(105, &[upsert("public.a", "1", "{}")]);
    match scene.destination().apply(&stranger, &[batch]).await {
        Err(_) => Ok(()),
        Ok(answer) => Err(Unexpected(format!("answered {answer:?}"))),
    }
}
