//! The launcher is held to what it promises.

mod faults;
mod launcher;
