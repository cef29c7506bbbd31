//! Tests against real servers.

mod source;
