//! Throw-away PostgreSQL clusters.
//!
//! ```no_run
//! # async fn example() {
//! use tidegate_testkit::{Postgres, Version};
//! let server = Postgres::shared(Version::V15); // or Postgres::start for one that the test may stop or kill
//! let database = server.create_database("shop").await; // shop_1, …: its own in every test
//! server.execute(&database, "CREATE TABLE orders (id int PRIMARY KEY)").await;
//! let url = server.url(&database);
//! # }
//! ```

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};
use std::{env, fs};

use tempfile::TempDir;

pub mod client;
mod programs;

use programs::Programs;
pub use programs::Version;

use crate::process::user::{self, User};
use crate::process::{Child, Signal, bound_command};
use crate::wait::PATIENCE;

/// How the folders of all clusters begin.
const PREFIX: &str = "tg-pg-";

/// The file in such a folder that names the process whose it is.
const OWNER: &str = "owner";

/// What every cluster runs with unless told otherwise. The time zone is not UTC on purpose: sessions must not rely on it.
const SETTINGS: [(&str, &str); 9] = [
    ("wal_level", "logical"),
    ("max_wal_senders", "60"),
    ("max_replication_slots", "60"),
    ("max_connections", "200"),
    ("fsync", "off"),
    ("timezone", "America/St_Johns"),
    ("log_timezone", "UTC"),
    ("lc_messages", "C"),
    ("wal_sender_timeout", "10s"),
];

/// Who may log in how: `guarded` by password over TCP, everybody else freely.
const LOGINS: &str = "local all all trust\n\
    local replication all trust\n\
    host all guarded 127.0.0.1/32 scram-sha-256\n\
    host replication guarded 127.0.0.1/32 scram-sha-256\n\
    host all all 127.0.0.1/32 trust\n\
    host replication all 127.0.0.1/32 trust\n";

/// A cluster on a loopback port and a unix socket, in a temporary folder of its own; superuser `postgres`.
///
/// Dropping it stops the server and removes the folder. The server also stops when the test process is killed.
#[derive(Debug)]
pub struct Postgres {
    folder: TempDir,
    programs: Programs,
    user: Option<User>,
    port: u16,
    settings: Vec<(String, String)>,
    server: Mutex<Option<Child>>,
}

impl Postgres {
    /// A new cluster of this version, answering.
    ///
    /// # Panics
    /// When the version's programs are missing, naming the command that installs them; when the server does not start.
    pub fn start(version: Version) -> Self {
        Self::start_with(version, &[])
    }

    /// As [`start`](Self::start), with settings of `postgresql.conf` that win over the usual ones.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub fn start_with(version: Version, settings: &[(&str, &str)]) -> Self {
        let mut all: Vec<(String, String)> = SETTINGS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        all.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let programs = Programs::find(version);
        let user = user::unprivileged();
        sweep();
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir().expect("a temporary folder can be made");
        fs::write(folder.path().join(OWNER), std::process::id().to_string()).expect("the folder can be written");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("the folder is ours");
        if let Some(user) = &user {
            std::os::unix::fs::chown(folder.path(), Some(user.uid), Some(user.gid)).expect("root may give the folder away");
        }
        let cluster = Self { folder, programs, user, port: free_port(), settings: all, server: Mutex::new(None) };
        cluster.init();
        cluster.start_again();
        cluster
    }

    /// One cluster of this version for all tests of the process, which must use databases, slots and roles of their own
    /// ([`create_database`](Self::create_database)) and neither stop it nor change its settings.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub fn shared(version: Version) -> &'static Self {
        static V15: OnceLock<Postgres> = OnceLock::new();
        static V18: OnceLock<Postgres> = OnceLock::new();
        match version {
            Version::V15 => V15.get_or_init(|| Self::start(version)),
            Version::V18 => V18.get_or_init(|| Self::start(version)),
        }
    }

    /// `postgres://postgres@127.0.0.1:PORT/DATABASE`.
    pub fn url(&self, database: &str) -> String {
        self.url_as("postgres", database)
    }

    /// The url for another login: `user` or `user:password`.
    pub fn url_as(&self, login: &str, database: &str) -> String {
        format!("postgres://{login}@127.0.0.1:{}/{database}", self.port)
    }

    /// The folder of the unix socket.
    pub fn socket_folder(&self) -> &Path {
        self.folder.path()
    }

    /// The loopback port, also the socket's number.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder with the server's programs.
    pub fn programs(&self) -> &Path {
        &self.programs.folder
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        fs::read(self.log_file()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Starts the server where it does not run, and waits until it answers.
    ///
    /// # Panics
    /// When it does not answer in time, with the end of its log.
    pub fn start_again(&self) {
        let mut server = self.server();
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            // After SIGKILL the old backends must be gone first: until then a new server ends at once.
            let mut child = Child::spawn(self.command());
            while child.ended().is_none() && Instant::now() < end {
                if client::answers(&self.socket_folder().to_string_lossy(), self.port) {
                    *server = Some(child);
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let log = self.log();
        panic!("PostgreSQL does not start: {}", &log[log.floor_char_boundary(log.len().saturating_sub(2000))..]);
    }

    /// Stops the server as an operator would (fast), where it runs.
    pub fn stop(&self) {
        self.end(Signal::INT);
    }

    /// SIGKILL for the postmaster; its backends end by themselves. Unsynced pages survive: this is no power cut.
    pub fn kill(&self) {
        self.end(Signal::KILL);
    }

    /// [`stop`](Self::stop), then [`start_again`](Self::start_again).
    ///
    /// # Panics
    /// As [`start_again`](Self::start_again).
    pub fn restart(&self) {
        self.stop();
        self.start_again();
    }

    /// Drops the slots of a database, so that a shared server has them for the next test; ends what uses them.
    pub fn drop_slots(&self, database: &str) {
        client::drop_slots(&self.socket_folder().to_string_lossy(), self.port, database);
    }

    /// A name that no other test of this process uses: `prefix_N`.
    pub fn unique(prefix: &str) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        format!("{prefix}_{}", NUMBER.fetch_add(1, Ordering::Relaxed))
    }

    fn end(&self, signal: Signal) {
        if let Some(mut child) = self.server().take() {
            child.signal(signal);
            if child.wait(Duration::from_secs(20)).is_none() {
                child.signal(Signal::QUIT);
                child.wait(Duration::from_secs(5));
            }
        }
    }

    fn server(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.server.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn init(&self) {
        let mut command = self.as_owner("initdb");
        command.arg("-D").arg(self.data());
        command.args(["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        let made = command.output().expect("initdb can be started");
        assert!(made.status.success(), "initdb failed: {}", String::from_utf8_lossy(&made.stderr));
        fs::write(self.data().join("pg_hba.conf"), LOGINS).expect("the data folder can be written");
    }

    fn command(&self) -> Command {
        let mut command = self.as_owner("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(self.folder.path()).arg("-p").arg(self.port.to_string());
        command.args(["-c", "listen_addresses=127.0.0.1"]);
        for (name, value) in &self.settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let log = fs::OpenOptions::new().append(true).create(true).open(self.log_file()).expect("the log can be written");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a second handle")).stderr(log);
        command
    }

    fn as_owner(&self, program: &str) -> Command {
        let mut command = bound_command(self.programs.folder.join(program), "INT", self.user.as_ref());
        command.current_dir(self.folder.path()).env("LC_ALL", "C").env("TZ", "UTC");
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
            command.env_remove(name);
        }
        if let Some(libraries) = &self.programs.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Removes the folders of test processes that have ended: a shared cluster is never dropped, and a killed process drops nothing.
fn sweep() {
    let folders = fs::read_dir(env::temp_dir()).into_iter().flatten().flatten().map(|entry| entry.path());
    for folder in folders.filter(|folder| folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))) {
        let owner = fs::read_to_string(folder.join(OWNER)).ok().filter(|owner| owner.parse::<u32>().is_ok());
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
            let _ = fs::remove_dir_all(folder); // somebody else's, or somebody else sweeps it, too
        }
    }
}

/// A port that nobody listens on at this moment.
///
/// # Panics
/// When the loopback interface has none.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a loopback port is free");
    listener.local_addr().expect("it has an address").port()
}
