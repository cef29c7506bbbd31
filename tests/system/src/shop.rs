//! The source: a shop whose every transaction can be recognised at the destination.
//!
//! * A transaction has a number, `tx_no`, which it writes into every order that it touches and into one row of `shop.ledger`.
//! * An order counts its versions; an id is never used twice, so a key's version only grows and a deleted key stays away.
//! * A transaction leaves the sum of all balances at 0: the writer's own account (order 1 or 2) takes what it gave.

use std::collections::BTreeMap;
use std::path::Path;

use tidegate_testkit::Postgres;

use crate::compare::{Collection, Documents, compact};

const SCHEMA: &str = "
CREATE SCHEMA shop;
CREATE SEQUENCE shop.order_id START 1000000000;
CREATE SEQUENCE shop.tx_no;
CREATE TABLE shop.orders (id bigint PRIMARY KEY, writer int, version int, tx_no bigint, balance bigint, status text,
    total numeric(12,2), note text, customer jsonb, changed timestamptz);
CREATE TABLE shop.ledger (tx_no bigint PRIMARY KEY, writer int, written int, removed bigint[]);
CREATE TABLE shop.side (id bigint PRIMARY KEY, tx_no bigint, t text);
CREATE TABLE shop.marker (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text);
";

/// Sessions as documents are defined: PostgreSQL's own defaults and UTC.
const SESSION: &str = "SET TimeZone = 'UTC'; SET DateStyle = 'ISO, MDY'; SET IntervalStyle = 'postgres'; SET bytea_output = 'hex'";

/// A source database with the shop in it.
#[derive(Clone, Debug)]
pub struct Shop {
    /// Its server.
    pub server: &'static Postgres,
    /// Its database.
    pub database: String,
}

impl Shop {
    /// The publication that the daemon is told to use; it makes it itself.
    pub const PUBLICATION: &'static str = "tg_pub";

    /// Every table of the shop, as a pipeline's `tables`.
    pub const TABLES: [&'static str; 4] = ["shop.ledger", "shop.marker", "shop.orders", "shop.side"];

    /// A new database with `rows` orders in it.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn create(server: &'static Postgres, rows: u64) -> Self {
        let database = server.create_database("shop").await;
        server.execute(&database, SCHEMA).await;
        let fill = format!(
            "INSERT INTO shop.orders SELECT g, 0, 1, 0, 0, CASE WHEN g % 7 = 0 THEN 'cancelled' ELSE 'new' END, g + 0.10, repeat(md5(g::text), 4),
             jsonb_build_object('name', 'customer ' || g, 'email', g || '@example.com'), '2024-01-01 00:00:00+00' FROM generate_series(1, {rows}) g"
        );
        server.execute(&database, &fill).await;
        Self { server, database }
    }

    /// Its url.
    pub fn url(&self) -> String {
        self.server.url(&self.database)
    }

    /// The slot that the daemon is told to use.
    pub fn slot(&self) -> String {
        format!("tg_{}", self.database)
    }

    /// Runs statements.
    ///
    /// # Panics
    /// When one fails.
    pub async fn execute(&self, statements: &str) {
        self.server.execute(&self.database, statements).await;
    }

    /// Commits a marker row and returns its key: where it has arrived, everything committed before has.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn mark(&self) -> String {
        self.server.value(&self.database, "INSERT INTO shop.marker (note) VALUES ('marker') RETURNING id").await
    }

    /// What the documents must be: the server's own `row_to_json`, without insignificant white space.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn documents(&self) -> Documents {
        let client = self.server.connect(&self.database).await;
        client.batch_execute(SESSION).await.expect("a session can be set up");
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await.expect("a transaction can be begun");
        let mut documents = Documents::new();
        for table in Self::TABLES {
            let key = if table == "shop.ledger" { "tx_no" } else { "id" };
            let query = format!("SELECT {key}::text, row_to_json(shop)::text FROM {table} shop");
            let mut collection = Collection::new();
            for row in tidegate_testkit::postgres::client::rows(&client, &query).await {
                let mut values = row.into_iter().flatten();
                let (Some(key), Some(document)) = (values.next(), values.next()) else { panic!("{table} has a row without key") };
                collection.insert(key, compact(&document));
            }
            documents.insert(table.to_owned(), collection);
        }
        documents
    }

    /// What the documents must be behind a program, by `tidegate transform run`; dropped rows are absent.
    ///
    /// # Panics
    /// When the server refuses, or a row is poison.
    pub async fn transformed(&self, program: &Path, folder: &Path) -> Documents {
        let mut transformed = BTreeMap::new();
        for (name, collection) in self.documents().await {
            transformed.insert(name, crate::compare::through(program, &collection, folder));
        }
        transformed
    }
}
