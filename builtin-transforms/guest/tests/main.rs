//! The guest's answers, run on the host.

mod answers;
