//! The instructions, one by one.

use std::borrow::Cow;

use crate::change::PartitionKey;
use crate::compare::{Comparison, Incomparable};
use crate::edit::{Editor, said};
use crate::literal::Literal;
use crate::overlay::Value;
use crate::plan::{Part, Step};
use crate::poison::{Outcome, poison};
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
    pub(crate) partition_key: Option<PartitionKey>,
}

impl Run<'_> {
    /// Runs one instruction. True: the document is dropped.
    pub(crate) fn step(&mut self, step: &Step) -> Outcome<bool> {
        match step {
            Step::Remove(path) => self.editor.remove(path)?,
            Step::Set { path, value, height, growth } => {
                self.most_bytes = self.most_bytes.saturating_add(*growth);
                self.measure |= path.len() + height > self.depth;
                self.editor.place(path, Value::Text(*value))?;
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
                        self.measure = true;
                    }
                    Value::Text(_) | Value::Gone => self.measure = true,
                }
                self.editor.place(to, value)?;
            }
            Step::Route(path) => self.partition_key = Some(self.route(path)?),
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

    fn equals(&mut self, path: &[Part], literal: &Literal) -> Outcome<bool> {
        let Some(value) = self.editor.find(path)? else { return Ok(literal.value == Tree::Null) };
        let Editor { plan, texts, overlay, .. } = &self.editor;
        Comparison { plan, texts: *texts, overlay }.equal(value, &literal.value).map_err(|incomparable| match incomparable {
            Incomparable::Twice => poison("duplicate-name", format!("an object at {} has a name twice", self.path(path))),
            Incomparable::LongExponent => {
                poison("number-exponent", format!("a number at {} has an exponent of more than 18 digits", self.path(path)))
            }
        })
    }

    /// The partition key that is at the end of a path.
    fn route(&mut self, path: &[Part]) -> Outcome<PartitionKey> {
        let missing = |run: &Self| poison("route-missing", format!("{} is missing, null or blank", run.path(path)));
        let text = match self.editor.find(path)? {
            Some(Value::Text(text)) => text,
            Some(Value::Object(_)) => return Err(self.not_scalar(path)),
            Some(Value::Gone) | None => return Err(missing(self)),
        };
        let bytes = self.editor.texts.get(text);
        let key = match bytes.first() {
            Some(b'{' | b'[') => return Err(self.not_scalar(path)),
            Some(b'"') => said(bytes.get(1..bytes.len() - 1).unwrap_or_default()),
            _ => Cow::Borrowed(bytes),
        };
        let Ok(key) = std::str::from_utf8(&key) else {
            // There is no such text: any replacement would put rows of several tenants together.
            return Err(poison("route-not-text", format!("{} has a surrogate escape without its partner", self.path(path))));
        };
        // Most keys begin with a character that is not blank.
        if !key.starts_with(|c: char| c.is_ascii_graphic()) && key.chars().all(char::is_whitespace) {
            return Err(missing(self));
        }
        Ok(PartitionKey(key.to_owned()))
    }

    fn not_scalar(&self, path: &[Part]) -> Box<crate::poison::Poison> {
        poison("route-not-scalar", format!("{} is an object or array", self.path(path)))
    }
}
