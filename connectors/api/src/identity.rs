//! Whose positions these are, and what a transform means.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What a position belongs to (Invariant 7). Two identities that differ in any part are different sources:
/// a position of one is never "already applied" for the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SourceIdentity {
    /// The server's system identifier, or another name that a restored copy of the source would keep.
    pub system: String,
    /// The timeline: it changes when a standby is promoted. 0 where the source has none.
    pub timeline: u32,
    /// The database, or the file.
    pub database: String,
    /// Told apart from an earlier slot of the same name: the consistent point at which this slot was created.
    pub epoch: String,
}

impl SourceIdentity {
    /// 64 lower-case hexadecimal digits: SHA-256 over the four parts, each with its length in front.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for part in [&self.system, &self.timeline.to_string(), &self.database, &self.epoch] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        hex::encode(hash.finalize())
    }
}

impl fmt::Display for SourceIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "system {} timeline {} database {} slot epoch {}", self.system, self.timeline, self.database, self.epoch)
    }
}

/// SHA-256 of a transform's canonical definition (Invariant 6): mapping, document format, `on_drop`, and every stage with
/// its configuration, limits and module hash. Made by [`canonical::fingerprint`](crate::canonical::fingerprint).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = hex::FromHexError;

    fn from_str(text: &str) -> Result<Self, hex::FromHexError> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes)?;
        Ok(Self(bytes))
    }
}
