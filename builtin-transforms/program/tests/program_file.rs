//! What a program file may be.

use tidegate_program::{Limits, Program, ProgramError};

use crate::support::nested;

const REMOVE: &str = r#"{"op":"remove","path":"a"}"#;

fn parse(text: &str) -> Result<Program, ProgramError> {
    Program::parse(text.as_bytes())
}

fn with(members: &str) -> Result<Program, ProgramError> {
    parse(&format!(r#"{{"name":"n","version":"1","instructions":[{REMOVE}]{members}}}"#))
}

fn instruction(text: &str) -> Result<Program, ProgramError> {
    parse(&format!(r#"{{"name":"n","version":"1","limits":{{"depth":256}},"instructions":[{REMOVE},{text}]}}"#))
}

/// The place that an error names.
fn place(result: Result<Program, ProgramError>) -> String {
    let error = result.unwrap_err();
    assert!(!error.reason.is_empty() && !error.syntax, "{error}");
    error.path
}

fn remove(path: &str) -> Result<Program, ProgramError> {
    instruction(&format!(r#"{{"op":"remove","path":"{path}"}}"#))
}

#[test]
fn what_is_not_there_has_its_default() {
    let program =
        parse(" {\n\"instructions\" : [ { \"path\":\"a\", \"op\":\"remove\" } ] ,\t\"version\":\"1\",\r\"limits\":{ }, \"name\" :\"n\" } ")
            .unwrap();
    assert_eq!((program.name(), program.version(), program.instructions()), ("n", "1", 1));
    assert!(program.require_partitioned_deletes() && !program.routes());
    let defaults = Limits {
        mutations: 10_000_000,
        document_bytes: 1_048_576,
        batch_bytes: 4_294_967_296,
        operations: 1_000_000_000,
        depth: 64,
        milliseconds: 5000,
        memory_bytes: 67_108_864,
    };
    assert_eq!(program.limits(), &defaults);
}

#[test]
fn every_limit_may_be_set_from_1_to_its_bound() {
    let program = with(
        r#","limits":{"mutations":1,"document_bytes":2,"batch_bytes":3,"operations":4,"depth":256,"milliseconds":6,"memory_bytes":18446744073709551615},"require_partitioned_deletes":false"#,
    );
    let program = program.unwrap();
    let limits =
        Limits { mutations: 1, document_bytes: 2, batch_bytes: 3, operations: 4, depth: 256, milliseconds: 6, memory_bytes: u64::MAX };
    assert_eq!(program.limits(), &limits);
    assert!(!program.require_partitioned_deletes());
    for name in ["mutations", "document_bytes", "batch_bytes", "operations", "depth", "milliseconds", "memory_bytes"] {
        for wrong in ["0", "-1", "1.5", "1.0", "1e3", "\"100\"", "true", "null", "[64]", "{}", "100000000000000000000000000000"] {
            assert_eq!(place(with(&format!(r#","limits":{{"{name}":{wrong}}}"#))), format!("$.limits.{name}"), "{wrong}");
        }
    }
    assert_eq!(place(with(r#","limits":{"depth":257}"#)), "$.limits.depth");
    assert_eq!(place(with(r#","limits":{"document_byte":5}"#)), "$.limits.document_byte");
    assert_eq!(place(with(r#","limits":[]"#)), "$.limits");
    assert_eq!(place(with(r#","limits":null"#)), "$.limits");
}

#[test]
fn members_that_are_missing_unknown_repeated_or_of_another_kind_are_refused() {
    assert_eq!(place(parse(&format!(r#"{{"version":"1","instructions":[{REMOVE}]}}"#))), "$.name");
    assert_eq!(place(parse(&format!(r#"{{"name":"n","instructions":[{REMOVE}]}}"#))), "$.version");
    assert_eq!(place(parse(r#"{"name":"n","version":"1"}"#)), "$.instructions");
    for wrong in ["\"\"", "\"  \"", r#""\u3000""#, "7", "null", "[]"] {
        assert_eq!(place(parse(&format!(r#"{{"name":{wrong},"version":"1","instructions":[{REMOVE}]}}"#))), "$.name");
        assert_eq!(place(parse(&format!(r#"{{"name":"n","version":{wrong},"instructions":[{REMOVE}]}}"#))), "$.version");
    }
    assert_eq!(place(with(r#","description":"x""#)), "$.description");
    assert_eq!(place(with(r#","a b":"x""#)), "$[\"a b\"]");
    assert_eq!(place(with(r#","name":"n""#)), "$.name");
    for wrong in ["\"true\"", "null", "1"] {
        assert_eq!(place(with(&format!(r#","require_partitioned_deletes":{wrong}"#))), "$.require_partitioned_deletes");
    }
    for root in ["[]", "\"p\"", "null", "7"] {
        assert_eq!(place(parse(root)), "$");
    }
}

#[test]
fn there_are_1_to_256_instructions() {
    let program = |count: usize| parse(&format!(r#"{{"name":"n","version":"1","instructions":[{}]}}"#, vec![REMOVE; count].join(",")));
    assert_eq!(place(program(0)), "$.instructions");
    assert_eq!(program(256).unwrap().instructions(), 256);
    assert_eq!(place(program(257)), "$.instructions");
    assert_eq!(place(parse(r#"{"name":"n","version":"1","instructions":null}"#)), "$.instructions");
}

#[test]
fn an_instruction_has_its_own_members_and_no_others() {
    for (text, wrong) in [
        (r#"{"op":"rename","path":"a"}"#, ".op"),
        (r#"{"op":"drop_when_equals","path":"a","value":1}"#, ".op"),
        (r#"{"op":1,"path":"a"}"#, ".op"),
        (r#"{"path":"a"}"#, ".op"),
        (r#"{"op":"remove"}"#, ".path"),
        (r#"{"op":"remove","path":null}"#, ".path"),
        (r#"{"op":"route","path":7}"#, ".path"),
        (r#"{"op":"set","path":"a"}"#, ".value"),
        (r#"{"op":"drop-when-equals","path":"a"}"#, ".value"),
        (r#"{"op":"require-equals","value":1}"#, ".path"),
        (r#"{"op":"copy","to":"a"}"#, ".from"),
        (r#"{"op":"copy","from":"a"}"#, ".to"),
        (r#"{"op":"copy","from":"a","to":"b."}"#, ".to"),
        (r#"{"op":"copy","from":"a","to":"b","path":"c"}"#, ".path"),
        (r#"{"op":"remove","path":"a","value":1}"#, ".value"),
        (r#"{"op":"remove","path":"a","path":"b"}"#, ".path"),
        ("null", ""),
        ("[]", ""),
    ] {
        assert_eq!(place(instruction(text)), format!("$.instructions[1]{wrong}"), "{text}");
    }
}

#[test]
fn paths_have_segments_that_are_not_blank() {
    for path in ["", ".", "a..b", ".a", "a.", "a. .b", " ", "\\u3000", "a.\\u2028", "\\t"] {
        assert_eq!(place(remove(path)), "$.instructions[1].path", "{path:?}");
    }
    for path in ["a", " a b ", "\u{200b}", "a.b", "0", "$", "[]", "\\u0000", "\\\"", "*"] {
        assert!(remove(path).is_ok(), "{path:?}");
    }
}

#[test]
fn paths_have_up_to_64_segments_of_256_utf16_units_and_2048_together() {
    assert!(remove(&vec!["a"; 64].join(".")).is_ok());
    assert_eq!(place(remove(&vec!["a"; 65].join("."))), "$.instructions[1].path");
    for (character, most) in [("s", 256), ("é", 256), ("𝄞", 128)] {
        assert!(remove(&character.repeat(most)).is_ok());
        assert_eq!(place(remove(&character.repeat(most + 1))), "$.instructions[1].path");
    }
    let longest = vec!["p".repeat(255); 8].join(".");
    assert!(remove(&format!("{longest}p")).is_ok());
    assert_eq!(place(remove(&format!("{longest}pp"))), "$.instructions[1].path");
    assert!(remove(&longest.replace('p', "\u{ffff}")).is_ok());
}

#[test]
fn literals_are_at_most_64_deep_and_not_deeper_than_the_program_allows() {
    let set = |value: &str| instruction(&format!(r#"{{"op":"set","path":"a","value":{value}}}"#));
    assert!(set(&nested(64, "1")).is_ok());
    assert_eq!(place(set(&nested(65, "1"))), "$.instructions[1].value");
    let under = |depth: usize| {
        parse(&format!(
            r#"{{"name":"n","version":"1","limits":{{"depth":{depth}}},"instructions":[{{"op":"set","path":"a","value":[{{}}]}}]}}"#
        ))
    };
    assert!(under(2).is_ok());
    assert_eq!(place(under(1)), "$.instructions[0].value");
    assert_eq!(place(set(r#"{"x":[0,{"y":1,"\u0079":2}]}"#)), "$.instructions[1].value.x[1].y");
}

#[test]
fn what_is_not_json_is_told_with_line_and_column() {
    let syntax = |text: &[u8]| {
        let error = Program::parse(text).unwrap_err();
        assert!(error.syntax, "{error}");
        error
    };
    let broken = syntax(b"{\n  \"name\": \"n\",\n  \"instructions\": [{\"op\": remove}]\n}");
    assert_eq!(broken.path, "$.instructions[0].op");
    assert!(broken.reason.contains("line 3, column 27"), "{broken}");
    for text in [
        "",
        " ",
        "{",
        "{}}",
        "{} {}",
        "{\"name\":}",
        "{\"name\":\"x\" \"version\"}",
        "{,}",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":NaN}",
        "{\"a\":\"\\x41\"}",
        "{\"a\":\"\t\"}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\\ud800\\u0041\"}",
        "{\"a\":\"\\u+123\"}",
        "// c\n{}",
        "{'a':1}",
        "\u{feff}{}",
        "{\"a\":1,}",
        "[1,]",
        "\u{a0}{}",
    ] {
        syntax(text.as_bytes());
    }
    syntax(b"{\"name\":\"\xff\"}");
    syntax("[".repeat(100_000).as_bytes());
}

#[test]
fn a_file_that_is_too_long_is_refused() {
    let long = format!(r#"{{"name":"{}","version":"1","instructions":[{REMOVE}]}}"#, "n".repeat(Program::MAX_BYTES));
    assert_eq!(place(parse(&long)), "$");
}
