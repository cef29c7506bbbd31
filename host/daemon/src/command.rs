//! One file for each command.

pub(crate) mod client;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod slots;
pub(crate) mod transform;
pub(crate) mod validate;
pub(crate) mod version;
