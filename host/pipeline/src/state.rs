//! The states of a pipeline, and the one table of what leads from one to the other.

use std::fmt;

/// What a pipeline is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It waits for its source, takes its group over and asks the destination.
    Provisioning,
    /// It copies the rows that were there before the stream.
    Snapshotting,
    /// It applies what was captured meanwhile.
    CatchingUp,
    /// It applies transactions as they come.
    Running,
    /// It waits for the operator: who paused it, or who must mend what it met (see the error).
    Paused,
    /// The destination was filled by another transform: it must be filled anew.
    Rebuilding,
    /// Source and destination are compared.
    Reconciling,
    /// It stopped on an error.
    Faulted,
    /// It has ended.
    Stopped,
}

/// What happens to a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The worker (re)starts what it was doing from the destination's checkpoint.
    Start,
    /// The destination has no complete snapshot: one is begun.
    SnapshotBegan,
    /// The destination has everything up to a position; the stream goes on behind it.
    StreamBegan,
    /// Nothing more is waiting in the relay.
    CaughtUp,
    /// The operator pauses it, or it met something that the operator must mend.
    Pause,
    /// The operator lets it go on.
    Resume,
    /// The operator starts it again with a new snapshot.
    Reset,
    /// The destination holds another transform's documents.
    Drifted,
    /// An error that does not pass.
    Fail,
    /// The process ends.
    Stop,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 9] = [
        Self::Provisioning,
        Self::Snapshotting,
        Self::CatchingUp,
        Self::Running,
        Self::Paused,
        Self::Rebuilding,
        Self::Reconciling,
        Self::Faulted,
        Self::Stopped,
    ];

    /// The state after `event`; `None` where it may not happen.
    pub fn after(self, event: Event) -> Option<Self> {
        use State::*;
        match (self, event) {
            (Stopped, Event::Start) => Some(Provisioning),
            (Stopped, Event::Stop) => Some(Stopped),
            (Stopped, _) => None,
            (_, Event::Stop) => Some(Stopped),

            (Paused | Rebuilding | Faulted, Event::Resume | Event::Reset) => Some(Provisioning),
            (Rebuilding | Faulted, Event::Pause) => Some(Paused),
            (Paused, Event::Pause) => Some(Paused),
            (Paused | Rebuilding | Faulted, _) => None,

            (_, Event::Pause) => Some(Paused),
            (_, Event::Reset | Event::Start) => Some(Provisioning),
            (_, Event::Fail) => Some(Faulted),
            (Provisioning, Event::Drifted) => Some(Rebuilding),
            (CatchingUp | Running, Event::Drifted) => Some(Rebuilding),
            (_, Event::Drifted) => None,
            (Provisioning, Event::SnapshotBegan) => Some(Snapshotting),
            (Provisioning | Snapshotting, Event::StreamBegan) => Some(CatchingUp),
            (CatchingUp | Running, Event::CaughtUp) => Some(Running),
            (_, Event::Resume | Event::SnapshotBegan | Event::StreamBegan | Event::CaughtUp) => None,
        }
    }

    /// The name, as `status` shows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Provisioning => "provisioning",
            Self::Snapshotting => "snapshotting",
            Self::CatchingUp => "catching-up",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Rebuilding => "rebuilding",
            Self::Reconciling => "reconciling",
            Self::Faulted => "faulted",
            Self::Stopped => "stopped",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: [Event; 10] = [
        Event::Start,
        Event::SnapshotBegan,
        Event::StreamBegan,
        Event::CaughtUp,
        Event::Pause,
        Event::Resume,
        Event::Reset,
        Event::Drifted,
        Event::Fail,
        Event::Stop,
    ];

    #[test]
    fn every_state_has_a_way_out_by_the_operator_and_none_skips_provisioning() {
        for state in State::ALL {
            assert_eq!(state.after(Event::Stop), Some(State::Stopped), "{state}");
            if state != State::Stopped {
                assert_eq!(state.after(Event::Reset), Some(State::Provisioning), "{state}");
            }
            for event in EVENTS {
                let after = state.after(event);
                if matches!(after, Some(State::Snapshotting)) {
                    assert_eq!((state, event), (State::Provisioning, Event::SnapshotBegan));
                }
                if after == Some(State::CatchingUp) {
                    assert!(matches!(state, State::Provisioning | State::Snapshotting), "{state} {event:?}");
                }
            }
        }
    }

    #[test]
    fn what_waits_for_the_operator_waits_for_nobody_else() {
        for state in [State::Paused, State::Rebuilding, State::Faulted] {
            for event in [Event::Start, Event::SnapshotBegan, Event::StreamBegan, Event::CaughtUp, Event::Drifted, Event::Fail] {
                assert_eq!(state.after(event), None, "{state} {event:?}");
            }
            assert_eq!(state.after(Event::Resume), Some(State::Provisioning), "{state}");
        }
    }
}
