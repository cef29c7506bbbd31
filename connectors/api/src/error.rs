//! One error type at every seam.

use std::fmt;

use crate::Code;

/// The result of a seam.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Whether trying again may help. Nothing is retried unless somebody who knows said [`Transient`](Self::Transient).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transience {
    /// It will fail again.
    #[default]
    Permanent,
    /// It may pass by itself: the server is away, busy, or asked to be tried again.
    Transient,
}

/// What went wrong: a stable [`Code`], whether it may pass, where it happened, and what is known about it.
///
/// It never holds a secret or a row value (Invariant 12). `Display` is one line, lower case, with the code in front.
pub struct Error(Box<Inner>);

struct Inner {
    code: &'static Code,
    transience: Transience,
    operation: &'static str,
    context: Vec<(&'static str, String)>,
    fix: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// A permanent error of this code, met while doing `operation` ("start replication").
    pub fn new(code: &'static Code, operation: &'static str) -> Self {
        Self(Box::new(Inner { code, transience: Transience::Permanent, operation, context: Vec::new(), fix: None, source: None }))
    }

    /// Adds a fact: a name, a position, a size; never a secret, never a row value.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.0.context.push((name, value.to_string()));
        self
    }

    /// The error below this one. Its text is shown: it must hold no secret and no row value.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Replaces the code's general advice by what exactly to do here, for example the SQL statement.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.0.fix = Some(fix.into());
        self
    }

    /// Says that it may pass by itself.
    #[must_use]
    pub fn transient(mut self) -> Self {
        self.0.transience = Transience::Transient;
        self
    }

    /// The stable code.
    pub fn code(&self) -> &'static Code {
        self.0.code
    }

    /// Whether it may pass by itself.
    pub fn transience(&self) -> Transience {
        self.0.transience
    }

    /// Whether it may pass by itself.
    pub fn is_transient(&self) -> bool {
        self.0.transience == Transience::Transient
    }

    /// What was being done.
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// The facts, in the order in which they were added.
    pub fn context(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.context.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// What to do about it.
    pub fn advice(&self) -> &str {
        self.0.fix.as_deref().unwrap_or(self.0.code.fix)
    }

    /// The message without code and advice: summary, operation, facts, causes.
    pub fn message(&self) -> String {
        use fmt::Write as _;
        let mut text = format!("{}: {}", self.0.operation, self.0.code.summary);
        for (index, (name, value)) in self.0.context.iter().enumerate() {
            let _ = write!(text, "{}{name}={value}", if index == 0 { " (" } else { ", " });
        }
        if !self.0.context.is_empty() {
            text.push(')');
        }
        let mut cause = self.0.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static));
        while let Some(error) = cause {
            let _ = write!(text, ": {error}");
            cause = error.source();
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0.code, self.message())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}; fix: {}", self.advice())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // `message` already shows the chain: giving it again would print every cause twice.
        None
    }
}
