//! The layout stays what it is: the files in `wit/golden` are read and written byte for byte.

use tidegate_frame::{
    Outcome, Place, PoisonFrame, Record, RecordKind, Request, RequestHeader, RequestWriter, Response, ResponseWriter, Spent, write_poison,
};

pub(crate) fn golden(name: &str) -> Vec<u8> {
    let path = format!("{}/../../wit/golden/{name}.hex", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let digits: String = text.lines().filter(|line| !line.starts_with('#')).collect();
    hex::decode(digits).unwrap()
}

const BARE: Record<'static> =
    Record { kind: RecordKind::Upsert, document: None, partition_key: None, content_type: None, relation: None, key: None, old: None };

fn request() -> (RequestHeader, [Record<'static>; 3]) {
    let header = RequestHeader {
        spent: Spent { operations: 7, batch_bytes: 1000 },
        position: Some(0x16_B374_D848),
        commit_time: Some(1_770_091_506_789_000),
    };
    let upsert = Record {
        kind: RecordKind::Upsert,
        document: Some(br#"{"id":1,"kind":"order"}"#),
        partition_key: Some("acme"),
        content_type: Some("application/json"),
        relation: Some("public.orders"),
        key: Some("1"),
        old: Some(br#"{"id":1}"#),
    };
    let delete = Record { kind: RecordKind::Delete, partition_key: Some("acme"), key: Some("2"), ..BARE };
    let collection = Record { kind: RecordKind::DeleteCollection, relation: Some("public.orders"), ..BARE };
    (header, [upsert, delete, collection])
}

#[test]
fn a_request_has_the_golden_bytes() {
    let (header, records) = request();
    let mut writer = RequestWriter::new(b"used before".to_vec(), &header);
    records.iter().for_each(|record| writer.push(record));
    assert_eq!((writer.len(), writer.is_empty()), (3, false));
    assert_eq!(hex::encode(writer.finish()), hex::encode(golden("request")));

    let bytes = golden("request");
    let read = Request::parse(&bytes).unwrap();
    assert_eq!((read.header, read.len()), (header, 3));
    assert_eq!(read.records().collect::<Result<Vec<_>, _>>().unwrap(), records);
}

#[test]
fn the_smallest_request_has_the_golden_bytes() {
    let record = Record { document: Some(b"{}"), ..BARE };
    let mut writer = RequestWriter::new(Vec::new(), &RequestHeader::default());
    writer.push(&record);
    let bytes = writer.finish();
    assert_eq!(hex::encode(&bytes), hex::encode(golden("request-smallest")));
    let read: Vec<_> = Request::parse(&bytes).unwrap().records().collect();
    assert_eq!(read, [Ok(record)]);
}

#[test]
fn outcomes_have_the_golden_bytes() {
    let spent = Spent { operations: 12, batch_bytes: 1046 };
    let mut writer = ResponseWriter::new(0);
    for (document, partition_key) in [("{\"id\":1}", None), ("{\"id\":2}", Some("acme"))] {
        let mut item = writer.item();
        item.document().extend_from_slice(document.as_bytes());
        item.keep_document(Place { partition_key, collection: None });
    }
    writer.item().keep(Place::default());
    writer.item().keep(Place { partition_key: None, collection: Some("archive") });
    writer.item().delete();
    let mut dropped = writer.item();
    dropped.document().extend_from_slice(b"half a document");
    dropped.drop_row();
    let bytes = writer.finish(spent);
    assert_eq!(hex::encode(&bytes), hex::encode(golden("response-outcomes")));

    let Response::Outcomes(outcomes) = Response::parse(&bytes, 6).unwrap() else { panic!("these are outcomes") };
    assert_eq!((outcomes.spent, outcomes.len()), (spent, 6));
    let read: Vec<_> = outcomes.map(Result::unwrap).collect();
    let first = bytes.windows(8).position(|window| window == b"{\"id\":1}").unwrap();
    let second = bytes.windows(8).position(|window| window == b"{\"id\":2}").unwrap();
    let archive = bytes.windows(7).position(|window| window == b"archive").unwrap();
    assert_eq!(
        read,
        [
            Outcome::Keep { document: Some((first, br#"{"id":1}"#)), partition_key: None, collection: None },
            Outcome::Keep { document: Some((second, br#"{"id":2}"#)), partition_key: Some((second + 12, "acme")), collection: None },
            Outcome::Keep { document: None, partition_key: None, collection: None },
            Outcome::Keep { document: None, partition_key: None, collection: Some((archive, "archive")) },
            Outcome::Delete,
            Outcome::Drop,
        ]
    );
}

#[test]
fn poison_has_the_golden_bytes() {
    let poison = PoisonFrame { index: Some(1), kind: "required-value-differs", reason: "kind is not the required value" };
    let batch = PoisonFrame { index: None, kind: "limit-operations", reason: "" };
    for (name, poison) in [("response-poison", poison), ("response-poison-batch", batch)] {
        let bytes = write_poison(poison.index, poison.kind, poison.reason);
        assert_eq!(hex::encode(&bytes), hex::encode(golden(name)));
        match Response::parse(&bytes, 2).unwrap() {
            Response::Poison(read) => assert_eq!(read, poison),
            Response::Outcomes(_) => panic!("this is poison"),
        }
    }
}
