//! The built-in guests are what they say, wherever they are built.

mod reproducible;

#[path = "../build/guest.rs"]
mod guest;
