//! Figures: one line each, larger is better.

use std::time::Duration;

/// Prints `ratio NAME VALUE goal GOAL`: VALUE is the baseline's time over ours.
pub fn print(name: &str, baseline: Duration, ours: Duration, goal: f64) {
    let value = baseline.as_secs_f64() / ours.as_secs_f64();
    println!("ratio {name} {value:.2} goal {goal}");
}

/// Prints `ratio NAME VALUE goal 1` for something that must stay below a bound: VALUE is the bound over what was measured.
pub fn print_bound(name: &str, bound: f64, measured: f64) {
    println!("ratio {name} {:.2} goal 1", bound / measured);
}

/// The middle one.
///
/// # Panics
/// When there is none.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
