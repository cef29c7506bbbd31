//! What it takes to be refused by each limit.

use std::hint::black_box;

use tidegate_api::{Change, Chunk, ChunkBuilder, Operation, Transformed};

use crate::contenders::Contenders;
use crate::ratio::elapsed;

pub(crate) fn print(contenders: &Contenders) {
    let small = chunk(&vec![r#"{"a":{"b":[1,2,3]},"text":"what a shop order may say"}"#.to_owned(); 1000]);
    let wide = format!("{{{}}}", (0..200).map(|name| format!(r#""{name}":0"#)).collect::<Vec<_>>().join(","));
    let wide = chunk(&vec![wide; 400]);
    let large = chunk(&[format!(r#"{{"a":"{}"}}"#, "x".repeat(3 << 20))]);
    let one = r#"{"op":"set","path":"b","value":1}"#.to_owned();
    let many = vec![r#"{"op":"remove","path":"z"}"#; 256].join(",");
    let cases = [
        ("limit-mutations", r#""mutations":999"#, &one, &small),
        ("limit-document-bytes", r#""document_bytes":20"#, &one, &small),
        ("limit-batch-bytes", r#""batch_bytes":60000"#, &one, &small),
        ("limit-operations", r#""operations":999"#, &one, &small),
        ("limit-depth", r#""depth":2"#, &one, &small),
        ("limit-time", r#""milliseconds":1"#, &many, &wide),
        ("limit-memory", r#""memory_bytes":4194304,"document_bytes":8388608"#, &one, &large),
    ];
    for (kind, limits, instructions, chunk) in cases {
        let program = format!(r#"{{"name":"p","version":"1","limits":{{{limits}}},"instructions":[{instructions}]}}"#);
        let transform = contenders.transform(&program);
        let refused = || match contenders.run(&*transform, black_box(chunk)) {
            Transformed::Poison(poison) => assert_eq!(poison.kind, kind),
            Transformed::Outcomes(_) => panic!("{kind} was not reached"),
        };
        println!("limit {kind}: {:.1} µs by the clock until a chunk of {} changes is refused", elapsed(&refused), chunk.len());
    }
}

fn chunk(documents: &[String]) -> Chunk {
    let mut chunk = ChunkBuilder::default();
    for (ordinal, document) in (0..).zip(documents) {
        let (partition_key, old, content_type, unavailable) = (None, None, None, None);
        let (relation, operation, key, new) = ("public.orders", Operation::Insert, "1", Some(document.as_bytes()));
        chunk.push(&Change { ordinal, relation, operation, key, partition_key, old, new, content_type, unavailable });
    }
    chunk.finish()
}
