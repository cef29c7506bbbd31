//! Short ways to run programs.

use tidegate_program::{Executor, Input, InputKind, Program, Spent, Verdict};

/// What comes of a change: `document`, `key | document` where the program gave a partition key, `drop`, or the poison's kind.
pub(crate) fn verdict(executor: &mut Executor, input: &Input<'_>) -> String {
    let mut out = Vec::new();
    match executor.run(input, &mut out) {
        Verdict::Keep { partition_key } => {
            let document = String::from_utf8(out).unwrap();
            partition_key.map_or(document.clone(), |key| format!("{} | {document}", key.as_ref()))
        }
        Verdict::Drop => "drop".to_owned(),
        Verdict::Poison { kind, reason } => {
            assert!(!reason.is_empty() && out.is_empty());
            kind.to_owned()
        }
    }
}

pub(crate) fn upsert(document: &[u8]) -> Input<'_> {
    Input { kind: InputKind::Upsert, document, partition_key: None, content_type: None }
}

/// An executor of a program with these instructions, and these members besides.
pub(crate) fn executor(members: &str, instructions: &str) -> Executor {
    let text = format!(r#"{{"name":"n","version":"1",{members}"instructions":[{instructions}]}}"#);
    Executor::new(Program::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}")))
}

/// An executor of a program with these limits.
pub(crate) fn limited(limits: &str, instructions: &str) -> Executor {
    executor(&format!(r#""limits":{{{limits}}},"#), instructions)
}

/// Runs instructions on one document, as a batch of its own.
pub(crate) fn run(instructions: &str, document: impl AsRef<[u8]>) -> String {
    verdict(&mut executor("", instructions), &upsert(document.as_ref()))
}

/// The same under limits.
pub(crate) fn run_limited(limits: &str, instructions: &str, document: impl AsRef<[u8]>) -> String {
    verdict(&mut limited(limits, instructions), &upsert(document.as_ref()))
}

/// Runs instructions on documents of one batch, up to the first poison.
pub(crate) fn batch(limits: &str, instructions: &str, documents: &[&str]) -> Vec<String> {
    let mut executor = limited(limits, instructions);
    executor.begin(Spent::default());
    let mut verdicts: Vec<String> = Vec::new();
    for document in documents {
        let verdict = verdict(&mut executor, &upsert(document.as_bytes()));
        let poison = !verdict.starts_with('{') && verdict != "drop" && !verdict.contains(" | ");
        verdicts.push(verdict);
        if poison {
            break;
        }
    }
    verdicts
}

pub(crate) fn remove(path: &str) -> String {
    format!(r#"{{"op":"remove","path":"{path}"}}"#)
}

pub(crate) fn set(path: &str, value: &str) -> String {
    format!(r#"{{"op":"set","path":"{path}","value":{value}}}"#)
}

pub(crate) fn copy(from: &str, to: &str) -> String {
    format!(r#"{{"op":"copy","from":"{from}","to":"{to}"}}"#)
}

pub(crate) fn route(path: &str) -> String {
    format!(r#"{{"op":"route","path":"{path}"}}"#)
}

pub(crate) fn drop_when(path: &str, value: &str) -> String {
    format!(r#"{{"op":"drop-when-equals","path":"{path}","value":{value}}}"#)
}

pub(crate) fn require(path: &str, value: &str) -> String {
    format!(r#"{{"op":"require-equals","path":"{path}","value":{value}}}"#)
}

/// `value` inside of `depth` arrays.
pub(crate) fn nested(depth: usize, value: &str) -> String {
    format!("{}{value}{}", "[".repeat(depth), "]".repeat(depth))
}
