//! Failpoints, for tests that crash the daemon: `TIDEGATE_FAILPOINTS=NAME=ACTION;NAME=ACTION…`.
//!
//! Actions are those of the crate `fail` (`sleep(100)`, `pause`, `off` …), and `kill`: the process ends by SIGKILL, at once.
//! `3*off->kill` lets the point pass three times first, `30%kill` kills with that chance each time.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_api::{Error, Result, code};

/// Sets them up, where the environment names some.
pub(crate) fn set_up() -> Result<()> {
    let Ok(wanted) = std::env::var("TIDEGATE_FAILPOINTS") else { return Ok(()) };
    for point in wanted.split(';').map(str::trim).filter(|point| !point.is_empty()) {
        let refused = |reason: String| Error::new(&code::USAGE, "read TIDEGATE_FAILPOINTS").with("failpoint", point).because(reason);
        let (name, action) = point.split_once('=').ok_or_else(|| refused("NAME=ACTION is needed".to_owned()))?;
        match Kill::parse(action.trim()) {
            Some(kill) => fail::cfg_callback(name.trim(), move || kill.reached()).map_err(refused)?,
            None => fail::cfg(name.trim(), action.trim()).map_err(refused)?,
        }
        tracing::warn!(failpoint = point, "a failpoint is set: this daemon is under test");
    }
    Ok(())
}

struct Kill {
    /// So many times nothing happens.
    spared: AtomicU64,
    chance_percent: u64,
}

impl Kill {
    fn parse(action: &str) -> Option<Self> {
        let before = action.strip_suffix("kill")?;
        let (spared, chance_percent) = if before.is_empty() {
            (0, 100)
        } else if let Some(times) = before.strip_suffix("*off->") {
            (times.parse().ok()?, 100)
        } else {
            (0, before.strip_suffix('%')?.parse().ok()?)
        };
        Some(Self { spared: AtomicU64::new(spared), chance_percent })
    }

    fn reached(&self) {
        let spared = self.spared.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if !spared && RandomState::new().hash_one(0) % 100 < self.chance_percent {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kill_may_have_a_count_or_a_chance_and_everything_else_is_not_ours() {
        let read = |text| Kill::parse(text).map(|kill| (kill.spared.into_inner(), kill.chance_percent));
        assert_eq!(read("kill"), Some((0, 100)));
        assert_eq!(read("5*off->kill"), Some((5, 100)));
        assert_eq!(read("30%kill"), Some((0, 30)));
        for other in ["sleep(100)", "off", "x%kill", "5*kill"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
