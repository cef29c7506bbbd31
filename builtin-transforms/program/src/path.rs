//! Paths: names joined by dots, from the root down. A name that holds a dot cannot be reached; there is no array syntax.

/// A path that keeps to the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(String);

/// Lengths are counted in UTF-16 units.
const MAX_UNITS: usize = 2048;
const MAX_SEGMENTS: usize = 64;
const MAX_SEGMENT_UNITS: usize = 256;

impl Path {
    /// # Errors
    /// The rule that the text breaks.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        if text.encode_utf16().count() > MAX_UNITS {
            return Err(format!("a path has at most {MAX_UNITS} UTF-16 units"));
        }
        if text.split('.').count() > MAX_SEGMENTS {
            return Err(format!("a path has at most {MAX_SEGMENTS} segments"));
        }
        for (index, segment) in text.split('.').enumerate() {
            // White space of Unicode, not only of ASCII.
            if segment.chars().all(char::is_whitespace) {
                return Err(format!("segment {} of the path is blank", index + 1));
            }
            if segment.encode_utf16().count() > MAX_SEGMENT_UNITS {
                return Err(format!("segment {} of the path has more than {MAX_SEGMENT_UNITS} UTF-16 units", index + 1));
            }
        }
        Ok(Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('.')
    }
}
