//! Positions in a source's log.

use std::fmt;
use std::str::FromStr;

/// A place in the write-ahead log: an unsigned 64-bit byte offset, shown as PostgreSQL shows it (`16/B374D848`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

/// The end LSN of a transaction's commit record: the unit of progress. Ordered as commits are.
///
/// A position means nothing without the [`SourceIdentity`](crate::SourceIdentity) that it was read from (Invariant 7).
/// Zero is "before everything".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitPosition(pub Lsn);

impl CommitPosition {
    /// Before every transaction.
    pub const ZERO: Self = Self(Lsn(0));

    /// The position with this byte offset.
    pub const fn new(offset: u64) -> Self {
        Self(Lsn(offset))
    }

    /// The byte offset.
    pub const fn offset(self) -> u64 {
        self.0.0
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xffff_ffff)
    }
}

impl fmt::Display for CommitPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The text is not two groups of one to eight hexadecimal digits with a slash between them.
#[derive(Debug, PartialEq, Eq)]
pub struct ParseLsnError;

impl fmt::Display for ParseLsnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a position has the form 16/B374D848")
    }
}

impl std::error::Error for ParseLsnError {}

impl FromStr for Lsn {
    type Err = ParseLsnError;

    fn from_str(text: &str) -> Result<Self, ParseLsnError> {
        let (high, low) = text.split_once('/').ok_or(ParseLsnError)?;
        let half = |part: &str| {
            let digits = (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_hexdigit());
            if digits { u64::from_str_radix(part, 16).map_err(|_| ParseLsnError) } else { Err(ParseLsnError) }
        };
        Ok(Self(half(high)? << 32 | half(low)?))
    }
}

impl FromStr for CommitPosition {
    type Err = ParseLsnError;

    fn from_str(text: &str) -> Result<Self, ParseLsnError> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_shown_and_read_as_postgresql_shows_it() {
        let lsn = Lsn(0x16_B374_D848);
        assert_eq!(lsn.to_string(), "16/B374D848");
        assert_eq!("16/B374D848".parse(), Ok(lsn));
        assert_eq!("0/0".parse(), Ok(Lsn(0)));
        for bad in ["", "16", "16/", "/1", "16/B374D8481", "g/1", "+1/1", "1/-1"] {
            assert_eq!(bad.parse::<Lsn>(), Err(ParseLsnError), "{bad}");
        }
    }
}
