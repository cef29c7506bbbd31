//! The instructions, one by one.

use std::borrow::Cow;

use crate::change::PartitionKey;
use crate::compare::{Comparison, Incomparable, equal_string};
use crate::edit::{Editor, said};
use crate::literal::Literal;
use crate::overlay::{Source, Value};
use crate::plan::{Part, Step};
use crate::poison::{Outcome, Poison, poison};
use crate::scan::{self, has_escapes};
use crate::tree::Tree;

/// A document on its way through a program.
pub(crate) struct Run<'a> {
    pub(crate) editor: Editor<'a>,
    /// The limit.
    pub(crate) depth: usize,
    /// The document cannot have become larger than this, as long as it need not be measured.
    pub(crate) most_bytes: u64,
    /// Something was put into it that may make it too large or too deep.
    pub(crate) measure: bool,
    pub(crate) route: Option<Route>,
}

/// A partition key.
pub(crate) enum Route {
    /// These bytes of the document.
    Document(usize, usize),
    Text(String),
}

impl Route {
    pub(crate) fn key(self, document: &[u8]) -> PartitionKey<'_> {
        PartitionKey(match self {
            Self::Document(start, end) => match std::str::from_utf8(document.get(start..end).unwrap_or_default()) {
                Ok(key) => Cow::Borrowed(key),
                Err(_) => String::from_utf8_lossy(document.get(start..end).unwrap_or_default()),
            },
            Self::Text(key) => Cow::Owned(key),
        })
    }
}

impl Run<'_> {
    /// Runs one instruction. True: the document is dropped.
    pub(crate) fn step(&mut self, step: &Step) -> Outcome<bool> {
        match step {
            Step::Remove(path) => self.editor.remove(path)?,
            Step::Set { path, value, whole, height, growth } => {
                self.most_bytes = self.most_bytes.saturating_add(*growth);
                self.measure |= path.len() + height > self.depth;
                self.editor.place(path, Value::Text(*value), *whole)?;
            }
            Step::Copy { from, to, growth } => {
                let Some(value) = self.editor.find(from)? else {
                    let reason = format!("{} is missing or null", self.path(from));
                    return Err(poison("copy-source-missing", reason));
                };
                self.most_bytes = self.most_bytes.saturating_add(*growth);
                self.measure |= to.len() > self.depth;
                match value {
                    Value::Text(text) if !matches!(self.editor.texts.first(text), b'{' | b'[') => {
                        self.most_bytes = self.most_bytes.saturating_add(text.len() as u64);
                    }
                    Value::Object(object) => {
                        self.editor.overlay.objects[object].shared = true;
                        self.editor.overlay.bend();
                        self.measure = true;
                    }
                    Value::Text(_) | Value::Gone => self.measure = true,
                }
                self.editor.place(to, value, None)?;
            }
            Step::Route(path) => self.route = Some(self.route(path)?),
            Step::DropWhenEquals(path, literal) => return self.equals(path, literal),
            Step::RequireEquals(path, literal) => {
                if !self.equals(path, literal)? {
                    let reason = format!("{} is not what the program requires", self.path(path));
                    return Err(poison("required-value-differs", reason));
                }
            }
        }
        Ok(false)
    }

    fn path(&self, path: &[Part]) -> String {
        path.last().map_or_else(String::new, |last| self.editor.plan.path(path, last))
    }

    #[inline(always)]
    fn equals(&mut self, path: &[Part], literal: &Literal) -> Outcome<bool> {
        match (self.editor.find(path)?, &literal.value) {
            (Some(Value::Text(text)), Tree::Text(literal)) => Ok(equal_string(self.editor.texts.of(text.source), text, literal)),
            (Some(value), literal) => self.equals_any(path, value, literal),
            (None, literal) => Ok(*literal == Tree::Null),
        }
    }

    #[inline(never)]
    fn equals_any(&self, path: &[Part], value: Value, literal: &Tree) -> Outcome<bool> {
        let Editor { plan, texts, overlay, .. } = &self.editor;
        Comparison { plan, texts: *texts, overlay }.equal(value, literal).map_err(|incomparable| match incomparable {
            Incomparable::Twice => poison("duplicate-name", format!("an object at {} has a name twice", self.path(path))),
            Incomparable::LongExponent => {
                poison("number-exponent", format!("a number at {} has an exponent of more than 18 digits", self.path(path)))
            }
        })
    }

    /// The partition key that is at the end of a path.
    fn route(&mut self, path: &[Part]) -> Outcome<Route> {
        let text = match self.editor.find(path)? {
            Some(Value::Text(text)) => text,
            Some(Value::Object(_)) => return Err(self.not_scalar(path)),
            Some(Value::Gone) | None => return Err(self.route_missing(path)),
        };
        let source = self.editor.texts.of(text.source);
        let (start, end) = (text.start as usize, text.end as usize);
        let (start, end, escapes) = match scan::byte(source, start) {
            b'{' | b'[' => return Err(self.not_scalar(path)),
            b'"' => (start + 1, end - 1, has_escapes(source, start)),
            _ => (start, end, false),
        };
        // Most keys begin with a character that is not blank.
        if text.source == Source::Document && !escapes && start < end && scan::byte(source, start).is_ascii_graphic() {
            return Ok(Route::Document(start, end));
        }
        let bytes = source.get(start..end).unwrap_or_default();
        let Ok(key) = String::from_utf8(said(bytes).into_owned()) else {
            // There is no such text: any replacement would put rows of several tenants together.
            return Err(poison("route-not-text", format!("{} has a surrogate escape without its partner", self.path(path))));
        };
        if key.chars().all(char::is_whitespace) {
            return Err(self.route_missing(path));
        }
        Ok(Route::Text(key))
    }

    #[cold]
    fn route_missing(&self, path: &[Part]) -> Box<Poison> {
        poison("route-missing", format!("{} is missing, null or blank", self.path(path)))
    }

    #[cold]
    fn not_scalar(&self, path: &[Part]) -> Box<Poison> {
        poison("route-not-scalar", format!("{} is an object or array", self.path(path)))
    }
}
