//! The user that a server runs as when the tests run as root: PostgreSQL refuses root.

use std::fs;

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its number.
    pub uid: u32,
    /// Its own group's number.
    pub gid: u32,
}

/// The unprivileged user when we are root, `None` when we are somebody else already.
///
/// # Panics
/// When we are root and the machine has neither `postgres` nor `nobody`.
pub fn unprivileged() -> Option<User> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("/etc/passwd can be read");
    let found = ["postgres", "nobody"].iter().find_map(|name| users.lines().find_map(|line| user(line, name)));
    Some(found.expect("no unprivileged user (postgres or nobody) to run a server as"))
}

fn user(line: &str, name: &str) -> Option<User> {
    let mut fields = line.split(':');
    if fields.next()? != name {
        return None;
    }
    let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(User { name: name.to_owned(), uid, gid })
}
