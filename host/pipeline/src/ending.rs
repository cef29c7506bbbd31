//! Why a session ended, and which errors end it in which way.

use tidegate_api::{Code, Error, code};

use crate::status::PoisonReport;

/// What the operator must mend in the row, in the transform or in the settings: nothing else is wrong.
const OPERATOR: [&Code; 4] = [&code::TRANSACTION_TOO_LARGE, &code::DOCUMENT_TOO_LARGE, &code::KEY_TOO_LARGE, &code::DESTINATION_CONTENT];

/// Why a session ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The operator wants something.
    Command,
    /// The transform refused a change.
    Poison(Box<PoisonReport>),
    /// The destination holds another transform's documents.
    Drifted(Error),
    /// Something that the operator must mend.
    Paused(Error),
    /// It may pass by itself: another session is tried, as often as the policy says.
    Again(Error),
    /// The source's view of a snapshot was lost: a new one is tried for ever.
    Lost(Error),
    /// It does not pass by itself, or did not within the attempts.
    Failed(Error),
}

/// The outcome of a step of a session.
pub(crate) type Step<T> = Result<T, Ending>;

impl Ending {
    /// What an error means that is not tried again.
    pub(crate) fn given_up(error: Error) -> Self {
        match error.code() {
            code if OPERATOR.contains(&code) => Self::Paused(error),
            code if *code == code::REBUILD_REQUIRED => Self::Drifted(error),
            _ => Self::Failed(error),
        }
    }

    /// What an error of a snapshot's source means.
    pub(crate) fn of_view(error: Error) -> Self {
        if error.is_transient() { Self::Lost(error) } else { Self::given_up(error) }
    }

    /// Whether one transaction of a run may be the reason, and the others are good. A destination that confirmed a wrong
    /// position is not asked again: its answer to a repetition would hide it.
    pub(crate) fn may_be_of_one(&self) -> bool {
        match self {
            Self::Paused(_) => true,
            Self::Failed(error) => *error.code() != code::POSITION_MISMATCH,
            _ => false,
        }
    }
}

impl From<Error> for Ending {
    /// What an error of the relay or of the transform means.
    fn from(error: Error) -> Self {
        if error.is_transient() { Self::Again(error) } else { Self::given_up(error) }
    }
}
