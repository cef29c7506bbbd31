//! Each limit, from both sides.

use tidegate_program::Spent;

use crate::support::{batch, copy, drop_when, limited, nested, remove, require, run, run_limited, set, upsert, verdict};

#[test]
fn a_document_may_be_as_large_as_the_limit_on_the_way_in() {
    let limit = r#""document_bytes":7"#;
    assert_eq!(run_limited(limit, &remove("z"), r#"{"a":1}"#), r#"{"a":1}"#);
    assert_eq!(run_limited(limit, &remove("a"), r#"{"a":12}"#), "limit-document-bytes");
    assert_eq!(run_limited(limit, &remove("z"), "{\"a\":1}\r"), "limit-document-bytes");
    // Bytes, not characters; and before anything else is looked at.
    assert_eq!(run_limited(r#""document_bytes":9"#, &remove("a"), r#"{"a":"é"}"#), "limit-document-bytes");
    assert_eq!(run_limited(r#""document_bytes":3"#, &remove("a"), "xxxx"), "limit-document-bytes");
    assert_eq!(run_limited(r#""document_bytes":9,"depth":1"#, &remove("a"), r#"{"a":[[]]}"#), "limit-document-bytes");
}

#[test]
fn a_document_may_be_as_large_as_the_limit_on_the_way_out() {
    let limit = r#""document_bytes":14"#;
    assert_eq!(run_limited(limit, &set("z", "10"), r#"{"a":1}"#), r#"{"a":1,"z":10}"#);
    assert_eq!(run_limited(limit, &set("z", "10"), r#"{"a":12}"#), "limit-document-bytes");
    assert_eq!(run_limited(limit, &set("z", "10"), r#"{ "a": 1 }"#), r#"{"a":1,"z":10}"#);
    assert_eq!(run_limited(limit, &copy("a", "b"), r#"{"a":"12"}"#), "limit-document-bytes");
    assert_eq!(run_limited(limit, &copy("a", "b"), r#"{"a":[]}"#), "{\"a\":[],\"b\":[]}"[..0].to_owned() + "limit-document-bytes");
    assert_eq!(run_limited(r#""document_bytes":15"#, &copy("a", "b"), r#"{"a":[]}"#), r#"{"a":[],"b":[]}"#);
}

#[test]
fn the_output_is_looked_at_once_after_the_last_instruction() {
    let long = set("v", "\"a long text that is too long\"");
    let limit = r#""document_bytes":10,"depth":2"#;
    assert_eq!(run_limited(limit, &format!("{long},{}", remove("v")), r#"{"a":1}"#), r#"{"a":1}"#);
    assert_eq!(run_limited(limit, &format!("{long},{}", drop_when("a", "1")), r#"{"a":1}"#), "drop");
    assert_eq!(run_limited(limit, &format!("{long},{}", drop_when("a", "1")), r#"{"a":2}"#), "limit-document-bytes");
    let deep = set("a.b.c.d", "1");
    assert_eq!(run_limited(limit, &format!("{deep},{}", remove("a")), "{}"), "{}");
    assert_eq!(run_limited(limit, &format!("{deep},{}", drop_when("a.b.c.d", "1")), "{}"), "drop");
    assert_eq!(run_limited(limit, &deep, "{}"), "limit-depth");
}

#[test]
fn depth_counts_containers_that_are_open_at_once_on_the_way_in() {
    for limit in [1, 2, 5, 63, 64, 65, 128, 255, 256] {
        let limits = format!(r#""depth":{limit}"#);
        let at = format!("{{\"a\":{}}}", nested(limit - 1, "1"));
        let above = format!("{{\"a\":{}}}", nested(limit, "1"));
        for instruction in [remove("z"), remove("a.b"), set("b", "1")] {
            assert_ne!(run_limited(&limits, &instruction, &at), "limit-depth");
            assert_eq!(run_limited(&limits, &instruction, &above), "limit-depth");
        }
        let objects = |depth: usize| format!("{}{{}}{}", "{\"a\":".repeat(depth - 1), "}".repeat(depth - 1));
        assert_eq!(run_limited(&limits, &remove("a.a.b"), objects(limit)), objects(limit));
        assert_eq!(run_limited(&limits, &remove("a.a.b"), objects(limit + 1)), "limit-depth");
    }
    assert_eq!(
        run_limited(r#""depth":2"#, &remove("z"), r#"{"a":{},"b":[],"c":{"d":1},"e":[2,3]}"#),
        r#"{"a":{},"b":[],"c":{"d":1},"e":[2,3]}"#
    );
    assert_eq!(run_limited(r#""depth":3"#, &remove("a"), r#"{"a":[[[]]]}"#), "limit-depth");
    assert_eq!(run_limited(r#""depth":2"#, &remove("a"), "[[[]]]"), "limit-depth");
    assert_eq!(run(&remove("a"), format!("{{\"a\":{}}}", nested(100_000, ""))), "limit-depth");
}

#[test]
fn what_comes_first_in_a_document_is_told() {
    assert_eq!(run_limited(r#""depth":2"#, &remove("a"), r#"{"a":[[ x"#), "limit-depth");
    assert_eq!(run_limited(r#""depth":2"#, &remove("a"), r#"{"b":x,"a":[[]]}"#), "invalid-json");
    assert_eq!(run_limited(r#""depth":2"#, &remove("a"), b"{\"a\":[[]],\"b\":\"\xff\"}"), "limit-depth");
    assert_eq!(run_limited(r#""depth":2"#, &remove("a"), b"{\"b\":\"\xff\",\"a\":[[]]}"), "invalid-json");
}

#[test]
fn depth_counts_what_set_and_copy_build() {
    assert_eq!(run_limited(r#""depth":3"#, &set("a.b.c", "1"), "{}"), r#"{"a":{"b":{"c":1}}}"#);
    assert_eq!(run_limited(r#""depth":2"#, &set("a.b.c", "1"), "{}"), "limit-depth");
    assert_eq!(run_limited(r#""depth":3"#, &set("a", "[[]]"), "{}"), r#"{"a":[[]]}"#);
    assert_eq!(run_limited(r#""depth":2"#, &set("a", "[[]]"), "{}"), "limit-depth");
    assert_eq!(run_limited(r#""depth":4"#, &copy("a", "b.c"), r#"{"a":[[]]}"#), r#"{"a":[[]],"b":{"c":[[]]}}"#);
    assert_eq!(run_limited(r#""depth":4"#, &copy("a", "b.c"), r#"{"a":[[[]]]}"#), "limit-depth");
    assert_eq!(run_limited(r#""depth":2"#, &copy("a", "a.self"), r#"{"a":{"x":1}}"#), "limit-depth");
    let edited = format!("{},{}", set("a.y", "[]"), copy("a", "b.c"));
    assert_eq!(run_limited(r#""depth":4"#, &edited, r#"{"a":{}}"#), r#"{"a":{"y":[]},"b":{"c":{"y":[]}}}"#);
    assert_eq!(run_limited(r#""depth":3"#, &edited, r#"{"a":{}}"#), "limit-depth");
    assert_eq!(run_limited(r#""depth":1"#, &set("a", "{}").replace("{}", "1"), "{}"), r#"{"a":1}"#);
}

#[test]
fn batch_bytes_count_every_input_and_every_output() {
    let eight = set("v", "\"expanded\"");
    assert_eq!(batch(r#""batch_bytes":36"#, &eight, &["{}", "{}"]), [r#"{"v":"expanded"}"#, r#"{"v":"expanded"}"#]);
    assert_eq!(batch(r#""batch_bytes":35"#, &eight, &["{}", "{}"]), [r#"{"v":"expanded"}"#, "limit-batch-bytes"]);
    assert_eq!(batch(r#""batch_bytes":19"#, &eight, &["{}", "{}"]), [r#"{"v":"expanded"}"#, "limit-batch-bytes"]);
    // What is dropped counts its way in.
    let dropped = drop_when("s", "1");
    assert_eq!(batch(r#""batch_bytes":14"#, &dropped, &[r#"{"s":1}"#, r#"{"s":1}"#]), ["drop", "drop"]);
    assert_eq!(batch(r#""batch_bytes":13"#, &dropped, &[r#"{"s":1}"#, r#"{"s":1}"#]), ["drop", "limit-batch-bytes"]);
    // After the limit of the document, before its text is looked at.
    assert_eq!(batch(r#""batch_bytes":3"#, &dropped, &["xxxx"]), ["limit-batch-bytes"]);
    assert_eq!(batch(r#""batch_bytes":3,"document_bytes":3"#, &dropped, &["xxxx"]), ["limit-document-bytes"]);
}

#[test]
fn operations_count_every_instruction_that_is_started() {
    let program = format!("{},{}", drop_when("s", "\"x\""), set("a", "1"));
    assert_eq!(batch(r#""operations":3"#, &program, &[r#"{"s":"x"}"#, r#"{"s":"y"}"#]), ["drop", r#"{"s":"y","a":1}"#]);
    assert_eq!(batch(r#""operations":2"#, &program, &[r#"{"s":"x"}"#, r#"{"s":"y"}"#]), ["drop", "limit-operations"]);
    assert_eq!(run_limited(r#""operations":1"#, &format!("{},{}", set("a", "1"), require("k", "1")), "{}"), "limit-operations");
    assert_eq!(run_limited(r#""operations":1"#, &program, "{"), "invalid-json");
    assert_eq!(run_limited(r#""operations":1"#, &program, "[]"), "not-an-object");
}

#[test]
fn a_batch_may_come_in_parts() {
    let mut executor = limited(r#""operations":4,"batch_bytes":100"#, &set("a", "1"));
    executor.begin(Spent { operations: 2, batch_bytes: 80 });
    assert_eq!(verdict(&mut executor, &upsert(b"{}")), r#"{"a":1}"#);
    assert_eq!(executor.spent(), Spent { operations: 3, batch_bytes: 89 });
    assert_eq!(verdict(&mut executor, &upsert(b"{}")), r#"{"a":1}"#);
    assert_eq!(verdict(&mut executor, &upsert(b"{}")), "limit-operations");
    executor.begin(Spent::default());
    assert_eq!(verdict(&mut executor, &upsert(b"{}")), r#"{"a":1}"#);
    executor.begin(Spent { operations: 0, batch_bytes: u64::MAX });
    assert_eq!(verdict(&mut executor, &upsert(b"{}")), "limit-batch-bytes");
}

#[test]
fn copies_that_double_again_and_again_cost_nothing_until_they_are_written() {
    let deep = vec![copy("a", "a.b"); 250].join(",");
    assert_eq!(run_limited(r#""depth":200"#, &deep, r#"{"a":{"x":[1]}}"#), "limit-depth");
    let limits = r#""depth":256,"document_bytes":1000000000000"#;
    let doubling: Vec<String> = (0..80).flat_map(|_| [copy("a", "b.x"), copy("a", "b.y"), copy("b", "a")]).collect();
    let doubling = doubling.join(",");
    let document = r#"{"a":{"x":[1]}}"#;
    assert_eq!(run_limited(limits, &doubling, document), "limit-document-bytes");
    assert_eq!(run_limited(limits, &format!("{doubling},{},{}", remove("a"), remove("b")), document), "{}");
    assert_eq!(run_limited(limits, &format!("{doubling},{}", drop_when("a", r#"{"x":1,"y":2}"#)), document), "limit-document-bytes");
    assert_eq!(run_limited(limits, &format!("{doubling},{}", drop_when("a.x.y.z", "null")), document), "drop");
}

#[test]
fn no_document_changes_what_the_next_one_becomes() {
    let program = [copy("a", "b"), set("b.x.y", "1"), copy("b", "a.c"), remove("a.x")].join(",");
    let mut executor = limited(r#""depth":20"#, &program);
    let plain = verdict(&mut executor, &upsert(br#"{"a":{"x":{"y":0}}}"#));
    assert_eq!(plain, r#"{"a":{"c":{"x":{"y":1}}},"b":{"x":{"y":1}}}"#);
    for between in ["{", r#"{"a":{"a":1,"a":2,"x":{"x":{"y":[1,2,3]}}}}"#, r#"{"a":{"b":{"b":{"b":1}},"c":2}}"#, "[]", " { \"a\" : 1 } "] {
        verdict(&mut executor, &upsert(between.as_bytes()));
        assert_eq!(verdict(&mut executor, &upsert(br#"{"a":{"x":{"y":0}}}"#)), plain);
    }
}
