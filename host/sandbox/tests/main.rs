//! Transforms run in the real engine: the built-in guest, and hostile ones written for the purpose.

mod chains;
mod guests;
mod hostile;
mod limits;
mod modules;
mod programs;
mod support;
