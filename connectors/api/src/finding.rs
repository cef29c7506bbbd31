//! What a preflight found.

use crate::Code;

/// How serious a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It is as it should be.
    Passed,
    /// It works, but something can go wrong later.
    Warning,
    /// It cannot work.
    Failed,
}

/// One thing that a preflight looked at.
#[derive(Clone, Debug)]
pub struct Finding {
    /// How serious it is.
    pub severity: Severity,
    /// What was looked at, lower case: `wal_level`, `table public.orders: key`.
    pub subject: String,
    /// What was seen: `logical`, `no primary key`.
    pub detail: String,
    /// The code of what is wrong; `None` when it passed.
    pub code: Option<&'static Code>,
    /// The exact fix, SQL where it is SQL; `None` when it passed.
    pub fix: Option<String>,
}

impl Finding {
    /// It is as it should be.
    pub fn passed(subject: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { severity: Severity::Passed, subject: subject.into(), detail: detail.into(), code: None, fix: None }
    }

    /// It works, but something can go wrong later.
    pub fn warning(code: &'static Code, subject: impl Into<String>, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, subject: subject.into(), detail: detail.into(), code: Some(code), fix: Some(fix.into()) }
    }

    /// It cannot work.
    pub fn failed(code: &'static Code, subject: impl Into<String>, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { severity: Severity::Failed, ..Self::warning(code, subject, detail, fix) }
    }
}
