//! The documents: shop orders of three sizes, one in 16 of them cancelled. The same on every run.

use tidegate_api::{Change, Chunk, ChunkBuilder, Operation};

/// A size of document, with the batch that it is usual in.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) batch: usize,
    /// Lines of the order, which make its size.
    lines: usize,
    /// How much faster than `serde_json::Value` we want to be.
    pub(crate) goal: f64,
}

pub(crate) const CASES: &[Case] = &[
    Case { name: "200B", batch: 256, lines: 0, goal: 4.0 },
    Case { name: "1KiB", batch: 128, lines: 9, goal: 6.0 },
    Case { name: "16KiB", batch: 16, lines: 190, goal: 9.0 },
];

/// The same documents for every contender.
pub(crate) struct Input {
    pub(crate) documents: Vec<Vec<u8>>,
    pub(crate) chunk: Chunk,
}

pub(crate) fn input(case: &Case, records: usize) -> Input {
    let documents: Vec<Vec<u8>> = (0..records).map(|number| document(number, case.lines)).collect();
    let mut chunk = ChunkBuilder::default();
    for (ordinal, document) in (0..).zip(&documents) {
        let key = ordinal.to_string();
        let operation = Operation::Insert;
        let (partition_key, old, content_type, unavailable) = (None, None, None, None);
        let (relation, new) = ("public.orders", Some(document.as_slice()));
        chunk.push(&Change { ordinal, relation, operation, key: &key, partition_key, old, new, content_type, unavailable });
    }
    Input { documents, chunk: chunk.finish() }
}

fn document(number: usize, lines: usize) -> Vec<u8> {
    let mut random = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let status = if number % 16 == 15 { "cancelled" } else { "paid" };
    let lines: Vec<String> = (0..lines)
        .map(|line| {
            let (quantity, price, cents) = (next(9) + 1, next(500), next(100));
            format!(
                r#"{{"sku":"SKU-{line:05}","quantity":{quantity},"price":{price}.{cents:02},"note":"gift \"wrap\" \u00e4","taxed":true}}"#
            )
        })
        .collect();
    let customer = next(1_000_000);
    format!(
        r#"{{"id":{number},"kind":"order","tenant":{{"id":"tenant-{}"}},"customer":{{"name":"Customer {customer}","email":"c{customer}@shop.example"}},"status":"{status}","total":{}.{:02},"lines":[{}]}}"#,
        next(40),
        next(10_000),
        next(100),
        lines.join(",")
    )
    .into_bytes()
}
