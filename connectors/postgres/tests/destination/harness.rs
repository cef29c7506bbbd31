//! A database of its own, and a plain reader of it.

use tidegate_api::{BoxFuture, Destination, Fingerprint, Ownership, SourceIdentity};
use tidegate_conformance::destination::{Harness, StoredDocument};
use tidegate_postgres::destination::{Config, PostgresDestination};
use tidegate_testkit::{Postgres, Version};

pub(super) struct Server<'s> {
    pub(super) server: &'s Postgres,
    pub(super) database: String,
}

impl Server<'static> {
    /// A new database on the cluster that the tests share.
    pub(super) async fn shared(version: Version) -> Self {
        Server::on(Postgres::shared(version)).await
    }
}

impl<'s> Server<'s> {
    /// A new database on this cluster.
    pub(super) async fn on(server: &'s Postgres) -> Self {
        Self { server, database: server.create_database("destination").await }
    }

    pub(super) fn destination(&self) -> PostgresDestination {
        self.destination_as("postgres")
    }

    pub(super) fn destination_as(&self, login: &str) -> PostgresDestination {
        self.destination_in("tidegate", login)
    }

    pub(super) fn destination_in(&self, schema: &str, login: &str) -> PostgresDestination {
        let url = self.server.url_as(login, &self.database);
        PostgresDestination::new(Config { url, schema: schema.to_owned() }).unwrap()
    }

    pub(super) async fn execute(&self, statements: &str) {
        self.server.execute(&self.database, statements).await;
    }

    pub(super) async fn value(&self, query: &str) -> String {
        self.server.value(&self.database, query).await
    }

    pub(super) async fn count(&self) -> usize {
        self.value("SELECT count(*) FROM tidegate.documents").await.parse().unwrap()
    }

    /// Everything of ours and of others in the database, as text.
    pub(super) async fn content(&self) -> Vec<Vec<Option<String>>> {
        let tables = "SELECT format('%I.%I', schemaname, tablename), query_to_xml(format('SELECT * FROM %I.%I', schemaname, tablename), true, true, '')
                      FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1";
        self.server.rows(&self.database, tables).await
    }
}

impl Harness for Server<'_> {
    fn open(&self) -> BoxFuture<'_, Box<dyn Destination>> {
        Box::pin(async { Box::new(self.destination()) as Box<dyn Destination> })
    }

    fn documents<'a>(&'a self, pipeline: &'a str) -> BoxFuture<'a, Vec<StoredDocument>> {
        Box::pin(async move {
            let client = self.server.connect(&self.database).await;
            if self.value("SELECT to_regclass('tidegate.documents')").await.is_empty() {
                return Vec::new();
            }
            let query = "SELECT collection, key, partition_key, document, change_id FROM tidegate.documents WHERE pipeline = $1";
            let rows = client.query(query, &[&pipeline]).await.unwrap();
            let document = |row: &tokio_postgres::Row| StoredDocument {
                collection: row.get(0),
                key: row.get(1),
                partition_key: row.get(2),
                document: row.get::<_, String>(3).into_bytes(),
                change_id: row.get(4),
            };
            rows.iter().map(document).collect()
        })
    }
}

pub(super) fn owner(fence: u64) -> Ownership {
    let source = SourceIdentity { system: "7301".into(), timeline: 1, database: "shop".into(), epoch: "0/1500000".into() };
    Ownership { pipeline: "all".into(), source, fingerprint: Fingerprint([0x11; 32]), fence }
}

/// Two accounts that every transaction moves money between: their sum is always 0.
pub(super) fn transfer(position: u64) -> tidegate_api::Batch {
    use tidegate_conformance::batches::{transaction, upsert};
    let (plus, minus) = (format!(r#"{{"balance":{position}}}"#), format!(r#"{{"balance":-{position}}}"#));
    transaction(position, &[upsert("public.a", "1", &plus), upsert("public.a", "2", &minus)])
}
