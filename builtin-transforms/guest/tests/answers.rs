use tidegate_frame::{Outcome, Record, RecordKind, Request, RequestHeader, RequestWriter, Response, Spent};
use tidegate_program_guest::{answer, executor};

fn golden(name: &str) -> Vec<u8> {
    let path = format!("{}/../../wit/golden/{name}.hex", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let digits: String = text.lines().filter(|line| !line.starts_with('#')).collect();
    hex::decode(digits).unwrap()
}

fn program(instructions: &str) -> Vec<u8> {
    format!(r#"{{"name":"p","version":"1","instructions":[{instructions}]}}"#).into_bytes()
}

fn request(documents: &[&[u8]]) -> Vec<u8> {
    let mut request = RequestWriter::new(Vec::new(), &RequestHeader::default());
    for document in documents {
        let kind = RecordKind::Upsert;
        let (document, partition_key, content_type) = (Some(*document), None, None);
        request.push(&Record { kind, document, partition_key, content_type, relation: None, key: None, old: None });
    }
    request.finish()
}

#[test]
fn the_golden_request_has_the_golden_answer() {
    let mut executor = executor(&program(r#"{"op":"set","path":"seen","value":true}"#)).unwrap();
    let answered = answer(&mut executor, &golden("request")).unwrap();
    assert_eq!(hex::encode(answered), hex::encode(golden("response-program")));
}

#[test]
fn poison_names_the_first_guilty_record() {
    let mut executor = executor(&program(r#"{"op":"require-equals","path":"a","value":1}"#)).unwrap();
    let request = request(&[br#"{"a":1}"#, br#"{"a":1.0}"#, br#"{"a":2}"#, b"no"]);
    let answered = answer(&mut executor, &request).unwrap();
    let Response::Poison(poison) = Response::parse(&answered, 4).unwrap() else { panic!("this is poison") };
    assert_eq!((poison.index, poison.kind), (Some(2), "required-value-differs"));
}

#[test]
fn an_answer_that_grows_large_stops_early_and_the_rest_is_answered_next() {
    let literal = "x".repeat(1 << 19);
    let mut executor = executor(&program(&format!(r#"{{"op":"set","path":"a","value":"{literal}"}}"#))).unwrap();
    let records = [b"{}".as_slice(); 20];
    let answered = answer(&mut executor, &request(&records)).unwrap();
    let Response::Outcomes(outcomes) = Response::parse(&answered, 20).unwrap() else { panic!("these are outcomes") };
    let first = outcomes.len();
    assert!((1..20).contains(&first), "{first}");
    assert!(outcomes.map(Result::unwrap).all(|outcome| matches!(outcome, Outcome::Keep { document: Some(_), .. })));
    assert_eq!(outcomes.spent.operations, u64::from(first));
}

#[test]
fn budgets_go_on_from_what_was_spent() {
    let mut executor =
        executor(br#"{"name":"p","version":"1","limits":{"operations":3},"instructions":[{"op":"remove","path":"a"}]}"#).unwrap();
    let spent = Spent { operations: 2, batch_bytes: 0 };
    let mut writer = RequestWriter::new(Vec::new(), &RequestHeader { spent, ..RequestHeader::default() });
    let one = request(&[b"{}"]);
    let record = Request::parse(&one).unwrap().records().next().unwrap().unwrap();
    writer.push(&record);
    writer.push(&record);
    let answered = answer(&mut executor, &writer.finish()).unwrap();
    let Response::Poison(poison) = Response::parse(&answered, 2).unwrap() else { panic!("this is poison") };
    assert_eq!((poison.index, poison.kind), (Some(1), "limit-operations"));
}

#[test]
fn what_is_no_program_and_what_is_no_frame_is_refused() {
    assert!(executor(b"[]").is_err());
    let mut executor = executor(&program(r#"{"op":"remove","path":"a"}"#)).unwrap();
    assert!(answer(&mut executor, b"").is_err());
    assert!(answer(&mut executor, &golden("response-outcomes")).is_err());
}
