//! What a document may be, and that all of it is checked.

use crate::support::{remove, route, run, set};

/// A program that touches nothing.
fn pass(document: impl AsRef<[u8]>) -> String {
    run(&remove("zzz"), document)
}

#[test]
fn what_is_not_json_is_poison_also_where_no_instruction_looks() {
    let texts = [
        "",
        " ",
        "\t",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":\"x",
        "{\"a\":[1",
        "{\"a\":tru",
        "{\"a\":\"\\u00",
        "{\"a\":1,}",
        "{\"a\":[1,]}",
        "{\"a\":1/*c*/}",
        "{\"a\":1}//c",
        "{}{}",
        "{} {}",
        "{\"a\":1}x",
        "{},",
        "{}\0",
        "{\"a\":[1}",
        "{\"a\":{\"b\":1]}",
        "{]",
        "[}",
        "{a:1}",
        "{1:1}",
        "{'a':1}",
        "{null:1}",
        "{,}",
        "{\"a\":,}",
        "{\"a\"1}",
        "{\"a\"::1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":1 2}",
        "{\"a\":tr ue}",
        "{\"a\":- 1}",
        "[1 2]",
        "{\"a\":\"x\" \"y\"}",
        "{\"a\":1,,\"b\":2}",
        "nul",
        "\"x",
        "01",
        "\"\t\"",
        "truefalse",
    ];
    for text in texts {
        assert_eq!(pass(text), "invalid-json", "{text:?}");
        let inside = format!(r#"{{"z":[{text}],"t":"x"}}"#);
        let harmless = ["", " ", "\t", "01"];
        if !harmless.contains(&text) && text != "{},  " {
            assert_eq!(run(&route("t"), &inside), "invalid-json", "{inside:?}");
        }
    }
}

#[test]
fn numbers_keep_to_the_grammar() {
    let good =
        "[0,-0,0.0,-0.0,0e0,0E-0,1e5,1E5,1e+5,1E-05,1.50,10.0e001,1234567890123456,-12345678901234567,123456789012345678901234567890.5]";
    assert_eq!(pass(format!(r#"{{"a":{good}}}"#)), format!(r#"{{"a":{good}}}"#));
    for bad in [
        "01",
        "-01",
        "00",
        "+1",
        "1e",
        "1e+",
        "1E-",
        "1e1.5",
        "1.",
        ".5",
        "-",
        "-.5",
        "1.e5",
        "NaN",
        "Infinity",
        "-Infinity",
        "0x10",
        "1_000",
        "00000000000000001",
    ] {
        assert_eq!(pass(format!(r#"{{"a":{bad}}}"#)), "invalid-json", "{bad}");
        assert_eq!(pass(format!(r#"{{"a":[{bad}]}}"#)), "invalid-json", "{bad}");
    }
}

#[test]
fn texts_keep_to_the_grammar() {
    for bad in ["\t", "\0", "\u{1f}", "\\x41", "\\'", "\\U0041", "\\0", "\\a", "\\u12", "\\u12g4", "\\"] {
        assert_eq!(pass(format!("{{\"a\":\"{bad}\"}}")), "invalid-json", "{bad:?}");
        assert_eq!(pass(format!("{{\"a\":\"a text that is longer than sixteen bytes {bad}\"}}")), "invalid-json", "{bad:?}");
        assert_eq!(pass(format!("{{\"{bad}\":1}}")), "invalid-json", "{bad:?}");
    }
    // With white space elsewhere, a control character inside of a text is not taken out.
    assert_eq!(pass("{ \"a\":\"x\ty\" }"), "invalid-json");
    let good = "{\"a\":\"\u{7f}\u{2028}\u{feff}\u{ffff}\u{10ffff}\",\"b\":\"\\ud800\",\"c\":\"\\udc00\\ud800\",\"\\ud83d\":\"\\u0041\\/\\\\\\\"\"}";
    assert_eq!(pass(good), good);
    assert_eq!(pass(r#"{"a":"\\","b":"\\\"","c":"\\\\"}"#), r#"{"a":"\\","b":"\\\"","c":"\\\\"}"#);
    assert_eq!(pass(r#"{"a":"\\\"}"#), "invalid-json");
}

#[test]
fn only_utf8_without_a_byte_order_mark_is_json() {
    assert_eq!(pass("\u{feff}{}"), "invalid-json");
    let bytes: [&[u8]; 8] = [
        b"{\"a\":\"\xff\"}",
        b"{\"a\":\"\xc3\"}",
        b"{\"\x80\":1}",
        b"\xff",
        b"{\"a\":1}\xfe",
        b"{\"a\":\"\xed\xa0\x80\"}",
        b"{\"a\":\"\xc0\xaf\"}",
        b"{\xc3\xa9:1}",
    ];
    for bytes in bytes {
        assert_eq!(pass(bytes), "invalid-json", "{bytes:x?}");
    }
    assert_eq!(run(&route("t"), b"{\"t\":\"x\",\"a\":{\"b\":[\"\xe2\x82\"]}}"), "invalid-json");
}

#[test]
fn insignificant_white_space_goes_and_no_other() {
    assert_eq!(pass(" {\t\"a\" :\r1 , \"b\" : [ 1 ,2\t] , \"c\" : { } , \"d e\":\" f \"} \r\n"), r#"{"a":1,"b":[1,2],"c":{},"d e":" f "}"#);
    assert_eq!(pass("{\"a\":1}\r"), r#"{"a":1}"#);
    assert_eq!(run(&set("c", "true"), r#" { "a" : 1.0 , "b":[ 1, 2 ] } "#), r#"{"a":1.0,"b":[1,2],"c":true}"#);
    for other in ["\u{c}", "\u{b}", "\u{a0}", "\u{3000}", "\u{2028}", "\0"] {
        for document in [format!("{{\"a\":{other}1}}"), format!("{other}{{}}"), format!("{{}}{other}"), format!("{{ }}{other} ")] {
            assert_eq!(pass(&document), "invalid-json", "{document:?}");
        }
    }
}

#[test]
fn a_root_that_is_no_object_is_told_after_the_whole_text_was_read() {
    for root in ["[1]", "\"x\"", "null", "1", "true", "[]", " [ ] ", "-0.5e3"] {
        assert_eq!(pass(root), "not-an-object", "{root}");
    }
    for broken in ["[1,]", "nul", "\"x", "[1] 2", "01"] {
        assert_eq!(pass(broken), "invalid-json", "{broken}");
    }
}

#[test]
fn content_types_begin_with_application_json_in_any_case() {
    use tidegate_program::Input;
    let verdict = |content_type| {
        let input = Input { content_type, ..crate::support::upsert(b"{}") };
        crate::support::verdict(&mut crate::support::executor("", &remove("a")), &input)
    };
    let good =
        ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON", "application/json-patch+json", "application/jsonl"];
    for content_type in good.map(Some).into_iter().chain([None]) {
        assert_eq!(verdict(content_type), "{}");
    }
    for content_type in ["", " application/json", "text/json", "application/vnd.x+json", "application/jso", "application/jsé"] {
        assert_eq!(verdict(Some(content_type)), "content-type", "{content_type}");
    }
}

#[test]
fn tokens_are_read_at_every_distance_from_the_end_and_from_each_other() {
    for padding in 0..70 {
        let pad = "y".repeat(padding);
        for tail in ["", ",\"z\":\"}\"", ",\"z\":[1,-2.5e3,true,null]", ",\"z\":12345678901234567890"] {
            let document = format!("{{\"p\":\"{pad}\",\"key\":{{\"q\":[1]}}{tail}}}");
            let program = format!("{},{}", remove("key"), set("new", "0"));
            assert_eq!(run(&program, &document), format!("{{\"p\":\"{pad}\"{tail},\"new\":0}}"));
            for cut in 0..document.len() {
                assert_eq!(pass(&document[..cut]), "invalid-json", "{}", &document[..cut]);
            }
        }
        let name = format!("{{\"{pad}\":1,\"é{pad}\":\"\\u00e9{pad}\"}}");
        assert_eq!(pass(&name), name);
    }
}

#[test]
fn reasons_name_the_place_and_never_a_value() {
    use tidegate_program::Verdict;
    let reason = |instructions: &str, document: &str| {
        let verdict = crate::support::executor("", instructions).run(&crate::support::upsert(document.as_bytes()), &mut Vec::new());
        let Verdict::Poison { reason, .. } = verdict else { panic!("{document}") };
        reason
    };
    assert!(reason(&remove("a"), r#"{ "a" : [ 1, secret ] }"#).contains("byte 13"));
    assert!(reason(&remove("a"), "{\"a\":\"secret\u{1}\"}").contains("byte 12"));
    let required = reason(&crate::support::require("a.b", "1"), r#"{"a":{"b":"secret"}}"#);
    assert!(required.contains("a.b") && !required.contains("secret"), "{required}");
    let twice = reason(&remove("a.b.c"), r#"{"a":{"b":"secret","b":1}}"#);
    assert!(twice.contains("a.b ") && !twice.contains("secret"), "{twice}");
}
