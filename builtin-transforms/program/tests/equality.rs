//! When two values are equal.

use crate::support::{drop_when, require, run};

fn equal(value: &str, literal: &str) -> bool {
    let document = format!(r#"{{"v":{value}}}"#);
    let dropped = run(&drop_when("v", literal), &document);
    let required = run(&require("v", literal), &document);
    match dropped.as_str() {
        "drop" => assert_eq!(required, document),
        kept => assert_eq!((kept, required.as_str()), (document.as_str(), "required-value-differs")),
    }
    dropped == "drop"
}

#[test]
fn numbers_are_equal_by_their_exact_decimal_value() {
    for way in ["1", "1.0", "10e-1", "0.1E1", "1e0", "1.000000000000000000000"] {
        assert!(equal(way, "1"));
    }
    assert!(!equal("9007199254740993", "9007199254740992"));
    assert!(equal("-0.0e-7", "0") && !equal("1e-400", "0"));
    assert!(equal("10e399", "1e400") && !equal("1e4000", "1e400"));
    assert!(!equal("-5", "5"));
}

#[test]
fn an_exponent_of_more_than_18_digits_is_poison_only_where_it_is_compared() {
    let long = r#"{"v":1e1000000000000000000}"#;
    assert_eq!(run(&drop_when("v", "1"), long), "number-exponent");
    assert_eq!(run(&require("v", "1e1000000000000000000"), r#"{"v":1}"#), "number-exponent");
    assert_eq!(run(&drop_when("v", "[1]"), r#"{"v":[-1E-1000000000000000000]}"#), "number-exponent");
    assert_eq!(run(&drop_when("v", "\"1\""), long), long);
    assert_eq!(run(&drop_when("v", "[1]"), r#"{"v":[1e1000000000000000000,2]}"#), r#"{"v":[1e1000000000000000000,2]}"#);
    assert_eq!(run(&drop_when("w", "1"), long), long);
}

#[test]
fn kinds_must_agree() {
    let values = ["null", "true", "false", "1", "\"1\"", "[1]", "[]", "{}", r#"{"v":1}"#, "\"true\"", "\"null\""];
    for (a, value) in values.iter().enumerate() {
        for (b, literal) in values.iter().enumerate() {
            assert_eq!(equal(value, literal), a == b, "{value} {literal}");
        }
    }
}

#[test]
fn texts_are_equal_by_what_they_say_and_not_normalised() {
    assert!(equal(r#""\u0041""#, "\"A\"") && equal("\"A\"", r#""\u0041""#) && !equal("\"a\"", "\"A\""));
    assert!(equal(r#""\uD83D\uDE00""#, "\"😀\"") && !equal(r#""\ude00\ud83d""#, "\"😀\"") && !equal(r#""\ud83d""#, "\"😀\""));
    assert!(!equal("\"e\u{301}\"", "\"é\"") && equal(r#""\u00e9""#, "\"é\""));
    assert!(!equal(r#""\ud800""#, "\"\u{fffd}\"") && equal(r#""\ufffd""#, "\"\u{fffd}\""));
    assert!(equal(r#""a\u0000b""#, r#""a\u0000b""#) && !equal("\"a\"", r#""a\u0000b""#));
    assert!(equal(r#""\\n""#, r#""\\n""#) && !equal(r#""\n""#, r#""\\n""#) && !equal("\" x\"", "\"x\""));
}

#[test]
fn arrays_are_equal_element_by_element() {
    assert!(equal("[1.0,20e-1]", "[1,2]") && !equal("[2,1]", "[1,2]") && !equal("[1]", "[1,2]") && !equal("[1,2,3]", "[1,2]"));
    assert!(equal("[null,[[]],\",\"]", "[null,[[]],\",\"]") && !equal("[]", "[null]") && !equal("[0]", "[null]"));
}

#[test]
fn objects_are_equal_member_by_member_in_any_order() {
    assert!(equal(r#"{"b":2,"a":1.0}"#, r#"{"a":1,"b":2}"#) && equal(r#"{"\u0061":{"c":[]}}"#, r#"{"a":{"c":[]}}"#));
    for other in ["{}", r#"{"a":1}"#, r#"{"a":1,"b":2,"c":3}"#, r#"{"a":2,"b":1}"#, r#"{"a":1,"c":2}"#] {
        assert!(!equal(other, r#"{"a":1,"b":2}"#), "{other}");
    }
}

#[test]
fn a_null_member_is_not_an_absent_one() {
    assert!(!equal(r#"{"a":null}"#, r#"{"b":null}"#) && !equal(r#"{"a":1,"b":null}"#, r#"{"a":1}"#) && !equal("{}", r#"{"b":null}"#));
}
