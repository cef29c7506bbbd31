//! Programs, seen from outside.

mod differential;
mod model;
