//! What each instruction does.

use crate::support::{copy, drop_when, remove, require, route, run, set};

#[test]
fn remove_takes_a_member_and_leaves_the_order_of_the_others() {
    assert_eq!(run(&remove("a"), r#"{"a":1,"b":2,"c":3}"#), r#"{"b":2,"c":3}"#);
    assert_eq!(run(&remove("b"), r#"{"a":1,"b":2,"c":3}"#), r#"{"a":1,"c":3}"#);
    assert_eq!(run(&remove("c"), r#"{"a":1,"b":2,"c":3}"#), r#"{"a":1,"b":2}"#);
    assert_eq!(run(&remove("a"), r#"{"a":[{}]}"#), "{}");
    assert_eq!(run(&remove("a.c"), r#"{"a":{"b":1,"c":null}}"#), r#"{"a":{"b":1}}"#);
}

#[test]
fn neighbours_that_are_removed_take_their_commas_with_them() {
    let all = [remove("a"), remove("b"), remove("c"), remove("d")];
    for kept in 0..16 {
        let instructions: Vec<String> = (0..4).filter(|n| kept >> n & 1 == 0).map(|n| all[n].clone()).collect();
        let left: Vec<&str> = (0..4).filter(|n| kept >> n & 1 == 1).map(|n| ["\"a\":1", "\"b\":{}", "\"c\":[]", "\"d\":\"\""][n]).collect();
        let instructions = if instructions.is_empty() { remove("z") } else { instructions.join(",") };
        assert_eq!(run(&instructions, r#"{"a":1,"b":{},"c":[],"d":""}"#), format!("{{{}}}", left.join(",")));
        let more = format!("{instructions},{}", set("e", "5"));
        let with: Vec<&str> = left.iter().copied().chain(["\"e\":5"]).collect();
        assert_eq!(run(&more, r#"{"a":1,"b":{},"c":[],"d":""}"#), format!("{{{}}}", with.join(",")));
    }
}

#[test]
fn remove_of_what_is_not_there_changes_nothing() {
    for document in [r#"{"a":1}"#, r#"{"a":"b"}"#, r#"{"a":null}"#, r#"{"a":[1,2]}"#, r#"{"a":{"B":1}}"#, "{}"] {
        assert_eq!(run(&remove("a.b"), document), document);
        assert_eq!(run(&remove("x.y"), document), document);
    }
    assert_eq!(run(&remove("a.0"), r#"{"a":[1,2]}"#), r#"{"a":[1,2]}"#);
    assert_eq!(run(&remove("a.b"), r#"{"a.b":1}"#), r#"{"a.b":1}"#);
}

#[test]
fn set_replaces_in_place_and_appends_what_is_new() {
    assert_eq!(run(&set("a", r#"{"z":[1]}"#), r#"{"a":1,"b":2}"#), r#"{"a":{"z":[1]},"b":2}"#);
    assert_eq!(run(&set("c", "3"), r#"{"a":1}"#), r#"{"a":1,"c":3}"#);
    assert_eq!(run(&set("c", "3"), "{}"), r#"{"c":3}"#);
    assert_eq!(run(&format!("{},{}", remove("a"), set("a", "9")), r#"{"a":1,"b":2}"#), r#"{"b":2,"a":9}"#);
    assert_eq!(run(&set("a", "null"), r#"{"a":1}"#), r#"{"a":null}"#);
}

#[test]
fn set_keeps_a_name_as_it_was_written() {
    assert_eq!(run(&set("a", "9"), r#"{"\u0061":1}"#), r#"{"\u0061":9}"#);
    assert_eq!(run(&set("q\\\"\\n", "9"), "{}"), r#"{"q\"\n":9}"#);
}

#[test]
fn set_makes_parents_of_what_is_missing_or_null() {
    assert_eq!(run(&set("a.b.c", "1"), "{}"), r#"{"a":{"b":{"c":1}}}"#);
    assert_eq!(run(&set("a.b.c", "1"), r#"{"a":{"b":null,"d":2}}"#), r#"{"a":{"b":{"c":1},"d":2}}"#);
    assert_eq!(run(&set("m.s", "1"), r#"{"m":null}"#), r#"{"m":{"s":1}}"#);
    assert_eq!(run(&format!("{},{}", set("a", "null"), set("a.b", "1")), r#"{"a":5}"#), r#"{"a":{"b":1}}"#);
}

#[test]
fn a_parent_that_is_no_object_is_poison() {
    for parent in ["5", "\"x\"", "true", "false", "[]", "[{}]"] {
        let document = format!(r#"{{"m":{parent},"s":1}}"#);
        assert_eq!(run(&set("m.x", "1"), &document), "parent-not-object");
        assert_eq!(run(&set("m.x.y", "1"), &document), "parent-not-object");
        assert_eq!(run(&copy("s", "m.x"), &document), "parent-not-object");
    }
}

#[test]
fn set_writes_its_literal_in_canonical_form() {
    let literal = r#"{ "z" : [ 1.0 , 1E2 ] , "b" : { } , "😀" : 1, "～" : 2, "B":{"b":-0,"a":"\u0041\/\u00e9\u0001\u001F\u0008"} }"#;
    let written = r#"{"B":{"a":"A/é\u0001\u001f\b","b":-0},"b":{},"z":[1.0,1E2],"～":2,"😀":1}"#;
    assert_eq!(run(&set("a", literal), "{}"), format!(r#"{{"a":{written}}}"#));
}

#[test]
fn a_literal_stays_itself_from_document_to_document() {
    let mut executor = crate::support::executor("", &format!("{},{}", set("a", r#"{"x":1}"#), set("a.y", "2")));
    for document in ["{}", r#"{"a":0}"#, "{}"] {
        let verdict = crate::support::verdict(&mut executor, &crate::support::upsert(document.as_bytes()));
        assert_eq!(verdict, r#"{"a":{"x":1,"y":2}}"#);
    }
}

#[test]
fn instructions_go_into_literals_and_copies() {
    let into = [set("a", r#"{"x":{"y":1},"z":2}"#), set("a.x.y", "3"), remove("a.z"), route("a.x.y")];
    assert_eq!(run(&into.join(","), "{}"), r#"3 | {"a":{"x":{"y":3}}}"#);
    let into = [copy("s", "t"), set("t.k", "2"), remove("t.l"), copy("t.k", "t.m")];
    assert_eq!(run(&into.join(","), r#"{"s":{"k":1,"l":[{}],"o":"p"}}"#), r#"{"s":{"k":1,"l":[{}],"o":"p"},"t":{"k":2,"o":"p","m":2}}"#);
}

#[test]
fn copy_takes_the_text_as_it_came() {
    assert_eq!(run(&copy("c.n", "d.n"), r#"{"c":{"n":"Ada"}}"#), r#"{"c":{"n":"Ada"},"d":{"n":"Ada"}}"#);
    assert_eq!(run(&copy("s", "t"), r#"{"t":[1,2],"s":{"k":1}}"#), r#"{"t":{"k":1},"s":{"k":1}}"#);
    for value in ["1.0", "-0", "1E+400", r#""\u0041\/\u00E9\ud800""#, r#"[1,{"\u0078":1,"x":2,"x":3}]"#] {
        assert_eq!(run(&copy("a", "b"), format!(r#"{{"a":{value}}}"#)), format!(r#"{{"a":{value},"b":{value}}}"#));
    }
    assert_eq!(run(&copy("a", "b"), r#"{"a" : [ 1 , { "x" : " y " } ] }"#), r#"{"a":[1,{"x":" y "}],"b":[1,{"x":" y "}]}"#);
}

#[test]
fn a_source_that_is_missing_or_null_is_poison_whatever_the_target_is() {
    for document in ["{}", r#"{"c":{}}"#, r#"{"c":5}"#, r#"{"c":{"n":null}}"#, r#"{"c":[{"n":1}]}"#] {
        assert_eq!(run(&copy("c.n", "d.x"), document), "copy-source-missing");
    }
    assert_eq!(run(&copy("x", "m.x"), r#"{"m":2}"#), "copy-source-missing");
    assert_eq!(run(&format!("{},{}", remove("a"), copy("a", "b")), r#"{"a":1}"#), "copy-source-missing");
}

#[test]
fn a_copy_is_deep_in_both_directions() {
    let source_changes = [copy("a", "b"), set("a.x.y", "2"), remove("a.z")];
    let document = r#"{"a":{"x":{"y":1},"z":0}}"#;
    assert_eq!(run(&source_changes.join(","), document), r#"{"a":{"x":{"y":2}},"b":{"x":{"y":1},"z":0}}"#);
    let copy_changes = [copy("a", "b"), set("b.x.y", "2"), remove("b.z")];
    assert_eq!(run(&copy_changes.join(","), document), r#"{"a":{"x":{"y":1},"z":0},"b":{"x":{"y":2}}}"#);
    let both = [set("a.x.w", "5"), copy("a", "b"), copy("a.x", "c"), set("a.x.y", "2"), set("b.x.y", "3"), set("c.y", "4")];
    assert_eq!(run(&both.join(","), document), r#"{"a":{"x":{"y":2,"w":5},"z":0},"b":{"x":{"y":3,"w":5},"z":0},"c":{"y":4,"w":5}}"#);
}

#[test]
fn a_copy_into_its_own_inside_is_finite() {
    assert_eq!(run(&copy("a", "a.self"), r#"{"a":{"x":1}}"#), r#"{"a":{"x":1,"self":{"x":1}}}"#);
    assert_eq!(run(&copy("a.b", "a"), r#"{"a":{"b":{"x":1}}}"#), r#"{"a":{"x":1}}"#);
    assert_eq!(run(&copy("a", "a"), r#"{"a":{"x":[1.0]},"b":2}"#), r#"{"a":{"x":[1.0]},"b":2}"#);
    let thrice = [copy("a", "a.a"), copy("a", "a.b"), copy("a", "a.c")].join(",");
    assert_eq!(run(&thrice, r#"{"a":{}}"#), r#"{"a":{"a":{},"b":{"a":{}},"c":{"a":{},"b":{"a":{}}}}}"#);
}

#[test]
fn route_gives_the_text_at_that_point_of_the_program() {
    assert_eq!(run(&route("t.id"), r#"{"t":{"id":"acme"}}"#), r#"acme | {"t":{"id":"acme"}}"#);
    for scalar in ["7", "7.0", "1e2", "-0", "true", "false"] {
        assert_eq!(run(&route("t"), format!(r#"{{"t":{scalar}}}"#)), format!(r#"{scalar} | {{"t":{scalar}}}"#));
    }
    assert_eq!(run(&route("t"), r#"{"t":" \u0061\/\"\ud83d\ude00"}"#), r#" a/"😀 | {"t":" \u0061\/\"\ud83d\ude00"}"#);
    assert_eq!(run(&format!("{},{}", route("t"), remove("t")), r#"{"t":"z","a":1}"#), r#"z | {"a":1}"#);
    assert_eq!(run(&format!("{},{}", set("t", "1.50"), route("t")), "{}"), r#"1.50 | {"t":1.50}"#);
    assert_eq!(run(&format!("{},{}", route("a"), route("b")), r#"{"a":"x","b":"y"}"#), r#"y | {"a":"x","b":"y"}"#);
}

#[test]
fn a_route_to_nothing_or_to_a_blank_is_poison() {
    for value in ["null", "\"\"", "\" \"", r#""\u3000\u2028\t\u0085""#] {
        assert_eq!(run(&route("t"), format!(r#"{{"t":{value}}}"#)), "route-missing");
    }
    for document in ["{}", r#"{"T":"x"}"#] {
        assert_eq!(run(&route("t"), document), "route-missing");
        assert_eq!(run(&route("t.id"), document), "route-missing");
    }
    assert_eq!(run(&route("t.0"), r#"{"t":["x"]}"#), "route-missing");
    assert_eq!(run(&format!("{},{}", route("a"), route("b")), r#"{"b":"y"}"#), "route-missing");
    // A zero width space is none of Unicode's white space.
    assert_eq!(run(&route("t"), r#"{"t":"\u200b"}"#), "\u{200b} | {\"t\":\"\\u200b\"}");
}

#[test]
fn a_route_to_what_is_no_text_is_poison() {
    for value in ["{}", "[]", r#"{"id":1}"#, r#"["x"]"#] {
        assert_eq!(run(&format!("{},{}", require("x", "null"), route("t")), format!(r#"{{"t":{value}}}"#)), "route-not-scalar");
        assert_eq!(run(&format!("{},{}", set("t", value), route("t")), "{}"), "route-not-scalar");
    }
    assert_eq!(run(&route("t"), r#"{"t":"\ud800"}"#), "route-not-text");
}

#[test]
fn a_drop_ends_the_program() {
    let program = format!("{},{}", drop_when("s", "\"x\""), require("kind", "\"k\""));
    assert_eq!(run(&program, r#"{"s":"x"}"#), "drop");
    assert_eq!(run(&program, r#"{"s":"y"}"#), "required-value-differs");
    assert_eq!(run(&program, r#"{"s":"y","kind":"k"}"#), r#"{"s":"y","kind":"k"}"#);
}

#[test]
fn predicates_see_what_was_done_before() {
    assert_eq!(run(&format!("{},{}", set("s", "\"x\""), drop_when("s", "\"x\"")), r#"{"s":"open"}"#), "drop");
    assert_eq!(run(&format!("{},{}", remove("s"), require("s", "null")), r#"{"s":1}"#), "{}");
    let edited = [remove("o.a"), set("o.c", "3"), require("o", r#"{"c":3,"b":2}"#)].join(",");
    assert_eq!(run(&edited, r#"{"o":{"a":1,"b":2.0}}"#), r#"{"o":{"b":2.0,"c":3}}"#);
}

#[test]
fn what_is_missing_equals_null() {
    for document in ["{}", r#"{"a":null}"#, r#"{"a":5}"#, r#"{"a":{"b":"c"}}"#, r#"{"a":[{"b":{"c":1}}]}"#] {
        assert_eq!(run(&drop_when("a.b.c", "null"), document), "drop");
    }
    for value in ["0", "false", "\"\"", "[]", "{}"] {
        let document = format!(r#"{{"a":{value}}}"#);
        assert_eq!(run(&drop_when("a", "null"), &document), document);
    }
}

#[test]
fn the_order_program_does_what_it_says() {
    let program = [
        require("kind", "\"order\""),
        copy("customer.name", "displayName"),
        remove("customer.email"),
        set("metadata.source", "\"cdc\""),
        route("tenant.id"),
        drop_when("status", "\"cancelled\""),
    ]
    .join(",");
    assert_eq!(
        run(&program, r#"{"kind":"order","id":7,"customer":{"name":"Zoë","email":"z@x"},"tenant":{"id":42},"total":19.90}"#),
        r#"42 | {"kind":"order","id":7,"customer":{"name":"Zoë"},"tenant":{"id":42},"total":19.90,"displayName":"Zoë","metadata":{"source":"cdc"}}"#
    );
    assert_eq!(run(&program, r#"{"kind":"order","customer":{"name":"B"},"tenant":{"id":1},"status":"cancelled"}"#), "drop");
    assert_eq!(run(&program, r#"{"kind":"order","customer":{"name":"B"},"status":"cancelled"}"#), "route-missing");
}
