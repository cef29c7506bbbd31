//! Outcomes as lines of JSON.

use std::io::{self, Write};

use tidegate_api::{Chunk, Outcome, Outcomes, Poison};

/// One line for each outcome of a chunk. Documents are written as they are.
pub(crate) fn write(out: &mut impl Write, chunk: &Chunk, outcomes: &Outcomes) -> io::Result<()> {
    for (change, outcome) in chunk.changes().zip(&outcomes.items) {
        match outcome {
            Outcome::Keep { document, partition_key, collection } => {
                let routed = partition_key.and_then(|span| outcomes.get(span)).and_then(|bytes| std::str::from_utf8(bytes).ok());
                out.write_all(br#"{"outcome":"keep","partition_key":"#)?;
                serde_json::to_writer(&mut *out, &routed.or(change.partition_key))?;
                out.write_all(br#","document":"#)?;
                out.write_all(document.and_then(|span| outcomes.get(span)).unwrap_or(b"null"))?;
                if let Some(collection) = collection.and_then(|span| outcomes.get(span)).and_then(|bytes| std::str::from_utf8(bytes).ok()) {
                    out.write_all(br#","collection":"#)?;
                    serde_json::to_writer(&mut *out, collection)?;
                }
                out.write_all(b"}\n")?;
            }
            Outcome::Delete => out.write_all(b"{\"outcome\":\"delete\"}\n")?,
            Outcome::Drop => out.write_all(b"{\"outcome\":\"drop\"}\n")?,
        }
    }
    Ok(())
}

/// The line of a poison. In a batch it says which line was at fault: `Some(None)` where the batch as a whole was.
pub(crate) fn write_poison(out: &mut impl Write, poison: &Poison, line: Option<Option<u64>>) -> io::Result<()> {
    write!(out, r#"{{"outcome":"poison","code":"{}","kind":"#, poison.code())?;
    serde_json::to_writer(&mut *out, &poison.kind)?;
    match line {
        None => {}
        Some(None) => out.write_all(br#","line":null"#)?,
        Some(Some(line)) => write!(out, r#","line":{line}"#)?,
    }
    out.write_all(br#","reason":"#)?;
    serde_json::to_writer(&mut *out, &poison.reason)?;
    out.write_all(b"}\n")
}
