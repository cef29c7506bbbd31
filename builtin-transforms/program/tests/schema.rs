//! The JSON Schema that goes with program files.

use crate::model::{self, Node};

fn member<'a>(node: &'a Node, name: &str) -> &'a Node {
    let Node::Object(members) = node else { panic!("no object at {name}") };
    &members.iter().find(|(member, _)| *member == model::quote(name)).unwrap_or_else(|| panic!("no {name}")).1
}

fn text(node: &Node) -> String {
    let mut out = String::new();
    model::write(node, &mut out);
    out
}

#[test]
fn it_has_every_limit_with_its_default_and_every_instruction() {
    let schema = model::parse(tidegate_program::schema().as_bytes(), 64).unwrap();
    assert_eq!(text(member(&schema, "$schema")), "\"https://json-schema.org/draft/2020-12/schema\"");
    let properties = member(&schema, "properties");
    let limits = member(member(properties, "limits"), "properties");
    let program = r#"{"name":"n","version":"1","instructions":[{"op":"remove","path":"a"}]}"#;
    let canonical = tidegate_program::Program::parse(program.as_bytes()).unwrap().canonical();
    let canonical = model::parse(canonical.as_bytes(), 64).unwrap();
    let Node::Object(defaults) = member(&canonical, "limits") else { panic!() };
    assert_eq!(defaults.len(), 7);
    for (name, default) in defaults {
        assert_eq!(text(member(member(limits, name.trim_matches('"')), "default")), text(default), "{name}");
    }
    let Node::Array(instructions) = member(member(member(properties, "instructions"), "items"), "oneOf") else { panic!() };
    let ops: Vec<String> =
        instructions.iter().map(|instruction| text(member(member(member(instruction, "properties"), "op"), "const"))).collect();
    assert_eq!(ops, ["\"remove\"", "\"set\"", "\"copy\"", "\"route\"", "\"drop-when-equals\"", "\"require-equals\""]);
}
