//! Documents by collection and key, and what is different about two such sets.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::value::RawValue;

use crate::daemon::{text, tidegate};

/// Key → document.
pub type Collection = BTreeMap<String, String>;

/// Collection → documents.
pub type Documents = BTreeMap<String, Collection>;

/// JSON without insignificant white space; everything else stays as it is.
pub fn compact(json: &str) -> String {
    let (mut inside, mut escaped) = (false, false);
    let significant = |character: &char| {
        let kept = inside || !character.is_ascii_whitespace();
        match character {
            '"' if !escaped => inside = !inside,
            _ => {}
        }
        escaped = inside && *character == '\\' && !escaped;
        kept
    };
    json.chars().filter(significant).collect()
}

/// The collection as a program leaves it, by the binary's own `transform run`.
///
/// # Panics
/// When a document is refused.
pub fn through(program: &Path, collection: &Collection, folder: &Path) -> Collection {
    let input = folder.join("transform.ndjson");
    let lines: String = collection.values().map(|document| format!("{document}\n")).collect();
    fs::write(&input, lines).expect("the test's folder can be written");
    let output = tidegate(&["transform", "run", &program.to_string_lossy(), "--strict", "--input", &input.to_string_lossy()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let outcomes = text(&output.stdout);
    assert_eq!(outcomes.lines().count(), collection.len(), "one outcome for each document");
    collection.keys().zip(outcomes.lines()).filter_map(|(key, line)| Some((key.clone(), kept(line)?))).collect()
}

fn kept(outcome: &str) -> Option<String> {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(outcome).expect("an outcome is one JSON object");
    match members["outcome"].get() {
        "\"keep\"" => Some(members["document"].get().to_owned()),
        "\"drop\"" => None,
        other => panic!("an outcome that cannot be here: {other}"),
    }
}

/// Panics with the first differences, unless both are equal, byte for byte.
///
/// # Panics
/// When they are not equal.
pub fn assert_equal(expected: &Documents, found: &Documents) {
    let mut reasons = Vec::new();
    for (name, documents) in expected {
        let there = found.get(name).cloned().unwrap_or_default();
        reasons.extend(differences(name, documents, &there));
    }
    let others = found.iter().filter(|(name, documents)| !documents.is_empty() && !expected.contains_key(*name));
    reasons.extend(others.map(|(name, _)| format!("{name}: not expected at all")));
    assert!(reasons.is_empty(), "source and destination differ:\n{}", reasons.join("\n"));
}

fn differences(name: &str, expected: &Collection, found: &Collection) -> Vec<String> {
    let some = |keys: Vec<&String>| keys.into_iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    let missing: Vec<&String> = expected.keys().filter(|key| !found.contains_key(*key)).collect();
    let extra: Vec<&String> = found.keys().filter(|key| !expected.contains_key(*key)).collect();
    let changed: Vec<&String> =
        expected.iter().filter(|(key, document)| found.get(*key).is_some_and(|there| there != *document)).map(|(key, _)| key).collect();
    let mut reasons = Vec::new();
    for (what, keys) in [("missing at the destination", missing), ("only at the destination", extra)] {
        if !keys.is_empty() {
            reasons.push(format!("{name}: {} {what}: {}", keys.len(), some(keys)));
        }
    }
    if let Some(key) = changed.first() {
        reasons.push(format!(
            "{name}: {} differ, for example {key}:\n  expected {}\n  found    {}",
            changed.len(),
            expected[*key],
            found[*key]
        ));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_insignificant_white_space_goes() {
        assert_eq!(compact(r#"{ "a b" : [1, 2 ,"\" x\\"] , "c": "\\" }"#), r#"{"a b":[1,2,"\" x\\"],"c":"\\"}"#);
    }
}
