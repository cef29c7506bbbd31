//! Durations (`100ms`, `5s`) and sizes (`4GiB`).

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// A length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Duration);

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

const TIMES: &[(&str, u64)] = &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

const SIZES: &[(&str, u64)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

/// A whole number followed by one of the units; `None` for anything else, also where it is too large.
fn measure(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start_matches(' '))?;
    digits.parse::<u64>().ok()?.checked_mul(*factor)
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let refused = || D::Error::custom("a duration is a whole number and one of the units ms, s, m, h, d, for example 100ms");
        measure(&text, TIMES).map(|milliseconds| Self(Duration::from_millis(milliseconds))).ok_or_else(refused)
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number of bytes, or a text such as 4GiB")]
enum NumberOrText {
    Number(u64),
    Text(String),
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let refused = || {
            D::Error::custom(
                "a size is a whole number of bytes, or one with a unit: B, KiB, MiB, GiB, TiB, KB, MB, GB, TB, for example 4GiB",
            )
        };
        match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Number(bytes) => Ok(Self(bytes)),
            NumberOrText::Text(text) => measure(&text, SIZES).map(Self).ok_or_else(refused),
        }
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9]+ *(ms|s|m|h|d)$", "examples": ["100ms", "5s"]})
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [
            {"type": "integer", "minimum": 0},
            {"type": "string", "pattern": "^[0-9]+ *([KMGT]i?)?B$", "examples": ["4GiB"]},
        ]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measure_is_a_whole_number_and_a_known_unit() {
        assert_eq!(measure("100ms", TIMES), Some(100));
        assert_eq!(measure("5 s", TIMES), Some(5000));
        assert_eq!(measure("4GiB", SIZES), Some(4 << 30));
        for bad in ["5 parsecs", "5", "", "ms", "-5s", "1.5s", "99999999999999999999s", "9999999999999999999d", "5S"] {
            assert_eq!(measure(bad, TIMES), None, "{bad}");
        }
    }
}
