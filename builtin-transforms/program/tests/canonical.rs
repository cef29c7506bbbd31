//! The canonical form.

use tidegate_program::Program;

fn canonical(text: &str) -> String {
    let program = Program::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
    let canonical = program.canonical();
    assert_eq!(Program::parse(canonical.as_bytes()), Ok(program));
    assert_eq!(Program::parse(canonical.as_bytes()).map(|again| again.canonical()), Ok(canonical.clone()));
    canonical
}

fn of(members: &str, instructions: &str) -> String {
    canonical(&format!(r#"{{"name":"n","version":"1",{members}"instructions":[{instructions}]}}"#))
}

#[test]
fn it_is_written_as_documented() {
    let text = r#" { "instructions" : [ { "value" : { "b" : 1.0 , "a" : "\u0041\/\n\u001F" } , "path" : "x" , "op" : "set" },
        {"to":"b","op":"copy","from":"a"}, {"op":"route","path":"\u00e9"} ], "version" : "1" , "name" : "n\"" } "#;
    let expected = concat!(
        r#"{"name":"n\"","version":"1","limits":{"mutations":10000000,"document_bytes":1048576,"batch_bytes":4294967296,"#,
        r#""operations":1000000000,"depth":64,"milliseconds":5000,"memory_bytes":67108864},"require_partitioned_deletes":true,"#,
        r#""instructions":[{"op":"set","path":"x","value":{"a":"A/\n\u001f","b":1.0}},{"op":"copy","from":"a","to":"b"},"#,
        r#"{"op":"route","path":"é"}]}"#
    );
    assert_eq!(canonical(text), expected);
}

#[test]
fn programs_that_mean_the_same_have_one_form() {
    let remove = r#"{"op":"remove","path":"a"}"#;
    let plain = of("", remove);
    assert_eq!(of("", r#" { "path" : "\u0061" , "op" : "rem\u006fve" } "#), plain);
    assert_eq!(of(r#""limits":{},"#, remove), plain);
    assert_eq!(of(r#""limits":{"depth":64,"mutations":10000000},"require_partitioned_deletes":true,"#, remove), plain);
    let set = |value: &str| of("", &format!(r#"{{"op":"set","path":"a","value":{value}}}"#));
    assert_eq!(set(r#"{"b":{"d":1,"c":2},"a":1}"#), set(r#"{"a":1,"b":{"c":2,"d":1}}"#));
    assert_eq!(set(r#""\ud83d\uDE00\u0022\/""#), set(r#""😀\"/""#));
    assert_eq!(set("[ 1 ,\n2 ]"), set("[1,2]"));
}

#[test]
fn any_difference_of_meaning_shows() {
    let instructions = [
        r#"{"op":"remove","path":"a"}"#,
        r#"{"op":"route","path":"a"}"#,
        r#"{"op":"remove","path":"A"}"#,
        r#"{"op":"remove","path":"a.b"}"#,
        r#"{"op":"remove","path":"a"},{"op":"remove","path":"a"}"#,
        r#"{"op":"remove","path":"a"},{"op":"remove","path":"b"}"#,
        r#"{"op":"remove","path":"b"},{"op":"remove","path":"a"}"#,
        r#"{"op":"copy","from":"a","to":"b"}"#,
        r#"{"op":"copy","from":"b","to":"a"}"#,
        r#"{"op":"set","path":"a","value":1}"#,
        r#"{"op":"set","path":"a","value":1.0}"#,
        r#"{"op":"set","path":"a","value":"1"}"#,
        r#"{"op":"set","path":"a","value":null}"#,
        r#"{"op":"set","path":"a","value":"null"}"#,
        r#"{"op":"set","path":"a","value":[1,2]}"#,
        r#"{"op":"set","path":"a","value":[2,1]}"#,
        r#"{"op":"set","path":"a","value":{}}"#,
        r#"{"op":"set","path":"a","value":[]}"#,
        r#"{"op":"set","path":"a","value":"é"}"#,
        r#"{"op":"set","path":"a","value":"é"}"#,
        r#"{"op":"drop-when-equals","path":"a","value":1}"#,
        r#"{"op":"require-equals","path":"a","value":1}"#,
    ];
    let mut forms: Vec<String> = instructions.iter().map(|instructions| of("", instructions)).collect();
    let remove = instructions[0];
    let limits = ["mutations", "document_bytes", "batch_bytes", "operations", "depth", "milliseconds", "memory_bytes"];
    forms.extend(limits.iter().map(|limit| of(&format!(r#""limits":{{"{limit}":63}},"#), remove)));
    forms.push(of(r#""require_partitioned_deletes":false,"#, remove));
    for (name, version) in [("N", "1"), ("n ", "1"), ("n", "2"), ("n1", "1"), ("n", "11")] {
        forms.push(canonical(&format!(r#"{{"name":"{name}","version":"{version}","instructions":[{remove}]}}"#)));
    }
    let count = forms.len();
    forms.sort();
    forms.dedup();
    assert_eq!(forms.len(), count);
}
