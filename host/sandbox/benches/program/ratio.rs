//! Comparisons: contenders take turns, so that whatever else the machine does hits all of them.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::contenders::Contenders;
use crate::documents::{self, Case};

const ROUNDS: usize = 21;
const TURN: Duration = Duration::from_millis(15);

/// We want to take at most half as long again as the same editor without a sandbox.
const NATIVE_GOAL: f64 = 1.0 / 1.5;

pub(crate) fn print(contenders: &Contenders, case: &Case, records: usize) {
    let input = documents::input(case, records);
    let sandbox = || drop(black_box(contenders.sandbox(black_box(&input))));
    let native = || drop(black_box(contenders.native(black_box(&input))));
    let dom = || drop(black_box(contenders.dom(black_box(&input))));
    let turns: [&dyn Fn(); 3] = [&sandbox, &native, &dom];
    let times = turns.map(calls_for_a_turn);
    let mut rounds: Vec<[f64; 3]> = Vec::new();
    for _ in 0..ROUNDS {
        let mut round = [0.0; 3];
        for ((turn, calls), nanoseconds) in turns.iter().zip(times).zip(&mut round) {
            let before = processor_time();
            (0..calls).for_each(|_| turn());
            *nanoseconds = (processor_time() - before).as_nanos() as f64 / calls as f64 / records as f64;
        }
        rounds.push(round);
    }
    let median_of = |figure: &dyn Fn(&[f64; 3]) -> f64| median(rounds.iter().map(figure).collect());
    let [ours, native, dom] = [0, 1, 2].map(|index| median_of(&|round| round[index]));
    let name = format!("program/{}/{records}", case.name);
    println!(
        "{name}: {ours:.0} ns a record in the sandbox, {native:.0} native editor, {dom:.0} serde_json; {:.1} µs a call by the clock",
        elapsed(&sandbox)
    );
    println!("ratio {name}/serde_json {:.2} goal {}", median_of(&|round| round[2] / round[0]), case.goal);
    println!("ratio {name}/native-editor {:.2} goal {NATIVE_GOAL:.2}", median_of(&|round| round[1] / round[0]));
}

fn calls_for_a_turn(turn: &dyn Fn()) -> usize {
    let (start, mut calls) = (Instant::now(), 0);
    while start.elapsed() < TURN {
        turn();
        calls += 1;
    }
    calls
}

/// Microseconds from a call to its outcomes, the hand-over to another thread included.
pub(crate) fn elapsed(turn: &dyn Fn()) -> f64 {
    let times = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        turn();
        start.elapsed().as_nanos() as f64 / 1000.0
    });
    median(times.collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Processor time of all threads of this process.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}
