//! One row that changed: its keys and documents, and the one or two changes that come of it.

use tidegate_api::{Change, Error, Operation, Result, TableName, code};

use crate::source::Unchanged;
use crate::source::pgoutput::Cell;
use crate::source::relation::Relation;

/// Values that were not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) table: TableName,
    /// The key: columns and texts.
    pub(crate) key: Vec<(String, String)>,
    /// The columns to read: names and places.
    pub(crate) columns: Vec<(String, usize)>,
}

/// What came of reading them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// The row's values now, in the order of [`Missing::columns`].
    Values(Vec<(usize, Option<Vec<u8>>)>),
    /// There is no such row any more: a later change in the stream takes it away.
    Gone,
    /// They cannot be read: the change goes on without its document, and says what is missing.
    Unreadable,
}

/// A row about to be rendered.
#[derive(Clone, Copy)]
pub(super) struct Row<'r, 'a> {
    pub(super) relation: &'r Relation,
    pub(super) operation: Operation,
    /// The row before; [`Cell::Unchanged`] where it was not sent.
    pub(super) before: &'r [Cell<'a>],
    /// Whether all of the row before was sent.
    pub(super) full: bool,
    pub(super) fill: Option<&'a Fill>,
}

/// The texts of a row; the buffers are used again for the next.
#[derive(Default)]
pub(super) struct Texts {
    document: Vec<u8>,
    old_document: Vec<u8>,
    key: Vec<u8>,
    old_key: Vec<u8>,
}

/// What came of rendering.
pub(super) enum Rendered {
    /// Values must be read from the table first.
    Missing(Missing),
    /// The texts are there.
    Whole(Outcome),
}

/// What the row is now.
pub(super) struct Outcome {
    after: After,
    /// Whether its key was another before.
    moved: bool,
}

enum After {
    /// It has a document.
    Document,
    /// It is deleted, or was gone before it could be read again.
    Gone,
    /// Its document lacks these columns.
    Lacks(String),
}

impl<'r, 'a> Row<'r, 'a> {
    /// Renders the row after the change, `cells`, and what was sent of the row before it.
    pub(super) fn render(&self, cells: &mut [Cell<'a>], texts: &mut Texts) -> Result<Rendered> {
        for text in [&mut texts.document, &mut texts.old_document, &mut texts.key, &mut texts.old_key] {
            text.clear();
        }
        let (relation, before) = (self.relation, self.before);
        if self.full && !relation.document(before, &[], &mut texts.old_document)? {
            texts.old_document.clear();
        }
        if self.operation == Operation::Delete {
            relation.key_text(before, &[], &mut texts.key)?;
            return Ok(Rendered::Whole(Outcome { after: After::Gone, moved: false }));
        }
        relation.key_text(cells, before, &mut texts.key)?;
        let mut moved = false;
        if !before.is_empty() {
            relation.key_text(before, &[], &mut texts.old_key)?;
            moved = texts.old_key != texts.key;
        }
        let whole = |after| Ok(Rendered::Whole(Outcome { after, moved }));
        match self.fill {
            Some(Fill::Values(values)) => {
                for (place, value) in values {
                    if let Some(cell) = cells.get_mut(*place) {
                        *cell = value.as_deref().map_or(Cell::Null, Cell::Text);
                    }
                }
            }
            Some(Fill::Gone) => return whole(After::Gone),
            Some(Fill::Unreadable) | None => {}
        }
        if relation.document(cells, before, &mut texts.document)? {
            return whole(After::Document);
        }
        let missing = relation.missing(cells, before);
        let name = |place: &usize| relation.columns.get(*place).map(|column| column.name.clone()).unwrap_or_default();
        if relation.unchanged == Unchanged::Reselect && self.fill.is_none() {
            let text = |place: &usize| match (cells.get(*place), before.get(*place)) {
                (Some(Cell::Text(text)), _) | (_, Some(Cell::Text(text))) => String::from_utf8_lossy(text).into_owned(),
                _ => String::new(),
            };
            return Ok(Rendered::Missing(Missing {
                table: relation.table.clone(),
                key: relation.key.iter().map(|place| (name(place), text(place))).collect(),
                columns: missing.iter().map(|place| (name(place), *place)).collect(),
            }));
        }
        whole(After::Lacks(missing.iter().map(name).collect::<Vec<_>>().join(", ")))
    }

    /// The changes that come of it: one, or two where the key moved.
    pub(super) fn changes<'t>(&self, outcome: &'t Outcome, texts: &'t Texts) -> Result<[Option<Change<'t>>; 2]>
    where
        'r: 't,
    {
        let collection = self.relation.collection.as_str();
        let old = (!texts.old_document.is_empty()).then_some(texts.old_document.as_slice());
        let mut change = bare(collection, self.operation, utf8(&texts.key)?);
        let mut gone = None;
        if outcome.moved {
            gone = Some(Change { old, ..bare(collection, Operation::Delete, utf8(&texts.old_key)?) });
            change.operation = Operation::Insert;
        } else {
            change.old = old;
        }
        match &outcome.after {
            After::Document => change.new = Some(&texts.document),
            After::Gone => change.operation = Operation::Delete,
            After::Lacks(columns) => change.unavailable = Some(columns),
        }
        Ok([gone, Some(change)])
    }
}

/// A change without documents.
pub(super) fn bare<'a>(relation: &'a str, operation: Operation, key: &'a str) -> Change<'a> {
    let (partition_key, old, new, content_type, unavailable) = (None, None, None, None, None);
    Change { ordinal: 0, relation, operation, key, partition_key, old, new, content_type, unavailable }
}

fn utf8(key: &[u8]) -> Result<&str> {
    std::str::from_utf8(key).map_err(|error| Error::new(&code::PROTOCOL, "render key").because(error))
}
