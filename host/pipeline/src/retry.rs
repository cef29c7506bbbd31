//! When a failed attempt is repeated.

use std::time::Duration;

use tidegate_api::destination::Destination;
use tidegate_api::{Error, code};

use crate::settings::RetryPolicy;

/// The pauses between the attempts of one operation.
#[derive(Debug)]
pub(crate) struct Backoff {
    policy: RetryPolicy,
    attempts: u32,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(policy: &RetryPolicy) -> Self {
        Self { policy: *policy, attempts: 1, next: policy.base }
    }

    /// The pause before the next attempt after `error`; `None` where there is none.
    pub(crate) fn after(&mut self, error: &Error, destination: &dyn Destination) -> Option<Duration> {
        let judged = destination.retry_classifier().is_some_and(|classifier| classifier.is_transient(error));
        if !error.is_transient() && !judged {
            return None;
        }
        if self.attempts >= self.policy.attempts && !is_away(error) {
            return None;
        }
        self.attempts = self.attempts.saturating_add(1);
        Some(self.pause())
    }

    /// The next pause, for what is tried for ever.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.next;
        let longer = Duration::try_from_secs_f64(pause.as_secs_f64() * self.policy.factor).unwrap_or(self.policy.max);
        self.next = longer.min(self.policy.max);
        jittered(pause, self.policy.jitter, random_fraction()).min(self.policy.max)
    }
}

/// A destination that cannot be reached is tried for ever.
fn is_away(error: &Error) -> bool {
    *error.code() == code::DESTINATION_UNREACHABLE
}

/// `pause` times a factor between 1 − `jitter` and 1 + `jitter`.
fn jittered(pause: Duration, jitter: f64, fraction: f64) -> Duration {
    let factor = 1.0 - jitter + 2.0 * jitter * fraction;
    Duration::try_from_secs_f64(pause.as_secs_f64() * factor).unwrap_or(pause)
}

/// Between 0 and 1.
fn random_fraction() -> f64 {
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    f64::from(random) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_jitter_stays_within_its_bounds() {
        let policy = RetryPolicy { attempts: 9, jitter: 0.0, max: Duration::from_secs(1), ..RetryPolicy::default() };
        let mut backoff = Backoff::new(&policy);
        let pauses: Vec<u128> = (0..6).map(|_| backoff.pause().as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1000, 1000]);
        for fraction in [0.0, 0.25, 0.5, 1.0] {
            let pause = jittered(Duration::from_millis(100), 0.2, fraction);
            assert!((80..=120).contains(&pause.as_millis()), "{pause:?}");
        }
        let policy = RetryPolicy { base: Duration::from_secs(1), max: Duration::from_secs(1), jitter: 0.5, ..policy };
        for _ in 0..1000 {
            let pause = Backoff::new(&policy).pause();
            assert!((500..=1000).contains(&pause.as_millis()), "{pause:?}");
        }
    }
}
