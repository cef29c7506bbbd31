//! Lines of the input: bytes up to `\n`, each a document, or a mutation.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tidegate_api::{Change, Error, Operation, Result, code};

/// A line is at most this long (Invariant 11).
const MAX_LINE_BYTES: u64 = 256 << 20;

/// Reads lines. The last one counts without a line end, too.
pub(crate) struct Lines<'r> {
    reader: BufReader<Box<dyn Read + 'r>>,
    mutations: bool,
    number: u64,
    line: Vec<u8>,
}

/// What a line asks for.
pub(crate) struct Mutation<'a> {
    operation: Operation,
    document: Option<&'a [u8]>,
    partition_key: Option<Cow<'a, str>>,
    content_type: Option<Cow<'a, str>>,
}

impl<'r> Lines<'r> {
    pub(crate) fn new(reader: BufReader<Box<dyn Read + 'r>>, mutations: bool) -> Self {
        Self { reader, mutations, number: 0, line: Vec::new() }
    }

    /// The next line; `None` behind the last.
    pub(crate) fn next(&mut self) -> Result<Option<Mutation<'_>>> {
        if !self.advance()? {
            return Ok(None);
        }
        if self.mutations {
            return mutation(&self.line).map(Some).map_err(|error| error.with("line", self.number));
        }
        Ok(Some(Mutation { operation: Operation::Insert, document: Some(&self.line), partition_key: None, content_type: None }))
    }

    /// How many lines there are.
    pub(crate) fn count(mut self) -> Result<u64> {
        while self.advance()? {}
        Ok(self.number)
    }

    fn advance(&mut self) -> Result<bool> {
        self.line.clear();
        let unreadable = || Error::new(&code::INPUT_UNREADABLE, "read input").with("line", self.number + 1);
        let mut bounded = self.reader.by_ref().take(MAX_LINE_BYTES);
        let read = bounded.read_until(b'\n', &mut self.line).map_err(|error| unreadable().because(error))?;
        if read as u64 == MAX_LINE_BYTES && self.line.last() != Some(&b'\n') {
            return Err(unreadable().because(format!("it is longer than {MAX_LINE_BYTES} bytes")).fix("make the line shorter"));
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        }
        self.number += u64::from(read > 0);
        Ok(read > 0)
    }
}

impl Mutation<'_> {
    /// The change that a source would hand over.
    pub(crate) fn change(&self, ordinal: u32) -> Change<'_> {
        Change {
            ordinal,
            relation: "input",
            operation: self.operation,
            key: "",
            partition_key: self.partition_key.as_deref(),
            old: None,
            new: self.document,
            content_type: self.content_type.as_deref(),
            unavailable: None,
        }
    }

    /// About how many bytes it takes in a chunk.
    pub(crate) fn size(&self) -> usize {
        self.document.map_or(0, <[u8]>::len) + self.partition_key.as_ref().map_or(0, |key| key.len())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    kind: Kind,
    #[serde(default, borrow, deserialize_with = "present")]
    document: Option<&'a RawValue>,
    #[serde(default, borrow)]
    partition_key: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    content_type: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Upsert,
    Delete,
    DeleteCollection,
}

/// A document that is `null` is a document, not an absent one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn mutation(line: &[u8]) -> Result<Mutation<'_>> {
    let malformed = |reason: String| Error::new(&code::INPUT_MALFORMED, "read input").because(reason);
    // The parser's own text may show what the line holds: only the place is told.
    let Line { kind, document, partition_key, content_type } =
        serde_json::from_slice(line).map_err(|error| malformed(format!("column {}: {}", error.column(), category(&error))))?;
    let operation = match (kind, document) {
        (Kind::Upsert, Some(_)) => Operation::Insert,
        (Kind::Upsert, None) => return Err(malformed("an upsert needs a document".to_owned())),
        (Kind::Delete, None) => Operation::Delete,
        (Kind::DeleteCollection, None) => Operation::Truncate,
        (_, Some(_)) => return Err(malformed("only an upsert has a document".to_owned())),
    };
    let document = document.map(|raw| raw.get().as_bytes());
    Ok(Mutation { operation, document, partition_key, content_type })
}

fn category(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        serde_json::error::Category::Data => "a member is unknown, missing, repeated or of a wrong type",
        _ => "not JSON",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &'static [u8], mutations: bool) -> Lines<'static> {
        Lines::new(BufReader::new(Box::new(text)), mutations)
    }

    #[test]
    fn a_document_is_every_byte_of_its_line_and_the_last_line_needs_no_end() {
        let mut read = lines(b"{}\n\n\xff\r\nlast", false);
        let mut found: Vec<Vec<u8>> = Vec::new();
        while let Some(mutation) = read.next().unwrap() {
            found.push(mutation.document.unwrap().to_vec());
        }
        assert_eq!(found, [&b"{}"[..], b"", b"\xff\r", b"last"]);
        assert_eq!(lines(b"a\nb", false).count().unwrap(), 2);
        assert_eq!(lines(b"", false).count().unwrap(), 0);
    }

    #[test]
    fn the_bytes_of_a_mutations_document_are_those_of_its_text() {
        let mut lines = lines(
            b"{\"kind\" : \"upsert\", \"document\":{ \"a\":1.10, \"a\":\"\\ud800\" } }\n{\"kind\":\"upsert\",\"document\":null}",
            true,
        );
        assert_eq!(lines.next().unwrap().unwrap().document.unwrap(), b"{ \"a\":1.10, \"a\":\"\\ud800\" }");
        assert_eq!(lines.next().unwrap().unwrap().document.unwrap(), b"null");
        for bad in [
            &b"{}"[..],
            b"{\"kind\":\"upsert\"}",
            b"{\"kind\":\"delete\",\"document\":{}}",
            b"[",
            b"{\"kind\":\"delete\",\"kind\":\"delete\"}",
        ] {
            let error = Lines::new(BufReader::new(Box::new(bad)), true).next().err().unwrap();
            assert_eq!(error.code(), &code::INPUT_MALFORMED);
        }
    }
}
