//! A table as its changes have it now: how to make documents and keys of its rows.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_api::{Error, Result, TableName, code};

use super::Unchanged;
use super::pgoutput::Cell;
use super::render::{self, Misfit};
use super::shape::{self, Described, Shape};

/// A rendered row is never larger than this.
pub(crate) const MAX_DOCUMENT_BYTES: usize = 512 << 20;

/// A table.
#[derive(Clone, Debug)]
pub(crate) struct Relation {
    pub(crate) table: TableName,
    /// Its name as changes carry it.
    pub(crate) collection: String,
    pub(crate) columns: Vec<Column>,
    /// Which columns are its key, in the key's order.
    pub(crate) key: Vec<usize>,
    pub(crate) unchanged: Unchanged,
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// What stands before its value in a document: `{"id":` or `,"name":`.
    before: Vec<u8>,
    shape: Arc<Shape>,
}

impl Relation {
    /// A table with these columns (name and type) and key.
    ///
    /// # Errors
    /// [`TYPE_MOVED`](code::TYPE_MOVED) when the catalogue does not know a type any more, [`KEY_MOVED`](code::KEY_MOVED)
    /// when a key column is not among the columns.
    pub(crate) fn new(
        table: TableName,
        columns: &[(String, u32)],
        key: &[String],
        described: &HashMap<u32, Described>,
        unchanged: Unchanged,
    ) -> Result<Self> {
        let mut made = Vec::with_capacity(columns.len());
        for (index, (name, type_oid)) in columns.iter().enumerate() {
            let shape = shape::of(*type_oid, described).ok_or_else(|| {
                Error::new(&code::TYPE_MOVED, "read relation").with("table", &table).with("column", name).with("missing type", type_oid)
            })?;
            let mut before = vec![if index == 0 { b'{' } else { b',' }];
            before.extend(shape::label(name));
            made.push(Column { name: name.clone(), before, shape: Arc::new(shape) });
        }
        let place = |name: &String| {
            let place = columns.iter().position(|(column, _)| column == name);
            place.ok_or_else(|| Error::new(&code::KEY_MOVED, "read relation").with("table", &table).with("missing column", name))
        };
        let key = key.iter().map(place).collect::<Result<_>>()?;
        Ok(Self { collection: table.to_string(), table, columns: made, key, unchanged })
    }

    /// Appends the document of a row. Values that were not sent are taken from `before`, the row before the change.
    ///
    /// Gives whether the document is whole; where it is not, `out` holds nothing of use.
    pub(crate) fn document(&self, cells: &[Cell<'_>], before: &[Cell<'_>], out: &mut Vec<u8>) -> Result<bool> {
        if cells.len() != self.columns.len() {
            return Err(self.of_another_shape(cells.len()));
        }
        for (index, (column, cell)) in self.columns.iter().zip(cells).enumerate() {
            out.extend_from_slice(&column.before);
            let cell = match cell {
                Cell::Unchanged => before.get(index).unwrap_or(cell),
                cell => cell,
            };
            match cell {
                Cell::Text(text) => render::value(&column.shape, text, out).map_err(|misfit| self.misfit(column, misfit))?,
                Cell::Null => out.extend_from_slice(b"null"),
                Cell::Unchanged => return Ok(false),
                Cell::Binary(_) => return Err(self.misfit(column, Misfit("a binary value"))),
            }
        }
        if self.columns.is_empty() {
            out.push(b'{');
        }
        out.push(b'}');
        // Invariant 11
        if out.len() > MAX_DOCUMENT_BYTES {
            let error = Error::new(&code::ROW_TOO_LARGE, "render row").with("table", &self.table).with("bytes", out.len());
            return Err(error.with("limit", MAX_DOCUMENT_BYTES));
        }
        render::escape::make_utf8(out);
        Ok(true)
    }

    /// The names of the columns whose values are nowhere to be had.
    pub(crate) fn missing(&self, cells: &[Cell<'_>], before: &[Cell<'_>]) -> Vec<usize> {
        let unknown = |cells: &[Cell<'_>], index| matches!(cells.get(index), None | Some(Cell::Unchanged));
        (0..self.columns.len()).filter(|index| unknown(cells, *index) && unknown(before, *index)).collect()
    }

    /// Appends the key of a row: the value of its one key column, or a JSON array of several.
    pub(crate) fn key_text(&self, cells: &[Cell<'_>], before: &[Cell<'_>], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let single = self.key.len() == 1;
        for (index, place) in self.key.iter().enumerate() {
            let Some(column) = self.columns.get(*place) else { continue };
            let cell = match cells.get(*place) {
                Some(Cell::Unchanged) | None => before.get(*place),
                cell => cell,
            };
            let Some(Cell::Text(text)) = cell else { return Err(self.misfit(column, Misfit("a key without a value"))) };
            if !single {
                out.push(if index == 0 { b'[' } else { b',' });
            }
            let rendered = if single { render::key(&column.shape, text, out) } else { render::value(&column.shape, text, out) };
            rendered.map_err(|misfit| self.misfit(column, misfit))?;
        }
        if !single {
            out.push(b']');
        }
        if start == 0 {
            render::escape::make_utf8(out);
        }
        Ok(())
    }

    fn misfit(&self, column: &Column, Misfit(why): Misfit) -> Error {
        Error::new(&code::TYPE_MOVED, "render row").with("table", &self.table).with("column", &column.name).because(why)
    }

    fn of_another_shape(&self, values: usize) -> Error {
        let error = Error::new(&code::PROTOCOL, "render row").with("table", &self.table);
        error.with("columns", self.columns.len()).with("values", values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation(key: &[&str]) -> Relation {
        let columns = [("id".to_owned(), 23), ("a \"b\"".to_owned(), 25), ("ok".to_owned(), 16)];
        let key: Vec<_> = key.iter().map(|name| (*name).to_owned()).collect();
        Relation::new(TableName::new("public", "t"), &columns, &key, &HashMap::new(), Unchanged::Refuse).unwrap()
    }

    #[test]
    fn a_row_is_an_object_in_column_order() {
        let mut out = Vec::new();
        let cells = [Cell::Text(b"42"), Cell::Text(b"x\ty"), Cell::Null];
        assert!(relation(&["id"]).document(&cells, &[], &mut out).unwrap());
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"id":42,"a \"b\"":"x\ty","ok":null}"#);
    }

    #[test]
    fn values_that_were_not_sent_come_from_the_row_before_or_are_named() {
        let relation = relation(&["id"]);
        let cells = [Cell::Text(b"42"), Cell::Unchanged, Cell::Text(b"t")];
        let mut out = Vec::new();
        assert!(relation.document(&cells, &[Cell::Text(b"42"), Cell::Text(b"big"), Cell::Null], &mut out).unwrap());
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"id":42,"a \"b\"":"big","ok":true}"#);
        assert!(!relation.document(&cells, &[], &mut Vec::new()).unwrap());
        assert_eq!(relation.missing(&cells, &[]), [1]);
    }

    #[test]
    fn several_key_columns_are_an_array_in_the_key_s_order() {
        let cells = [Cell::Text(b"42"), Cell::Text(b"k\""), Cell::Text(b"f")];
        let key = |columns: &[&str]| {
            let mut out = Vec::new();
            relation(columns).key_text(&cells, &[], &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(key(&["id"]), "42");
        assert_eq!(key(&["a \"b\""]), "k\"");
        assert_eq!(key(&["ok", "a \"b\"", "id"]), r#"[false,"k\"",42]"#);
    }

    #[test]
    fn what_does_not_fit_is_named_without_its_value() {
        let cells = [Cell::Text(b"secret value"), Cell::Null, Cell::Null];
        let error = relation(&["id"]).document(&cells, &[], &mut Vec::new()).unwrap_err();
        assert_eq!(error.code(), &code::TYPE_MOVED);
        assert!(!format!("{error:?}").contains("secret"));
    }
}
