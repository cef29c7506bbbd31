//! Changes into request frames, and response frames into outcomes.

use tidegate_api::chunk::{MAX_CHUNK_BYTES, MAX_CHUNK_CHANGES};
use tidegate_api::transform::Span;
use tidegate_api::{Change, Chunk, Error, Operation, Outcome, Outcomes, Poison, Result, code};
use tidegate_frame::{FrameError, Record, RecordKind, RequestHeader, RequestWriter, Spent};

/// A request, and what the host knows of its records.
pub(crate) struct Frame {
    pub(crate) bytes: Vec<u8>,
    /// The ordinal and the kind of every record.
    pub(crate) records: Vec<(u32, RecordKind)>,
    /// The change behind the last record is refused without asking the guest.
    pub(crate) refused: Option<Poison>,
}

/// The next frame: the changes of `chunk` from number `done`, at most `at_most` of them and about as many bytes as a chunk has.
/// It is written into the memory of `buffer`.
pub(crate) fn encode(mut buffer: Vec<u8>, chunk: &Chunk, done: usize, at_most: usize, spent: Spent, document_bytes: u64) -> Result<Frame> {
    let left = chunk.len().saturating_sub(done).min(at_most).min(MAX_CHUNK_CHANGES);
    buffer.clear();
    buffer.reserve(chunk.bytes().len().min(2 * MAX_CHUNK_BYTES));
    let mut request = RequestWriter::new(buffer, &RequestHeader { spent, position: None, commit_time: None });
    let mut records = Vec::with_capacity(left);
    let mut refused = None;
    for change in chunk.changes().skip(done).take(left) {
        refused = refusal(&change, document_bytes);
        if refused.is_some() {
            break;
        }
        let record = record(&change)?;
        let length = record.document.map_or(0, <[u8]>::len);
        if !records.is_empty() && request.byte_len() + length > MAX_CHUNK_BYTES {
            break;
        }
        records.push((change.ordinal, record.kind));
        request.push(&record);
    }
    Ok(Frame { bytes: request.finish(), records, refused })
}

/// What needs no guest to be refused: a document that is larger than the program takes does not enter the sandbox.
fn refusal(change: &Change<'_>, document_bytes: u64) -> Option<Poison> {
    if let Some(columns) = change.unavailable {
        let reason = format!("the source did not send these columns of the row, because they did not change: {columns}");
        return Some(Poison { kind: "unchanged-toast".to_owned(), ordinal: Some(change.ordinal), reason });
    }
    let length = change.new?.len();
    (length as u64 > document_bytes).then(|| {
        let reason = format!("the document has {length} bytes, and document_bytes is {document_bytes}");
        Poison { kind: "limit-document-bytes".to_owned(), ordinal: Some(change.ordinal), reason }
    })
}

/// A program sees documents and where they are placed; table, key and old document stay outside.
fn record<'a>(change: &Change<'a>) -> Result<Record<'a>> {
    let kind = match change.operation {
        Operation::Insert | Operation::Update | Operation::Row => RecordKind::Upsert,
        Operation::Delete => RecordKind::Delete,
        Operation::Truncate => RecordKind::DeleteCollection,
    };
    let document = change.new.filter(|_| kind == RecordKind::Upsert);
    if document.is_none() && kind == RecordKind::Upsert {
        return Err(Error::new(&code::CHUNK_MALFORMED, "transform chunk").with("ordinal", change.ordinal));
    }
    let content_type = change.content_type.filter(|_| kind == RecordKind::Upsert);
    Ok(Record { kind, document, partition_key: change.partition_key, content_type, relation: None, key: None, old: None })
}

/// The outcomes of a whole chunk, collected from one response or several.
#[derive(Default)]
pub(crate) struct Collected {
    bytes: Vec<u8>,
    items: Vec<Outcome>,
}

impl Collected {
    /// Outcomes so far.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn finish(self) -> Outcomes {
        Outcomes { bytes: self.bytes.into(), items: self.items }
    }

    /// Adds the outcomes of a response to `records`, after checking each: one for each record, from the first (Invariant 5).
    /// The response itself must be added next.
    pub(crate) fn outcomes(&mut self, answer: tidegate_frame::Outcomes<'_>, records: &[(u32, RecordKind)]) -> Result<()> {
        self.items.reserve(records.len());
        for (outcome, (_, kind)) in answer.zip(records) {
            let outcome = outcome.map_err(|error| malformed(&error))?;
            let outcome = self.placed(&outcome, *kind)?;
            self.items.push(outcome);
        }
        Ok(())
    }

    pub(crate) fn response(&mut self, response: Vec<u8>) {
        if self.bytes.is_empty() {
            self.bytes = response;
        } else {
            self.bytes.extend_from_slice(&response);
        }
    }

    /// The outcome as spans into the collected bytes, behind which the response will be put.
    fn placed(&self, outcome: &tidegate_frame::Outcome<'_>, kind: RecordKind) -> Result<Outcome> {
        let span = |start: usize, len: usize| -> Result<Span> {
            let (start, len) = (u32::try_from(self.bytes.len() + start), u32::try_from(len));
            let (Ok(start), Ok(len)) = (start, len) else {
                return Err(Error::new(&code::SANDBOX_FAILED, "read response").because("the outcomes of a chunk have more than 4 GiB"));
            };
            Ok(Span { start, len })
        };
        match *outcome {
            tidegate_frame::Outcome::Delete => Ok(Outcome::Delete),
            tidegate_frame::Outcome::Drop => Ok(Outcome::Drop),
            tidegate_frame::Outcome::Keep { document, partition_key, collection } => {
                if document.is_some() != (kind == RecordKind::Upsert) {
                    return Err(malformed_because("a kept upsert has a document and a kept delete has none"));
                }
                let document = document.map(|(start, bytes)| span(start, bytes.len())).transpose()?;
                let partition_key = partition_key.map(|(start, text)| span(start, text.len())).transpose()?;
                let collection = collection.map(|(start, text)| span(start, text.len())).transpose()?;
                Ok(Outcome::Keep { document, partition_key, collection })
            }
        }
    }
}

pub(crate) fn malformed(error: &FrameError) -> Error {
    malformed_because(&error.to_string())
}

fn malformed_because(reason: &str) -> Error {
    Error::new(&code::SANDBOX_FAILED, "read response").because(reason)
}
