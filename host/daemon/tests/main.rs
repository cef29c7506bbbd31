//! The binary from the outside.

mod configuration;
mod documents;
mod tidegate;
mod transform;
