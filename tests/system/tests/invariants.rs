//! docs/invariants.md and the code say the same: every number is enforced somewhere, and tested somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::arrows::root;

#[test]
fn every_live_invariant_is_cited_where_it_is_enforced_and_where_it_is_tested() {
    let page = fs::read_to_string(root().join("docs/invariants.md")).expect("docs/invariants.md is there");
    let mut code: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    let mut tests = code.clone();
    for folder in ["connectors", "host", "guest-sdk", "builtin-transforms", "tests"] {
        cited(&root().join(folder), &mut code, &mut tests);
    }
    let numbered: Vec<(u32, bool)> = page.lines().filter_map(numbered).collect();
    assert_eq!(numbered.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (1..=12).collect::<Vec<_>>());
    for (number, live) in numbered {
        assert_eq!(code.contains_key(&number), live, "invariant {number}: a line of the code that says `// Invariant {number}`");
        assert_eq!(tests.contains_key(&number), live, "invariant {number}: a test that says `// Invariant {number}`");
    }
    let known = |number: &&u32| !(1..=12).contains(*number);
    assert_eq!(code.keys().chain(tests.keys()).find(known), None, "a number that docs/invariants.md does not have");
}

/// `3. **Title.** …` is live, `9. *(not yet)* …` is not.
fn numbered(line: &str) -> Option<(u32, bool)> {
    let (number, rest) = line.split_once(". ")?;
    Some((number.parse().ok()?, !rest.starts_with("*(not yet)*")))
}

fn cited(folder: &Path, code: &mut BTreeMap<u32, BTreeSet<String>>, tests: &mut BTreeMap<u32, BTreeSet<String>>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            cited(&path, code, tests);
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source file");
        let (shipped, tested) = text.split_once("#[cfg(test)]").unwrap_or((&text, ""));
        let is_test = path.components().any(|part| part.as_os_str() == "tests");
        let name = path.display().to_string();
        for number in numbers(shipped) {
            if is_test { &mut *tests } else { &mut *code }.entry(number).or_default().insert(name.clone());
        }
        for number in numbers(tested) {
            tests.entry(number).or_default().insert(name.clone());
        }
    }
}

fn numbers(text: &str) -> impl Iterator<Item = u32> {
    text.split("// Invariant ").skip(1).filter_map(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    })
}
