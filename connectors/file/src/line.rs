//! One line: a transaction.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_api::{Change, CommitPosition, Operation, TableName};

use crate::time;

/// A transaction as it stands in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Transaction<'a> {
    #[serde(borrow)]
    position: Position<'a>,
    #[serde(default)]
    pub(crate) xid: u32,
    #[serde(borrow, default)]
    time: Option<Cow<'a, str>>,
    #[serde(borrow)]
    changes: Vec<Row<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Position<'a> {
    Number(u64),
    #[serde(borrow)]
    Text(Cow<'a, str>),
}

/// A line of which only the position counts.
#[derive(Deserialize)]
struct Passed<'a> {
    #[serde(borrow)]
    position: Position<'a>,
}

/// The position of a line whose changes are not looked at.
///
/// # Errors
/// As [`Transaction::parse`], as far as it was looked at.
pub(crate) fn position(line: &[u8]) -> Result<CommitPosition, String> {
    let passed: Passed<'_> = serde_json::from_slice(line).map_err(|error| shape(&error))?;
    passed.position.read().ok_or_else(|| POSITION_RULE.to_owned())
}

const POSITION_RULE: &str = "position is an integer from 1, or text like 0/1A0";

impl Position<'_> {
    fn read(&self) -> Option<CommitPosition> {
        let position = match self {
            Self::Number(number) => CommitPosition::new(*number),
            Self::Text(text) => text.parse().ok()?,
        };
        (position > CommitPosition::ZERO).then_some(position)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row<'a> {
    relation: String,
    op: Op,
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    old_key: Option<String>,
    #[serde(borrow, default)]
    old: Option<&'a RawValue>,
    #[serde(borrow, default)]
    new: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Op {
    Insert,
    Update,
    Delete,
    Truncate,
}

impl<'a> Transaction<'a> {
    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong with it, without its values.
    pub(crate) fn parse(line: &'a [u8]) -> Result<Self, String> {
        let transaction: Self = serde_json::from_slice(line).map_err(|error| shape(&error))?;
        if transaction.position().is_none() {
            return Err(POSITION_RULE.to_owned());
        }
        if transaction.commit_time_us().is_none() {
            return Err("time has the form 2026-01-31T09:00:00.5Z".to_owned());
        }
        for (index, row) in transaction.changes.iter().enumerate() {
            row.check().map_err(|rule| format!("changes[{index}]: {rule}"))?;
        }
        Ok(transaction)
    }

    /// Where it ends.
    pub(crate) fn position(&self) -> Option<CommitPosition> {
        self.position.read()
    }

    /// When it was committed.
    pub(crate) fn commit_time_us(&self) -> Option<i64> {
        self.time.as_deref().map_or(Some(0), time::parse_us)
    }

    /// Visits its changes of the relations that are `wanted`; a change of the key is two.
    pub(crate) fn changes(&self, wanted: &[String], mut visit: impl FnMut(Change<'_>)) {
        let mut ordinal = 0;
        let mut next = move || {
            ordinal += 1;
            ordinal - 1
        };
        for row in self.changes.iter().filter(|row| wanted.contains(&row.relation)) {
            let old = row.old.map(|old| compact(old.get()));
            let new = row.new.map(|new| compact(new.get()));
            let change = |ordinal, operation, key, old, new| Change {
                ordinal,
                relation: &row.relation,
                operation,
                key,
                partition_key: None,
                old,
                new,
                content_type: None,
                unavailable: None,
            };
            let key = row.key.as_deref().unwrap_or_default();
            let (old, new) = (old.as_deref(), new.as_deref());
            match (row.op, row.old_key.as_deref().filter(|old_key| *old_key != key)) {
                (Op::Update, Some(old_key)) => {
                    visit(change(next(), Operation::Delete, old_key, old, None));
                    visit(change(next(), Operation::Insert, key, None, new));
                }
                (Op::Insert, _) => visit(change(next(), Operation::Insert, key, None, new)),
                (Op::Update, None) => visit(change(next(), Operation::Update, key, old, new)),
                (Op::Delete, _) => visit(change(next(), Operation::Delete, key, old, None)),
                (Op::Truncate, _) => visit(change(next(), Operation::Truncate, "", None, None)),
            }
        }
    }
}

impl Row<'_> {
    fn check(&self) -> Result<(), &'static str> {
        let needs_new = matches!(self.op, Op::Insert | Op::Update);
        let may_have_old = matches!(self.op, Op::Update | Op::Delete);
        let object = |document: Option<&RawValue>| document.is_none_or(|document| document.get().starts_with('{'));
        let rules = [
            (
                self.relation.parse::<TableName>().is_ok_and(|name| name.to_string() == self.relation),
                "relation is schema.table, quoted as sql does where needed",
            ),
            (self.key.is_some() == (self.op != Op::Truncate), "key stands with every op but truncate"),
            (self.old_key.is_none() || self.op == Op::Update, "old_key stands with update only"),
            (self.new.is_some() == needs_new, "new stands with insert and update, and only there"),
            (self.old.is_none() || may_have_old, "old stands with update and delete only"),
            (object(self.old) && object(self.new), "old and new are json objects"),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, rule)| Err(rule))
    }
}

/// What serde says, unless it quotes a value.
fn shape(error: &serde_json::Error) -> String {
    use serde_json::error::Category;
    match error.classify() {
        Category::Syntax | Category::Eof => format!("not one json text, at column {}", error.column()),
        Category::Data | Category::Io => format!("a member is missing, unknown or of another type, before column {}", error.column()),
    }
}

/// Without the white space between tokens. The text is valid JSON.
fn compact(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let (mut within, mut escaped) = (false, false);
    for byte in text.bytes() {
        if within {
            within = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            continue;
        } else {
            within = byte == b'"';
        }
        out.push(byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(line: &str) -> Vec<(Operation, String, Option<String>)> {
        let mut seen = Vec::new();
        let text = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
        let transaction = Transaction::parse(line.as_bytes()).unwrap();
        transaction.changes(&["public.a".to_owned()], |change| seen.push((change.operation, change.key.to_owned(), text(change.new))));
        seen
    }

    #[test]
    fn documents_keep_their_digits_and_lose_only_white_space() {
        let line = r#"{"position": 5, "changes": [{"relation":"public.a","op":"insert","key":"1","new":{ "a" : 1.10, "b":" x \" y " , "c":9007199254740993}}]}"#;
        let document = r#"{"a":1.10,"b":" x \" y ","c":9007199254740993}"#;
        assert_eq!(seen(line), [(Operation::Insert, "1".to_owned(), Some(document.to_owned()))]);
    }

    #[test]
    fn a_change_of_the_key_is_a_delete_and_an_insert() {
        let line = r#"{"position":"0/5","changes":[{"relation":"public.a","op":"update","key":"2","old_key":"1","new":{}},{"relation":"public.b","op":"truncate"}]}"#;
        assert_eq!(seen(line), [(Operation::Delete, "1".to_owned(), None), (Operation::Insert, "2".to_owned(), Some("{}".to_owned()))]);
    }

    #[test]
    fn a_position_is_read_alone_as_it_is_read_with_the_rest() {
        for (line, expected) in [
            (r#"{"changes":[{"new":{"position":7}}],"position":5}"#, 5),
            (r#"{"position":"0/1A0","changes":[]}"#, 0x1a0),
            (r#"{"position":"0\/1A0","time":"2026\u002d01-31T09:00:00Z","changes":[]}"#, 0x1a0),
        ] {
            assert_eq!(position(line.as_bytes()).unwrap(), CommitPosition::new(expected), "{line}");
        }
        assert!(Transaction::parse(br#"{"position":"0\/1A0","time":"2026\u002d01-31T09:00:00Z","changes":[]}"#).is_ok());
        for bad in ["", "{}", r#"{"position":0}"#, r#"{"position":[1]}"#, r#"{"position":5"#] {
            assert!(position(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_not_a_transaction_is_refused_without_its_values() {
        for (line, expected) in [
            ("", "not one json text"),
            ("{\"position\":1}", "missing"),
            ("{\"position\":0,\"changes\":[]}", "position"),
            ("{\"position\":\"x\",\"changes\":[]}", "position"),
            ("{\"position\":1,\"time\":\"yesterday\",\"changes\":[]}", "time"),
            ("{\"position\":1,\"changes\":[],\"more\":1}", "unknown"),
            ("{\"position\":1,\"changes\":[{\"relation\":\"a\",\"op\":\"delete\",\"key\":\"secret\"}]}", "changes[0]: relation"),
            ("{\"position\":1,\"changes\":[{\"relation\":\"a.b\",\"op\":\"delete\"}]}", "changes[0]: key"),
            ("{\"position\":1,\"changes\":[{\"relation\":\"a.b\",\"op\":\"insert\",\"key\":\"1\",\"new\":[]}]}", "json objects"),
            ("{\"position\":1,\"changes\":[{\"relation\":\"a.b\",\"op\":\"insert\",\"key\":\"1\"}]}", "new stands"),
        ] {
            let reason = Transaction::parse(line.as_bytes()).unwrap_err();
            assert!(reason.contains(expected), "{line}: {reason}");
            assert!(!reason.contains("secret") && !reason.contains("yesterday"), "{reason}");
        }
    }
}
