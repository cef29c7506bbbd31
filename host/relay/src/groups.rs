//! The consumer groups of one source: checkpoints in memory, written at most so often, and who may move them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_api::{CommitPosition, Error, Result, code};

use crate::error::{fenced, internal};
use crate::metadata::{Metadata, Move};

/// The groups of one source.
///
/// What is written takes `turn` first, so that two writes never meet; an acknowledgement takes only `known`, and never
/// waits for the disk.
#[derive(Debug)]
pub(crate) struct Groups {
    metadata: Arc<Metadata>,
    source: String,
    turn: Mutex<()>,
    known: Mutex<BTreeMap<String, Known>>,
}

#[derive(Clone, Debug)]
struct Known {
    /// The last acknowledged position.
    checkpoint: CommitPosition,
    /// What is in the metadata.
    written: CommitPosition,
    generation: u64,
    fence: u64,
    /// Somebody who is not this process has written this group.
    stolen: bool,
}

impl Known {
    fn to(&self, name: &str, checkpoint: CommitPosition) -> Move {
        Move { name: name.to_owned(), checkpoint, generation: self.generation, fence: self.fence }
    }
}

/// How a group is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStatus {
    /// Its name.
    pub name: String,
    /// The last acknowledged position.
    pub checkpoint: CommitPosition,
    /// The fencing token of the last lease.
    pub fence: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Groups {
    pub(crate) fn load(metadata: Arc<Metadata>, source: &str) -> Result<Self> {
        let groups = Self { metadata, source: source.to_owned(), turn: Mutex::new(()), known: Mutex::default() };
        groups.reload()?;
        Ok(groups)
    }

    fn reload(&self) -> Result<()> {
        let known = self.metadata.groups(&self.source)?.into_iter().map(|stored| {
            let (checkpoint, generation, fence) = (stored.checkpoint, stored.generation, stored.fence);
            (stored.name, Known { checkpoint, written: checkpoint, generation, fence, stolen: false })
        });
        *locked(&self.known) = known.collect();
        Ok(())
    }

    /// Adds a group at `head` if there is none of this name.
    pub(crate) fn ensure(&self, name: &str, head: CommitPosition) -> Result<()> {
        let _turn = locked(&self.turn);
        if locked(&self.known).contains_key(name) {
            return Ok(());
        }
        self.metadata.add_group(&self.source, name, head)?;
        let known = Known { checkpoint: head, written: head, generation: 0, fence: 0, stolen: false };
        locked(&self.known).insert(name.to_owned(), known);
        Ok(())
    }

    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        let _turn = locked(&self.turn);
        self.metadata.remove_group(&self.source, name)?;
        locked(&self.known).remove(name);
        Ok(())
    }

    /// Makes the source new again.
    pub(crate) fn forget(&self) -> Result<()> {
        let _turn = locked(&self.turn);
        self.metadata.forget(&self.source)?;
        self.reload()
    }

    pub(crate) fn status(&self) -> Vec<GroupStatus> {
        let known = locked(&self.known);
        let status =
            |(name, group): (&String, &Known)| GroupStatus { name: name.clone(), checkpoint: group.checkpoint, fence: group.fence };
        known.iter().map(status).collect()
    }

    /// Where a group is; `None` before it has moved from where it began: nothing was read for it then.
    pub(crate) fn checkpoint(&self, name: &str) -> Option<CommitPosition> {
        let known = locked(&self.known);
        let group = known.get(name).filter(|group| group.generation > 0 || group.checkpoint != group.written)?;
        Some(group.checkpoint).filter(|checkpoint| *checkpoint > CommitPosition::ZERO)
    }

    /// The lowest checkpoint that is *written*: what is below is needed by nobody, even after a crash.
    pub(crate) fn lowest(&self) -> Option<CommitPosition> {
        locked(&self.known).values().map(|group| group.written.min(group.checkpoint)).min()
    }

    /// A fencing token above every one before, and the checkpoint.
    pub(crate) fn acquire(&self, name: &str, owner: &str, now_ms: u64) -> Result<(u64, CommitPosition)> {
        let _turn = locked(&self.turn);
        let before = self.group(name)?;
        // A destination remembers the highest token that it has seen: the clock keeps tokens growing even where the
        // metadata was lost.
        let fence = before.fence.saturating_add(1).max(now_ms);
        if !self.metadata.raise_fence(&self.source, name, before.fence, fence, owner)? {
            return Err(fenced("acquire group", name, before.fence));
        }
        let mut known = locked(&self.known);
        let group = known.get_mut(name).ok_or_else(|| no_group(name))?;
        group.fence = fence;
        Ok((fence, group.checkpoint))
    }

    /// Whether this lease is still the group's.
    pub(crate) fn check(&self, name: &str, fence: u64, operation: &'static str) -> Result<()> {
        match locked(&self.known).get(name) {
            Some(group) if group.fence == fence && !group.stolen => Ok(()),
            _ => Err(fenced(operation, name, fence)),
        }
    }

    /// Moves the checkpoint forward in memory; `true` if nothing waited to be written before.
    pub(crate) fn acknowledge(&self, name: &str, fence: u64, position: CommitPosition) -> Result<bool> {
        let mut known = locked(&self.known);
        let group = known.get_mut(name).filter(|group| group.fence == fence && !group.stolen);
        let group = group.ok_or_else(|| fenced("acknowledge", name, fence))?;
        if position <= group.checkpoint {
            return Err(internal("acknowledge", "a checkpoint only grows").with("position", position).with("checkpoint", group.checkpoint));
        }
        let clean = group.checkpoint == group.written;
        group.checkpoint = position; // Invariant 3
        Ok(clean)
    }

    /// Puts the checkpoint somewhere else, on the destination's word, durably.
    pub(crate) fn place(&self, name: &str, fence: u64, position: CommitPosition) -> Result<()> {
        let _turn = locked(&self.turn);
        self.check(name, fence, "seek")?;
        self.write(vec![self.group(name)?.to(name, position)])?;
        if let Some(group) = locked(&self.known).get_mut(name) {
            group.checkpoint = position;
        }
        self.check(name, fence, "seek")
    }

    /// Writes the checkpoints that have moved; `true` if there were any.
    pub(crate) fn flush(&self) -> Result<bool> {
        let _turn = locked(&self.turn);
        let moved = |group: &Known| group.checkpoint != group.written && !group.stolen;
        let known = locked(&self.known);
        let moves: Vec<Move> =
            known.iter().filter(|(_, group)| moved(group)).map(|(name, group)| group.to(name, group.checkpoint)).collect();
        drop(known);
        let any = !moves.is_empty();
        if any {
            self.write(moves)?;
        }
        Ok(any)
    }

    fn write(&self, moves: Vec<Move>) -> Result<()> {
        let written = self.metadata.move_checkpoints(&self.source, &moves)?;
        let mut known = locked(&self.known);
        for (to, written) in moves.iter().zip(written) {
            let Some(group) = known.get_mut(&to.name) else { continue };
            if written {
                group.generation += 1;
                group.written = to.checkpoint;
            } else {
                tracing::error!(group = to.name, "another process has written this group's checkpoint: its lease is over");
                group.stolen = true;
            }
        }
        Ok(())
    }

    fn group(&self, name: &str) -> Result<Known> {
        locked(&self.known).get(name).cloned().ok_or_else(|| no_group(name))
    }
}

fn no_group(name: &str) -> Error {
    Error::new(&code::INTERNAL, "use group").with("group", name).with("rule", "the group was removed")
}
