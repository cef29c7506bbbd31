//! The executor against the model: random programs on random documents, valid and broken.

use tidegate_program::{Executor, Input, InputKind, Program, Spent, Verdict};

use crate::model::{self, Answer, Limits, Model, Node, Step};

/// A generator of random numbers; the same seed gives the same ones.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }

    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

const NAMES: &[&str] = &["a", "b", "c", "ab", "é", "a name of more than eight bytes", "a name of more than eight byteS"];

/// Ways to write names: some say the same.
const WRITTEN: &[&str] = &[
    r#""a""#,
    r#""a""#,
    r#""b""#,
    r#""b""#,
    r#""c""#,
    r#""ab""#,
    r#""\u0061""#,
    r#""a\u0062""#,
    r#""é""#,
    r#""\u00e9""#,
    r#""""#,
    r#""a.b""#,
    r#""\ud800""#,
    r#""a name of more than eight bytes""#,
    r#""a name of more than eight byteS""#,
    r#""a name of more th\u0061n eight bytes""#,
];

const SCALARS: &[&str] = &[
    "null",
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "1.0",
    "10e-1",
    "-5",
    "12345678901234567890.10",
    "1e999999999999999999",
    "1E1000000000000000000",
    r#""""#,
    r#""x""#,
    r#""\u0078""#,
    r#"" ""#,
    r#""\u3000\t""#,
    r#""é😀""#,
    r#""\ud83d\ude00""#,
    r#""\ud83d""#,
    r#""a text of exactly sixteen or more bytes, with { and , and ] in it""#,
    r#""}\"\\""#,
];

fn value(random: &mut Random, depth: usize, twice: bool) -> Node {
    match random.below(if depth == 0 { 6 } else { 10 }) {
        0..6 => model::parse(random.pick(SCALARS).as_bytes(), 0).unwrap(),
        6..9 => object(random, depth, twice),
        _ => Node::Array((0..random.below(4)).map(|_| value(random, depth - 1, twice)).collect()),
    }
}

fn object(random: &mut Random, depth: usize, twice: bool) -> Node {
    let mut members: Vec<(String, Node)> = Vec::new();
    for _ in 0..random.below(5) {
        let name = random.pick(WRITTEN).to_owned();
        if !twice && members.iter().any(|(other, _)| model::units(other) == model::units(&name)) {
            continue;
        }
        members.push((name, value(random, depth - 1, twice)));
    }
    Node::Object(members)
}

fn path(random: &mut Random) -> Vec<String> {
    let longest = if random.once_in(8) { 6 } else { 3 };
    let names = if random.once_in(3) { NAMES } else { &NAMES[..3] };
    (0..1 + random.below(longest)).map(|_| random.pick(names).to_owned()).collect()
}

/// A value that a program file may hold, in canonical form.
fn literal(random: &mut Random, document: &Node) -> Node {
    let mut value = match random.below(3) {
        // Often one that the document has.
        0 => inner(random, document),
        _ => value(random, 2, false),
    };
    canonical(&mut value);
    value
}

fn inner(random: &mut Random, node: &Node) -> Node {
    match node {
        Node::Object(members) if !members.is_empty() && !random.once_in(4) => {
            let member = random.below(members.len());
            inner(random, &members[member].1)
        }
        other => other.clone(),
    }
}

/// Gives up what no literal may hold, and writes the rest as a program does.
fn canonical(node: &mut Node) {
    match node {
        Node::Text(raw) => *raw = String::from_utf16(&model::units(raw)).map_or("\"lone\"".to_owned(), |text| model::quote(&text)),
        Node::Array(elements) => elements.iter_mut().for_each(canonical),
        Node::Object(members) => {
            let mut kept: Vec<(String, String, Node)> = Vec::new();
            for (name, mut value) in members.drain(..) {
                let name = String::from_utf16(&model::units(&name)).unwrap_or("lone".to_owned());
                canonical(&mut value);
                if kept.iter().all(|(other, ..)| *other != name) {
                    kept.push((name.clone(), model::quote(&name), value));
                }
            }
            kept.sort_by(|a, b| a.0.cmp(&b.0));
            *members = kept.into_iter().map(|(_, name, value)| (name, value)).collect();
        }
        Node::Null | Node::Bool(_) | Node::Number(_) => {}
    }
}

fn step(random: &mut Random, document: &Node) -> Step {
    match random.below(12) {
        0..2 => Step::Remove(path(random)),
        2..5 => Step::Set(path(random), literal(random, document)),
        5..9 => Step::Copy(path(random), path(random)),
        9 => Step::Route(path(random)),
        10 => Step::DropWhenEquals(path(random), literal(random, document)),
        _ => Step::RequireEquals(path(random), literal(random, document)),
    }
}

/// Gives some scalars other values, mostly of the same kind: as rows of one table differ.
fn vary(random: &mut Random, node: &mut Node) {
    match node {
        Node::Object(members) => members.iter_mut().for_each(|(_, value)| vary(random, value)),
        Node::Array(elements) => elements.iter_mut().for_each(|value| vary(random, value)),
        scalar if random.once_in(2) => {
            let other = model::parse(random.pick(SCALARS).as_bytes(), 0).unwrap();
            if random.once_in(8) || std::mem::discriminant(scalar) == std::mem::discriminant(&other) {
                *scalar = other;
            }
        }
        _ => {}
    }
}

fn text(node: &Node) -> String {
    let mut out = String::new();
    model::write(node, &mut out);
    out
}

fn written(step: &Step) -> String {
    let path = |path: &[String]| model::quote(&path.join("."));
    match step {
        Step::Remove(p) => format!(r#"{{"op":"remove","path":{}}}"#, path(p)),
        Step::Set(p, v) => format!(r#"{{"op":"set","path":{},"value":{}}}"#, path(p), text(v)),
        Step::Copy(f, t) => format!(r#"{{"op":"copy","from":{},"to":{}}}"#, path(f), path(t)),
        Step::Route(p) => format!(r#"{{"op":"route","path":{}}}"#, path(p)),
        Step::DropWhenEquals(p, v) => format!(r#"{{"op":"drop-when-equals","path":{},"value":{}}}"#, path(p), text(v)),
        Step::RequireEquals(p, v) => format!(r#"{{"op":"require-equals","path":{},"value":{}}}"#, path(p), text(v)),
    }
}

/// The document with blanks between tokens.
fn spaced(random: &mut Random, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut inside, mut escaped) = (false, false);
    for byte in text.bytes() {
        let token = !inside && b"{}[]:,\"".contains(&byte);
        if token && random.once_in(2) {
            out.push(b" \t\r\n"[random.below(4)]);
        }
        out.push(byte);
        if byte == b'"' && !escaped {
            inside = !inside;
        }
        escaped = byte == b'\\' && !escaped && inside;
        if !inside && b"{}[]:,".contains(&byte) && random.once_in(2) {
            out.extend(b"  \n".iter().take(random.below(4)));
        }
    }
    out
}

/// The document with a few bytes changed: most are not JSON any more.
fn broken(random: &mut Random, mut document: Vec<u8>) -> Vec<u8> {
    for _ in 0..1 + random.below(3) {
        let place = random.below(document.len() + 1);
        match random.below(4) {
            0 => document.truncate(place),
            1 if place < document.len() => {
                document.remove(place);
            }
            2 if place < document.len() => document[place] = random.below(256) as u8,
            _ => document.insert(place, *random.pick::<u8>(&[&b'"', &b'{', &b'}', &b',', &b' ', &b'\\', &b'0', &0xff, &b'\n', &b'u'])),
        }
    }
    document
}

fn run(executor: &mut Executor, document: &[u8]) -> (Answer, Spent) {
    executor.begin(Spent::default());
    go_on(executor, document)
}

/// The same as a further document of a batch.
fn go_on(executor: &mut Executor, document: &[u8]) -> (Answer, Spent) {
    let mut out = b"before".to_vec();
    let input = Input { kind: InputKind::Upsert, document, partition_key: None, content_type: None };
    let answer = match executor.run(&input, &mut out) {
        Verdict::Keep { partition_key } => {
            let text = String::from_utf8(out.split_off(6)).unwrap();
            Answer::Keep(partition_key.map(|key| key.as_ref().to_owned()), text)
        }
        Verdict::Drop => Answer::Drop,
        Verdict::Poison { kind, .. } => Answer::Poison(kind),
    };
    assert_eq!(out, b"before");
    (answer, executor.spent())
}

/// Runs one random program on some random documents.
fn round(seed: u64) {
    let random = &mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut documents: Vec<Node> = Vec::new();
    for _ in 0..4 {
        let twice = random.once_in(3);
        let mut document = object(random, 4, twice);
        for _ in 0..1 + random.below(5) {
            documents.push(document.clone());
            vary(random, &mut document);
        }
    }
    let steps: Vec<Step> = (0..1 + random.below(8)).map(|_| step(random, &documents[0])).collect();
    let mut limits = Limits { document_bytes: 1 << 20, batch_bytes: 4 << 30, operations: 1_000_000, depth: 64 };
    if random.once_in(4) {
        limits.depth = 3 + random.below(5);
    }
    if random.once_in(4) {
        limits.document_bytes = 20 + random.below(200) as u64;
    }
    if random.once_in(8) {
        limits.batch_bytes = 100 + random.below(200) as u64;
    }
    if random.once_in(8) {
        limits.operations = 1 + random.below(8) as u64;
    }
    let instructions: Vec<String> = steps.iter().map(written).collect();
    let program = format!(
        r#"{{"name":"n","version":"v","limits":{{"document_bytes":{},"batch_bytes":{},"operations":{},"depth":{}}},"instructions":[{}]}}"#,
        limits.document_bytes,
        limits.batch_bytes,
        limits.operations,
        limits.depth,
        instructions.join(",")
    );
    let parsed = match Program::parse(program.as_bytes()) {
        Ok(parsed) => parsed,
        // A literal that is deeper than this program's limit.
        Err(error) => return assert!(error.reason.contains("depth"), "{program}: {error}"),
    };
    assert_eq!(Program::parse(parsed.canonical().as_bytes()).as_ref(), Ok(&parsed));
    let mut executor = Executor::new(parsed);
    let mut model = Model { steps, limits, operations: 0, bytes: 0 };
    let mut batch = Vec::new();
    for document in &documents {
        let mut document = text(document).into_bytes();
        if random.once_in(8) {
            document = spaced(random, &String::from_utf8(document).unwrap());
        }
        if random.once_in(8) {
            document = broken(random, document);
        }
        (model.operations, model.bytes) = (0, 0);
        let expected = model.run(&document);
        let (answer, spent) = run(&mut executor, &document);
        assert_eq!(answer, expected, "seed {seed}: {program}\non {}", String::from_utf8_lossy(&document));
        if let Answer::Keep(_, text) = &answer {
            assert_eq!(spent, Spent { operations: model.operations, batch_bytes: model.bytes }, "seed {seed}");
            assert!(model::parse(text.as_bytes(), 256).is_ok(), "seed {seed}: {text}");
        }
        batch.push((document, answer));
    }
    // What earlier documents looked like changes nothing.
    executor.begin(Spent::default());
    for (document, alone) in batch.iter().chain(&batch) {
        let (answer, spent) = go_on(&mut executor, document);
        if spent.batch_bytes < model.limits.batch_bytes && spent.operations < model.limits.operations {
            assert_eq!(answer, *alone, "seed {seed}: {program}\non {}", String::from_utf8_lossy(document));
        }
    }
}

/// `TIDEGATE_ROUNDS` asks for more of them than a test run should take.
#[test]
fn random_programs_do_to_random_documents_what_the_model_does() {
    let rounds = std::env::var("TIDEGATE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(20_000);
    for seed in 0..rounds {
        round(seed);
    }
}
