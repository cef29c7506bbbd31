//! What this crate needs of the daemon.

use std::fmt;

use tidegate_api::{BoxFuture, Result};

use crate::status::{Source, Status};

/// What an operator may do to a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Stop after the transaction in work.
    Pause,
    /// Go on.
    Resume,
    /// Empty the destination and fill it anew.
    Reset,
}

impl Act {
    /// Its word in commands, addresses and the audit log.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Reset => "reset",
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The running daemon, as its operator sees it.
pub trait Host: Send + Sync + 'static {
    /// How everything is, without asking any server.
    fn status(&self) -> Status;

    /// Acts on a pipeline. The audit row is there already.
    ///
    /// # Errors
    /// Nothing was changed, or the error says what was.
    fn act<'a>(&'a self, pipeline: &'a str, act: Act) -> BoxFuture<'a, Result<()>>;

    /// Lets go of what is held for a pipeline that is not configured any more. The audit row is there already.
    ///
    /// # Errors
    /// When it is configured, or unknown.
    fn remove<'a>(&'a self, pipeline: &'a str) -> BoxFuture<'a, Result<()>>;

    /// What each source holds at its server, asked now.
    fn slots(&self) -> BoxFuture<'_, Vec<Source>>;

    /// Removes what a source holds at its server. The audit row is there already.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    fn drop_slot<'a>(&'a self, source: &'a str) -> BoxFuture<'a, Result<()>>;
}
