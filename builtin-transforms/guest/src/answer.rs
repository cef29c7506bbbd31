//! One request frame in, one response frame out.

use tidegate_frame::{FrameError, Place, Record, RecordKind, Request, ResponseWriter, Spent, write_poison};
use tidegate_program::{Executor, Input, InputKind, Program, Verdict};

/// An answer stops after the outcome that brings it here: the host asks again for the rest. A program may write far more than
/// it reads (`set` with a long literal on thousands of small documents), and must not fail for lack of memory by that.
const ENOUGH_BYTES: usize = 4 << 20;

/// The executor of the program that `config` holds.
///
/// # Errors
/// When it is no program: the place and the reason.
pub fn executor(config: &[u8]) -> Result<Executor, String> {
    Program::parse(config).map(Executor::new).map_err(|error| format!("{}: {}", error.path, error.reason))
}

/// Runs the program on every record, up to the first that is refused.
///
/// # Errors
/// When the bytes are no request.
pub fn answer(executor: &mut Executor, frame: &[u8]) -> Result<Vec<u8>, FrameError> {
    let request = Request::parse(frame)?;
    executor.begin(to_program(request.header.spent));
    let mut response = ResponseWriter::new(frame.len() + frame.len() / 8);
    for record in request.records() {
        let input = input(&record?);
        let mut item = response.item();
        match executor.run(&input, item.document()) {
            Verdict::Keep { partition_key } => {
                let place = Place { partition_key: partition_key.as_ref().map(AsRef::as_ref), collection: None };
                match input.kind {
                    InputKind::Upsert => item.keep_document(place),
                    InputKind::Delete | InputKind::DeleteCollection => item.keep(place),
                }
            }
            Verdict::Drop => item.drop_row(),
            Verdict::Poison { kind, reason } => return Ok(write_poison(Some(response.len()), kind, &reason)),
        }
        if response.byte_len() >= ENOUGH_BYTES {
            break;
        }
    }
    Ok(response.finish(from_program(executor.spent())))
}

fn input<'a>(record: &Record<'a>) -> Input<'a> {
    let kind = match record.kind {
        RecordKind::Upsert => InputKind::Upsert,
        RecordKind::Delete => InputKind::Delete,
        RecordKind::DeleteCollection => InputKind::DeleteCollection,
    };
    let document = record.document.unwrap_or_default();
    Input { kind, document, partition_key: record.partition_key, content_type: record.content_type }
}

fn to_program(spent: Spent) -> tidegate_program::Spent {
    tidegate_program::Spent { operations: spent.operations, batch_bytes: spent.batch_bytes }
}

fn from_program(spent: tidegate_program::Spent) -> Spent {
    Spent { operations: spent.operations, batch_bytes: spent.batch_bytes }
}
