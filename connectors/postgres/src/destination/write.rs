//! A run's mutations on their way: read and encoded on a blocking thread, group by group, while the server writes the group before.

use std::sync::Arc;

use tidegate_api::fold::{self, Group};
use tidegate_api::{Batch, PipelineRecord, Result};
use tokio::sync::mpsc;

use super::broken;
use super::check::INLINE_BYTES;
use super::client::Session;
use super::encode::{self, Arrays};

/// Encoded groups, in order. At most three are in memory: one that is written, one that waits, one under construction.
enum Encoded<T> {
    Here(std::vec::IntoIter<T>),
    Coming(mpsc::Receiver<Result<T>>),
}

impl<T: Send + 'static> Encoded<T> {
    fn of(run: &Arc<[Batch]>, encode: impl Fn(&Group<'_>) -> T + Send + 'static) -> Result<Self> {
        if run.iter().map(Batch::bytes).sum::<u64>() <= INLINE_BYTES {
            let all: Result<Vec<T>> = fold::groups(run).map(|group| group.map(|group| encode(&group))).collect();
            return Ok(Self::Here(all?.into_iter()));
        }
        let (sender, receiver) = mpsc::channel(1);
        let run = run.clone();
        tokio::task::spawn_blocking(move || {
            for group in fold::groups(&run) {
                if sender.blocking_send(group.map(|group| encode(&group))).is_err() {
                    return; // the transaction was given up
                }
            }
        });
        Ok(Self::Coming(receiver))
    }

    async fn next(&mut self) -> Result<Option<T>> {
        match self {
            Self::Here(groups) => Ok(groups.next()),
            Self::Coming(groups) => groups.recv().await.transpose(),
        }
    }
}

/// Writes a run over what is there, stores `record`, and commits.
pub(super) async fn merge(session: &Session, pipeline: &str, run: &Arc<[Batch]>, record: Option<&PipelineRecord>) -> Result<()> {
    let mut groups = Encoded::of(run, Arrays::of)?;
    let mut group = groups.next().await?;
    while let Some(next) = groups.next().await? {
        if let Some(before) = group.replace(next) {
            session.write(pipeline, &before).await?;
        }
    }
    session.finish(pipeline, group.as_ref(), record).await
}

/// Copies a run into the table, and commits. `false`, with nothing kept, when it holds what a plain copy cannot do: a key that is
/// there already, above all.
pub(super) async fn copy(session: &Session, pipeline: &str, run: &Arc<[Batch]>) -> Result<bool> {
    let (sender, pieces) = mpsc::channel(2);
    let (name, rows) = (pipeline.to_owned(), run.clone());
    let encoding = tokio::task::spawn_blocking(move || encode::rows(&name, &rows, |piece| sender.blocking_send(piece).is_ok()));
    let copied = session.copy(pieces).await?;
    let removals = encoding.await.unwrap_or_else(|error| Err(broken("apply snapshot", error)))?;
    match removals {
        Some(removals) if copied => session.finish_copy(pipeline, &removals).await.map(|()| true),
        _ => Ok(false),
    }
}
