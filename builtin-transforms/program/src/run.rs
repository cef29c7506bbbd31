//! The instructions, one by one.

use std::borrow::Cow;

use crate::change::PartitionKey;
use crate::compare::{Comparison, Incomparable, equal_string};
use crate::edit::{Editor, said};
use crate::literal::Literal;
use crate::overlay::{Source, Text, Texts, Value};
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
    /// What it takes down, where that is wanted.
    pub(crate) facts: Option<&'a mut Facts>,
}

/// What about a document the instructions have depended on, beyond the names in it and the kinds of values.
pub(crate) struct Facts {
    /// Values that were compared, each with the number of the step.
    pub(crate) compared: Vec<(u32, Text)>,
    /// Scalars that were copied.
    pub(crate) copied: Vec<Text>,
    /// Where the partition key was.
    pub(crate) route: Option<Text>,
    /// This is all.
    pub(crate) fit: bool,
}

impl Facts {
    /// There is room for so many of a sort.
    pub(crate) const MOST: usize = 64;

    pub(crate) fn new() -> Self {
        Self { compared: Vec::with_capacity(Self::MOST), copied: Vec::with_capacity(Self::MOST), route: None, fit: true }
    }

    /// Starts again.
    pub(crate) fn clear(&mut self) {
        self.compared.clear();
        self.copied.clear();
        self.route = None;
        self.fit = true;
    }

    /// A value was compared.
    fn compare(&mut self, step: usize, value: Option<Value>) {
        match value {
            Some(Value::Text(Text { source: Source::Pool, .. })) | None => {}
            Some(Value::Text(text)) if self.compared.len() < Self::MOST => self.compared.push((step as u32, text)),
            Some(_) => self.fit = false,
        }
    }

    /// A scalar was copied.
    fn copy(&mut self, text: Text) {
        if self.copied.len() < Self::MOST {
            self.copied.push(text);
        } else {
            self.fit = false;
        }
    }
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
    pub(crate) fn step(&mut self, number: usize, step: &Step) -> Outcome<bool> {
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
                        if let Some(facts) = &mut self.facts {
                            facts.copy(text);
                        }
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
            Step::DropWhenEquals(path, literal) => return self.equals(number, path, literal),
            Step::RequireEquals(path, literal) => {
                if !self.equals(number, path, literal)? {
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
    fn equals(&mut self, step: usize, path: &[Part], literal: &Literal) -> Outcome<bool> {
        let value = self.editor.find(path)?;
        if let Some(facts) = &mut self.facts {
            facts.compare(step, value);
        }
        match (value, &literal.value) {
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
        if let Some(route) = scalar(self.editor.texts, text) {
            if let Some(facts) = &mut self.facts {
                facts.route = Some(text);
            }
            return Ok(route);
        }
        if let Some(facts) = &mut self.facts {
            facts.fit = false;
        }
        let bytes = match self.editor.texts.get(text) {
            [b'{' | b'[', ..] => return Err(self.not_scalar(path)),
            [b'"', inside @ .., b'"'] => inside,
            scalar => scalar,
        };
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

/// The partition key that a value of the document is, if it is a scalar without escapes that begins with a character that is
/// not blank: as most do.
#[inline(always)]
pub(crate) fn scalar(texts: Texts<'_>, value: Text) -> Option<Route> {
    let (text, start, end) = (texts.of(value.source), value.start as usize, value.end as usize);
    let (start, end) = match scan::byte(text, start) {
        b'{' | b'[' => return None,
        b'"' if has_escapes(text, start) => return None,
        b'"' => (start + 1, end - 1),
        _ => (start, end),
    };
    let graphic = start < end && scan::byte(text, start).is_ascii_graphic();
    (value.source == Source::Document && graphic).then_some(Route::Document(start, end))
}
