//! What is wrong with a configuration, and where.

use std::fmt;

use serde::de::{self, Expected, Unexpected};
use tidegate_api::{Code, Error, code};

use crate::suggest;

/// A place in the configuration file; both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// One thing that is wrong. Holds names and rules, never a value: a value may be a secret (Invariant 12).
#[derive(Debug)]
pub(crate) struct Mistake {
    pub(crate) code: &'static Code,
    pub(crate) place: Option<Place>,
    pub(crate) path: Option<String>,
    pub(crate) reason: String,
}

impl Mistake {
    pub(crate) fn new(code: &'static Code, reason: impl Into<String>) -> Self {
        Self { code, place: None, path: None, reason: reason.into() }
    }

    /// Says where it is, unless that is known more exactly already.
    #[must_use]
    pub(crate) fn or_at(mut self, place: Place, path: impl fmt::Display) -> Self {
        self.place.get_or_insert(place);
        self.path.get_or_insert_with(|| path.to_string());
        self
    }

    /// The error that the user sees; `file` is the configuration as it was named.
    pub(crate) fn into_error(self, file: &str) -> Error {
        let mut error = Error::new(self.code, "read configuration");
        error = match self.place {
            Some(Place { line, column }) => error.with("at", format_args!("{file}:{line}:{column}")),
            None => error.with("at", file),
        };
        if let Some(path) = self.path.filter(|path| !path.is_empty()) {
            error = error.with("path", path);
        }
        error.because(self.reason)
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Mistake {}

impl de::Error for Mistake {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Self::new(&code::CONFIG_VALUE, reason.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(&code::CONFIG_SYNTAX, format!("expected {expected}, found {}", kind(&found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(&code::CONFIG_VALUE, format!("expected {expected}, found another {}", kind(&found)))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let hint = suggest::hint(field, expected.iter().copied());
        Self::new(&code::CONFIG_SYNTAX, format!("unknown key `{field}`{hint}; allowed here: {}", expected.join(", ")))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let hint = suggest::hint(variant, expected.iter().copied());
        Self::new(&code::CONFIG_VALUE, format!("unknown word `{variant}`{hint}; allowed here: {}", expected.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(&code::CONFIG_SYNTAX, format!("the key `{field}` is missing"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(&code::CONFIG_SYNTAX, format!("the key `{field}` is there twice"))
    }
}

fn kind(found: &Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "true or false",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "whole number",
        Unexpected::Float(_) => "number",
        Unexpected::Str(_) | Unexpected::Char(_) => "text",
        Unexpected::Unit => "nothing",
        Unexpected::Seq => "list",
        Unexpected::Map => "mapping",
        _ => "value",
    }
}
