//! Talking to a cluster: what `psql` would do in a shell.

use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use super::Postgres;

impl Postgres {
    /// A session of the superuser in `database`, over the unix socket.
    ///
    /// # Panics
    /// When the server refuses it.
    pub async fn connect(&self, database: &str) -> Client {
        self.connect_as("postgres", database).await
    }

    /// A session of another role.
    ///
    /// # Panics
    /// When the server refuses it.
    pub async fn connect_as(&self, role: &str, database: &str) -> Client {
        let folder = self.socket_folder().to_string_lossy().into_owned();
        session(&folder, self.port(), role, database).await.unwrap_or_else(|error| panic!("{role} in {database}: {error}"))
    }

    /// Runs statements in a session of their own; several are one transaction, as `psql -c` has it.
    ///
    /// # Panics
    /// When one fails.
    pub async fn execute(&self, database: &str, statements: &str) {
        let done = self.connect(database).await.batch_execute(statements).await;
        done.unwrap_or_else(|error| panic!("{statements}: {error:?}"));
    }

    /// The rows of a query, each value as the server's text; NULL is `None`.
    ///
    /// # Panics
    /// When it fails.
    pub async fn rows(&self, database: &str, query: &str) -> Vec<Vec<Option<String>>> {
        rows(&self.connect(database).await, query).await
    }

    /// The first value of the first row, as text; the empty text for NULL and where there is no row.
    ///
    /// # Panics
    /// When the query fails.
    pub async fn value(&self, database: &str, query: &str) -> String {
        self.rows(database, query).await.into_iter().next().and_then(|row| row.into_iter().next().flatten()).unwrap_or_default()
    }

    /// Creates a database that no other test of this process has: `prefix_N`. Returns its name.
    ///
    /// # Panics
    /// When it cannot be created.
    pub async fn create_database(&self, prefix: &str) -> String {
        self.create_database_with(prefix, "").await
    }

    /// As [`create_database`](Self::create_database), with options of CREATE DATABASE.
    ///
    /// # Panics
    /// When it cannot be created.
    pub async fn create_database_with(&self, prefix: &str, options: &str) -> String {
        let name = Self::unique(prefix);
        self.execute("postgres", &format!("CREATE DATABASE {name} TEMPLATE template0 {options}")).await;
        name
    }
}

/// The rows of a query in a session that is there, each value as the server's text.
///
/// # Panics
/// When the query fails.
pub async fn rows(client: &Client, query: &str) -> Vec<Vec<Option<String>>> {
    let messages = client.simple_query(query).await.unwrap_or_else(|error| panic!("{query}: {error:?}"));
    let texts = |message| match message {
        SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect()),
        _ => None,
    };
    messages.into_iter().filter_map(texts).collect()
}

async fn session(folder: &str, port: u16, role: &str, database: &str) -> Result<Client, tokio_postgres::Error> {
    let mut config = Config::new();
    config.host_path(folder).port(port).user(role).dbname(database);
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection); // ends with the client
    Ok(client)
}

/// Whether the server lets the superuser in.
pub(super) fn answers(folder: &str, port: u16) -> bool {
    apart(async || session(folder, port, "postgres", "postgres").await.is_ok())
}

/// Drops a database's slots, and ends what uses them; what is gone already does not matter.
pub(super) fn drop_slots(folder: &str, port: u16, database: &str) {
    let slots = format!("pg_replication_slots WHERE database = '{database}'");
    apart(async || {
        let Ok(client) = session(folder, port, "postgres", "postgres").await else { return };
        let _ = client.batch_execute(&format!("SELECT pg_terminate_backend(active_pid, 5000) FROM {slots} AND active")).await;
        let _ = client.batch_execute(&format!("SELECT pg_drop_replication_slot(slot_name) FROM {slots} AND NOT active")).await;
    });
}

/// On a thread and runtime of its own: the caller may be inside another, or in the middle of a drop.
fn apart<T: Send>(work: impl AsyncFnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
            runtime.block_on(work())
        };
        scope.spawn(run).join().expect("the work does not panic")
    })
}
