//! Rows of `COPY … TO STDOUT` in text format: fields between tabs, `\N` for NULL, backslash escapes.

use crate::source::pgoutput::Cell;

/// One row, split and unescaped. Its buffers are used again for the next.
#[derive(Default)]
pub(super) struct Line {
    text: Vec<u8>,
    /// Where each field begins and ends in the text; one without a beginning is NULL.
    fields: Vec<(Option<usize>, usize)>,
}

impl Line {
    /// Takes a row; `None` where it is none.
    pub(super) fn split(&mut self, row: &[u8]) -> Option<()> {
        self.text.clear();
        self.fields.clear();
        let row = row.strip_suffix(b"\n")?;
        let mut start = 0;
        let mut null = false;
        let mut rest = row;
        loop {
            let Some(place) = rest.iter().position(|byte| matches!(byte, b'\t' | b'\\')) else {
                self.text.extend_from_slice(rest);
                self.end(start, null);
                return Some(());
            };
            let (plain, [found, after @ ..]) = rest.split_at_checked(place)? else { return None };
            self.text.extend_from_slice(plain);
            rest = after;
            if *found == b'\t' {
                self.end(start, null);
                start = self.text.len();
                null = false;
                continue;
            }
            let (kind, after) = rest.split_first()?;
            rest = after;
            match kind {
                b'N' => null = true,
                b'b' => self.text.push(0x08),
                b'f' => self.text.push(0x0c),
                b'n' => self.text.push(b'\n'),
                b'r' => self.text.push(b'\r'),
                b't' => self.text.push(b'\t'),
                b'v' => self.text.push(0x0b),
                other => self.text.push(*other),
            }
        }
    }

    fn end(&mut self, start: usize, null: bool) {
        self.fields.push(((!null).then_some(start), self.text.len()));
    }

    /// The fields, in order.
    pub(super) fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        self.fields.iter().map(|(start, end)| match start {
            Some(start) => Cell::Text(self.text.get(*start..*end).unwrap_or_default()),
            None => Cell::Null,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_split_and_its_escapes_are_undone() {
        let mut line = Line::default();
        line.split(b"1\t\\N\t\ta\\tb\\\\N\\n\\b\\f\\r\\v\n").unwrap();
        let cells: Vec<_> = line.cells().collect();
        assert_eq!(cells, [Cell::Text(b"1"), Cell::Null, Cell::Text(b""), Cell::Text(b"a\tb\\N\n\x08\x0c\r\x0b")]);
        line.split(b"\n").unwrap();
        assert_eq!(line.cells().collect::<Vec<_>>(), [Cell::Text(b"")]);
        assert!(line.split(b"no end").is_none());
        assert!(line.split(b"a\\\n").is_none());
    }
}
