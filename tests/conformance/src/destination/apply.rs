//! Transactions.

use tidegate_api::{Applied, ChangeId, CommitPosition, code};

use super::scene::{Outcome, Scene, Unexpected, refused, same};
use crate::batches::{delete, delete_collection, transaction, transaction_in_chunks, transaction_with_a_broken_end, upsert};

fn new(position: u64) -> Applied {
    Applied::Applied(CommitPosition::new(position))
}

fn old(position: u64) -> Applied {
    Applied::AlreadyApplied(CommitPosition::new(position))
}

pub(super) async fn each_batch_is_answered_with_exactly_its_own_position(scene: &mut Scene<'_>) -> Outcome {
    scene.begin_with(&[]).await?;
    let run = [105, 107, 1000].map(|position| transaction(position, &[upsert("public.a", &position.to_string(), "{}")]));
    same("the answers", scene.apply(&run).await?, vec![new(105), new(107), new(1000)])?;
    scene.is_at("the checkpoint", 1000).await?;
    same("the answers, again", scene.apply(&run).await?, vec![old(105), old(107), old(1000)])
}

pub(super) async fn what_was_applied_is_there_after_a_restart(scene: &mut Scene<'_>) -> Outcome {
    scene.begin_with(&[]).await?;
    for position in [105, 110, 115] {
        scene.apply_new(&transaction(position, &[upsert("public.a", &position.to_string(), "{}")])).await?;
        scene.restart().await;
        scene.is_at("after a restart", position).await?;
    }
    scene.holds("after restarts", &[("public.a", "105", "{}"), ("public.a", "110", "{}"), ("public.a", "115", "{}")]).await
}

pub(super) async fn redelivery_of_a_changed_payload_keeps_the_accepted_content(scene: &mut Scene<'_>) -> Outcome {
    // Invariant 4
    scene.begin_with(&[upsert("public.a", "42", r#"{"stage":"snapshot"}"#)]).await?;
    let accepted = r#"{"stage":"transaction"}"#;
    scene.apply_new(&transaction(105, &[upsert("public.a", "42", accepted)])).await?;
    let wrong = [transaction(105, &[upsert("public.a", "42", r#"{"stage":"wrong"}"#), upsert("public.a", "43", "{}")])];
    same("in this process", scene.apply(&wrong).await?, vec![old(105)])?;
    scene.holds("in this process", &[("public.a", "42", accepted)]).await?;
    scene.restart().await;
    scene.is_at("after a restart", 105).await?;
    same("after a restart", scene.apply(&wrong).await?, vec![old(105)])?;
    scene.holds("after a restart", &[("public.a", "42", accepted)]).await
}

pub(super) async fn a_run_that_was_applied_in_part_applies_the_rest(scene: &mut Scene<'_>) -> Outcome {
    scene.begin_with(&[]).await?;
    scene.apply_new(&transaction(105, &[upsert("public.a", "1", r#"{"v":1}"#)])).await?;
    scene.restart().await;
    let run = [
        transaction(105, &[upsert("public.a", "1", r#"{"v":"wrong"}"#), upsert("public.a", "9", "{}")]),
        transaction(110, &[upsert("public.a", "2", r#"{"v":2}"#)]),
        transaction(115, &[upsert("public.a", "3", r#"{"v":3}"#)]),
    ];
    same("the answers", scene.apply(&run).await?, vec![old(105), new(110), new(115)])?;
    let expected = [("public.a", "1", r#"{"v":1}"#), ("public.a", "2", r#"{"v":2}"#), ("public.a", "3", r#"{"v":3}"#)];
    scene.holds("afterwards", &expected).await?;
    scene.is_at("afterwards", 115).await
}

pub(super) async fn an_empty_batch_moves_the_checkpoint(scene: &mut Scene<'_>) -> Outcome {
    scene.begin_with(&[upsert("public.a", "1", "{}")]).await?;
    scene.apply_new(&transaction(105, &[])).await?;
    scene.is_at("one empty batch", 105).await?;
    same("among others", scene.apply(&[transaction(106, &[]), transaction(107, &[])]).await?, vec![new(106), new(107)])?;
    same("no batch at all", scene.apply(&[]).await?, Vec::new())?;
    scene.restart().await;
    scene.is_at("after a restart", 107).await?;
    scene.holds("afterwards", &[("public.a", "1", "{}")]).await
}

pub(super) async fn positions_use_all_64_bits(scene: &mut Scene<'_>) -> Outcome {
    scene.begin_with(&[]).await?;
    for position in [(1 << 53) + 1, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX - 1, u64::MAX] {
        scene.apply_new(&transaction(position, &[])).await?;
        scene.restart().await;
        scene.is_at("after a restart", position).await?;
    }
    same("a low one", scene.apply(&[transaction(200, &[])]).await?, vec![old(200)])
}

pub(super) async fn a_run_that_fails_leaves_nothing_behind(scene: &mut Scene<'_>) -> Outcome {
    scene.begin_with(&[upsert("public.a", "1", "{}")]).await?;
    let many: Vec<String> = (0..9000).map(|key| key.to_string()).collect();
    let many: Vec<_> = many.iter().map(|key| upsert("public.a", key, r#"{"half":true}"#)).collect();
    let broken = transaction_with_a_broken_end(110, &many);
    match scene.apply(&[broken]).await {
        Err(error) if error.code() == &code::SPOOL_FAILED => {}
        answer => return Err(Unexpected(format!("a batch that cannot be read: {answer:?}"))),
    }
    scene.holds("after the failure", &[("public.a", "1", "{}")]).await?;
    scene.is_at("after the failure", 100).await?;
    scene.apply_new(&transaction(110, &[upsert("public.a", "2", "{}")])).await?;
    scene.restart().await;
    scene.is_at("after the second attempt", 110).await?;
    scene.holds("after the second attempt", &[("public.a", "1", "{}"), ("public.a", "2", "{}")]).await
}

pub(super) async fn a_run_out_of_order_is_refused(scene: &mut Scene<'_>) -> Outcome {
    if scene.destination().max_run() < 2 {
        return Ok(());
    }
    scene.begin_with(&[]).await?;
    let run = [transaction(110, &[upsert("public.a", "1", "{}")]), transaction(105, &[])];
    refused("falling positions", scene.destination().apply(&scene.owner, &run).await, &code::INTERNAL)?;
    scene.holds("afterwards", &[]).await?;
    scene.is_at("afterwards", 100).await
}

pub(super) async fn a_large_transaction_is_applied_whole(scene: &mut Scene<'_>) -> Outcome {
    let keys: Vec<String> = (0..12_000).map(|key| key.to_string()).collect();
    let filler = "x".repeat(600);
    let documents: Vec<String> = keys.iter().map(|key| format!(r#"{{"n":{key},"filler":"{filler}"}}"#)).collect();
    let all: Vec<_> = keys.iter().zip(&documents).map(|(key, document)| upsert("public.a", key, document)).collect();
    let chunks: Vec<_> = all.chunks(1500).collect();
    scene.begin_with(&[upsert("public.a", "5", "{}"), upsert("public.a", "untouched", "{}")]).await?;
    scene.apply_new(&transaction_in_chunks(105, &chunks)).await?;
    scene.restart().await;
    scene.is_at("afterwards", 105).await?;
    let mut expected: Vec<_> = keys.iter().zip(&documents).map(|(key, document)| ("public.a", key.as_str(), document.as_str())).collect();
    expected.push(("public.a", "untouched", "{}"));
    let found = scene.documents().await;
    same("documents", found.len(), expected.len())?;
    scene.holds("afterwards", &expected).await.map_err(|_| Unexpected("some documents are not what was applied".to_owned()))
}

pub(super) async fn a_changed_key_moves_the_document_in_one_batch(scene: &mut Scene<'_>) -> Outcome {
    scene.begin_with(&[upsert("public.a", "1", "{}"), upsert("public.a", "2", "{}")]).await?;
    let moved = [delete("public.a", "1"), upsert("public.a", "3", r#"{"was":1}"#)];
    scene.apply_new(&transaction(105, &moved)).await?;
    scene.holds("after the move", &[("public.a", "2", "{}"), ("public.a", "3", r#"{"was":1}"#)]).await?;
    let swapped = [
        delete("public.a", "2"),
        upsert("public.a", "4", r#"{"was":2}"#),
        delete("public.a", "3"),
        upsert("public.a", "2", r#"{"was":3}"#),
    ];
    scene.apply_new(&transaction(110, &swapped)).await?;
    scene.holds("after a swap", &[("public.a", "2", r#"{"was":3}"#), ("public.a", "4", r#"{"was":2}"#)]).await
}

pub(super) async fn a_collection_delete_removes_what_came_before_it_and_nothing_else(scene: &mut Scene<'_>) -> Outcome {
    scene.begin_with(&[upsert("public.a", "1", "{}"), upsert("public.a", "2", "{}"), upsert("public.b", "1", "{}")]).await?;
    let batch = [
        upsert("public.a", "3", "{}"),
        upsert("public.b", "2", "{}"),
        delete_collection("public.a"),
        upsert("public.a", "2", r#"{"after":true}"#),
    ];
    scene.apply_new(&transaction(105, &batch)).await?;
    let expected = [("public.a", "2", r#"{"after":true}"#), ("public.b", "1", "{}"), ("public.b", "2", "{}")];
    scene.holds("after a deletion", &expected).await?;
    let run = [
        transaction(110, &[upsert("public.a", "4", "{}"), delete_collection("public.b")]),
        transaction(115, &[delete_collection("public.a"), upsert("public.b", "5", "{}")]),
        transaction(120, &[delete_collection("public.c")]),
    ];
    scene.apply(&run).await?;
    scene.holds("after deletions over a run", &[("public.b", "5", "{}")]).await
}

pub(super) async fn mutations_of_one_key_leave_the_last_one_across_batches_and_chunks(scene: &mut Scene<'_>) -> Outcome {
    scene.begin_with(&[upsert("public.a", "1", "{}")]).await?;
    let chunks: [&[_]; 3] = [
        &[upsert("public.a", "1", r#"{"v":1}"#), delete("public.a", "2"), delete("public.a", "1")],
        &[upsert("public.a", "2", r#"{"v":2}"#), upsert("public.a", "1", r#"{"v":3}"#)],
        &[delete("public.a", "2"), upsert("public.a", "3", r#"{"v":4}"#)],
    ];
    let run = [
        transaction_in_chunks(105, &chunks),
        transaction(110, &[upsert("public.a", "3", r#"{"v":5}"#), upsert("public.a", "4", "{}")]),
        transaction(115, &[delete("public.a", "4"), delete("public.a", "never there")]),
    ];
    scene.apply(&run).await?;
    scene.holds("afterwards", &[("public.a", "1", r#"{"v":3}"#), ("public.a", "3", r#"{"v":5}"#)]).await?;
    let mut wrote: Vec<(String, String)> = scene.documents().await.into_iter().map(|one| (one.key, one.change_id)).collect();
    wrote.sort();
    let id = |position, ordinal| ChangeId { position: CommitPosition::new(position), ordinal }.to_string();
    same("what wrote each", wrote, vec![("1".to_owned(), id(105, 4)), ("3".to_owned(), id(110, 0))])
}

pub(super) async fn pipelines_do_not_see_each_other(scene: &mut Scene<'_>) -> Outcome {
    let first = scene.owner.clone();
    scene.begin_with(&[upsert("public.a", "1", r#"{"of":"first"}"#)]).await?;
    scene.owner = scene.other(|owner| owner.pipeline.push_str("-second"));
    scene.begin_with(&[upsert("public.a", "1", r#"{"of":"second"}"#)]).await?;
    scene.apply_new(&transaction(105, &[delete_collection("public.a"), upsert("public.a", "2", "{}")])).await?;
    scene.holds("of the second", &[("public.a", "2", "{}")]).await?;
    scene.owner = first;
    scene.is_at("the first", 100).await?;
    scene.apply_new(&transaction(105, &[])).await?;
    scene.holds("of the first", &[("public.a", "1", r#"{"of":"first"}"#)]).await
}
