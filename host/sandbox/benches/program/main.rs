//! What the built-in program costs per record, and what it costs to reach each limit.
//!
//! `cargo bench -p tidegate-sandbox` prints criterion's figures and, at the end, one line `ratio NAME VALUE goal GOAL` for each
//! comparison: VALUE is the baseline's processor time over ours, so larger is better. Contenders of a comparison take turns in
//! one process; a ratio is the median over the rounds. Ours goes the whole way: frame, hand-over to the sandbox's thread, copy
//! in, fuel, copy out, outcomes. The baselines are native: `serde_json::Value` doing the same, and the same byte editor without
//! a sandbox.

mod contenders;
mod documents;
mod limits;
mod ratio;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput};

use contenders::Contenders;

fn main() {
    println!("allocator: the system's (glibc malloc on Linux), for ours and for the baselines");
    let contenders = Contenders::start();
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500))
        .configure_from_args();
    for case in documents::CASES {
        for records in [case.batch, 1] {
            let input = documents::input(case, records);
            let mut group = criterion.benchmark_group(format!("program/{}/{records}", case.name));
            group.throughput(Throughput::Elements(records as u64));
            group.bench_function("sandbox", |bencher| bencher.iter(|| contenders.sandbox(black_box(&input))));
            group.bench_function("native-editor", |bencher| bencher.iter(|| contenders.native(black_box(&input))));
            group.bench_function("serde_json", |bencher| bencher.iter(|| contenders.dom(black_box(&input))));
            group.finish();
        }
    }
    criterion.final_summary();
    limits::print(&contenders);
    for case in documents::CASES {
        for records in [case.batch, 1] {
            ratio::print(&contenders, case, records);
        }
    }
}
