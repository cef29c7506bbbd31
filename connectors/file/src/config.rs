//! What an operator chooses about a file source.

use std::path::PathBuf;

/// What an operator chooses about a file source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The file. It must exist when the source is opened; it may grow for ever.
    pub path: PathBuf,
}
