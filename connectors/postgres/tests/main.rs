//! Tests against real servers.

mod destination;
mod source;
