//! When a failed attempt is repeated.

use std::time::Duration;

use tidegate_api::source::RetryClassifier;
use tidegate_api::{Code, Error, code};

use crate::settings::RetryPolicy;

/// What is tried for ever: giving up would not bring a destination or a disk back.
const FOR_EVER: [&Code; 4] = [&code::DESTINATION_UNREACHABLE, &code::RELAY_READ, &code::RELAY_WRITE, &code::RELAY_METADATA];

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

    /// The pause before the next attempt after `error`; `None` where there is none. A classifier decides in place of the
    /// error's own mark. Attempts for what is tried for ever are not counted.
    pub(crate) fn after(&mut self, error: &Error, classifier: Option<&dyn RetryClassifier>) -> Option<Duration> {
        let may_pass = classifier.map_or_else(|| error.is_transient(), |classifier| classifier.is_transient(error));
        if !may_pass {
            return None;
        }
        if !FOR_EVER.contains(&error.code()) {
            if self.attempts >= self.policy.attempts {
                return None;
            }
            self.attempts += 1;
        }
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

    struct Verdict(bool);

    impl RetryClassifier for Verdict {
        fn is_transient(&self, _error: &Error) -> bool {
            self.0
        }
    }

    fn attempts(error: &Error, classifier: Option<&dyn RetryClassifier>) -> usize {
        let mut backoff = Backoff::new(&RetryPolicy { attempts: 3, ..RetryPolicy::default() });
        1 + (0..100).take_while(|_| backoff.after(error, classifier).is_some()).count()
    }

    #[test]
    fn attempts_have_a_ceiling_but_for_what_is_away() {
        let permanent = Error::new(&code::DESTINATION_FAILED, "apply");
        let away = || Error::new(&code::DESTINATION_UNREACHABLE, "apply");
        assert_eq!(attempts(&permanent, None), 1);
        assert_eq!(attempts(&Error::new(&code::DESTINATION_FAILED, "apply").transient(), None), 3);
        assert_eq!(attempts(&away().transient(), None), 101);
        assert_eq!(attempts(&away(), None), 1);
    }

    #[test]
    fn an_outage_leaves_every_attempt_for_afterwards() {
        let mut backoff = Backoff::new(&RetryPolicy { attempts: 2, ..RetryPolicy::default() });
        let away = Error::new(&code::DESTINATION_UNREACHABLE, "apply").transient();
        assert!((0..50).all(|_| backoff.after(&away, None).is_some()));
        let busy = Error::new(&code::DESTINATION_FAILED, "apply").transient();
        assert!(backoff.after(&busy, None).is_some());
        assert!(backoff.after(&busy, None).is_none());
    }

    #[test]
    fn a_classifier_decides_in_place_of_the_mark() {
        let permanent = Error::new(&code::DESTINATION_FAILED, "apply");
        let transient = Error::new(&code::DESTINATION_FAILED, "apply").transient();
        assert_eq!(attempts(&permanent, Some(&Verdict(true))), 3);
        assert_eq!(attempts(&transient, Some(&Verdict(false))), 1);
    }

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
