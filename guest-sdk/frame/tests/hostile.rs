//! Whatever the bytes are, reading ends, with an error where they are no frame.

use proptest::prelude::*;
use tidegate_frame::{FrameError, MAX_REASON_BYTES, MAX_RECORDS, Request, RequestHeader, RequestWriter, Response, write_poison};

use super::golden::golden;

fn read_request(bytes: &[u8]) -> Result<usize, FrameError> {
    Request::parse(bytes)?.records().try_fold(0, |count, record| record.map(|_| count + 1))
}

fn read_response(bytes: &[u8], records: u32) -> Result<usize, FrameError> {
    match Response::parse(bytes, records)? {
        Response::Outcomes(mut outcomes) => outcomes.try_fold(0, |count, outcome| outcome.map(|_| count + 1)),
        Response::Poison(_) => Ok(0),
    }
}

#[test]
fn a_frame_that_is_cut_or_has_more_is_refused() {
    for name in ["request", "request-smallest", "response-outcomes", "response-poison", "response-poison-batch"] {
        let good = golden(name);
        let read: fn(&[u8]) -> Result<usize, FrameError> =
            if name.starts_with("request") { read_request } else { |bytes| read_response(bytes, 6) };
        read(&good).unwrap();
        for cut in 0..good.len() {
            assert!(read(&good[..cut]).is_err(), "{name} cut to {cut} bytes");
        }
        assert!(read(&[&good[..], b"\0"].concat()).is_err(), "{name} with a byte too many");
    }
}

#[test]
fn what_has_no_name_is_refused() {
    let refused = |name: &str, at: usize, value: u8| {
        let mut bytes = golden(name);
        bytes[at] = value;
        let read = if name.starts_with("request") { read_request(&bytes) } else { read_response(&bytes, 6) };
        read.expect_err(&format!("{name} with {value} at {at}")).rule
    };
    assert_eq!(refused("request", 0, 2), "its version is not 1");
    assert_eq!(refused("request", 1, 4), "the header has an unknown field");
    assert_eq!(refused("request-smallest", 2, 0), "it does not hold 1 to 4096 items");
    assert_eq!(refused("request-smallest", 4, 1), "it does not hold 1 to 4096 items");
    assert_eq!(refused("request-smallest", 22, 4), "a record has an unknown kind");
    assert_eq!(refused("request-smallest", 22, 2), "an upsert without a document, or a delete with one");
    assert_eq!(refused("request-smallest", 23, 64), "a record has an unknown field");
    assert_eq!(refused("response-outcomes", 1, 3), "it is neither outcomes nor poison");
    assert_eq!(refused("response-outcomes", 2, 7), "it answers more records than were asked");
    assert_eq!(refused("response-outcomes", 22, 4), "an outcome has an unknown kind");
    assert_eq!(refused("response-outcomes", 23, 9), "an outcome has an unknown field");
    assert_eq!(refused("response-poison", 2, 9), "the guilty record is none of the request");
    assert_eq!(refused("response-poison", 10, b'_'), "the kind of the poison is not a name");
}

#[test]
fn a_reason_is_cut_at_a_character() {
    let bytes = write_poison(None, "invalid-json", &"\u{e4}".repeat(MAX_REASON_BYTES));
    let Response::Poison(poison) = Response::parse(&bytes, 1).unwrap() else { panic!("this is poison") };
    assert_eq!(poison.reason.len(), MAX_REASON_BYTES);
}

#[test]
fn a_count_beyond_the_most_records_is_refused_before_anything_is_read() {
    let mut writer = RequestWriter::new(Vec::new(), &RequestHeader::default());
    let bytes = golden("request-smallest");
    let record = Request::parse(&bytes).unwrap().records().next().unwrap().unwrap();
    for _ in 0..=MAX_RECORDS {
        writer.push(&record);
    }
    assert!(Request::parse(&writer.finish()).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..200), records in 0u32..10) {
        let _ = read_request(&bytes);
        let _ = read_response(&bytes, records);
    }

    #[test]
    fn any_damage_of_a_frame_is_read_to_an_end(place in any::<prop::sample::Index>(), value in any::<u8>(), kind in 0usize..5) {
        let name = ["request", "request-smallest", "response-outcomes", "response-poison", "response-poison-batch"][kind];
        let mut bytes = golden(name);
        let at = place.index(bytes.len());
        bytes[at] = value;
        if name.starts_with("request") {
            let _ = read_request(&bytes);
        } else {
            let _ = read_response(&bytes, 6);
        }
    }
}
