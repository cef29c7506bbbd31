//! Names that an object has twice.

use crate::support::{copy, drop_when, remove, require, route, run, set};

#[test]
fn the_name_that_an_instruction_looks_for_must_be_there_once() {
    for document in [r#"{"a":1,"a":2}"#, r#"{"a":1,"b":1,"a":1}"#, r#"{"a":null,"\u0061":null}"#] {
        for instruction in
            [remove("a"), set("a", "1"), set("a.x", "1"), copy("a", "c"), route("a"), drop_when("a", "null"), require("a.x", "1")]
        {
            assert_eq!(run(&instruction, document), "duplicate-name", "{instruction}");
        }
        let target = format!("{},{}", set("s", "1"), copy("s", "a"));
        assert_eq!(run(&target, document), "duplicate-name");
    }
}

#[test]
fn repeated_names_elsewhere_pass_as_they_came() {
    let document = r#"{"b":1,"b":2,"c":{"d":1,"d":[{"e":1,"e":1}]},"":1,"":2}"#;
    assert_eq!(run(&remove("a"), document), document);
    assert_eq!(run(&set("c.x", "1"), document), r#"{"b":1,"b":2,"c":{"d":1,"d":[{"e":1,"e":1}],"x":1},"":1,"":2}"#);
    assert_eq!(run(&copy("c", "z"), document), format!(r#"{},"z":{{"d":1,"d":[{{"e":1,"e":1}}]}}}}"#, &document[..document.len() - 1]));
}

#[test]
fn an_instruction_that_is_not_reached_does_not_look() {
    let program = format!("{},{}", drop_when("s", "1"), remove("a"));
    assert_eq!(run(&program, r#"{"s":1,"a":1,"a":2}"#), "drop");
    assert_eq!(run(&program, r#"{"s":2,"a":1,"a":2}"#), "duplicate-name");
    assert_eq!(run(&remove("a.b"), r#"{"a":[],"b":1,"b":2}"#), r#"{"a":[],"b":1,"b":2}"#);
}

#[test]
fn a_parent_that_was_replaced_has_its_names_once() {
    let program = format!("{},{}", set("p", "{}"), set("p.a", "1"));
    assert_eq!(run(&program, r#"{"p":{"a":1,"a":2}}"#), r#"{"p":{"a":1}}"#);
}

#[test]
fn copies_keep_the_names_that_they_have_twice() {
    assert_eq!(run(&format!("{},{}", copy("p", "q"), remove("q.a")), r#"{"p":{"a":1,"a":2}}"#), "duplicate-name");
    assert_eq!(run(&format!("{},{}", copy("p", "q"), remove("q.b")), r#"{"p":{"a":1,"a":2}}"#), r#"{"p":{"a":1,"a":2},"q":{"a":1,"a":2}}"#);
}

#[test]
fn objects_that_are_compared_have_no_name_twice() {
    assert_eq!(run(&require("o", r#"{"a":1,"b":2}"#), r#"{"o":{"a":1,"a":1}}"#), "duplicate-name");
    assert_eq!(run(&drop_when("o", r#"{"a":1}"#), r#"{"o":{"c":1,"\u0063":1}}"#), "duplicate-name");
    assert_eq!(run(&drop_when("o", r#"[{"a":1}]"#), r#"{"o":[{"a":1,"a":1}]}"#), "duplicate-name");
    for literal in ["5", "[]", "null", "\"x\""] {
        assert_eq!(run(&drop_when("o", literal), r#"{"o":{"a":1,"a":2}}"#), r#"{"o":{"a":1,"a":2}}"#);
    }
}
