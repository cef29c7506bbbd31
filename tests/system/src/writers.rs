//! Load: two writers that change the shop in transactions of 1 to 2,000 rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tidegate_testkit::postgres::client;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Error};

use crate::{Chance, Shop};

/// The writers' own rows, which they take what they gave from.
const ACCOUNTS: u64 = 2;

/// Writers at work. [`stop`](Self::stop) them before the shop is compared.
#[derive(Debug)]
pub struct Writers {
    halt: Arc<AtomicBool>,
    running: Vec<JoinHandle<Work>>,
}

/// What was committed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Transactions.
    pub transactions: u64,
    /// Row changes.
    pub rows: u64,
}

impl Writers {
    /// Starts them: together about `rows_per_second`.
    pub fn start(shop: &Shop, first_rows: u64, rows_per_second: u64, seed: u64) -> Self {
        let halt = Arc::new(AtomicBool::new(false));
        let write = |number| {
            let writer = Writer {
                shop: shop.clone(),
                number,
                first_rows,
                rows_per_second: rows_per_second / ACCOUNTS,
                chance: Chance::new(seed * 10 + number),
                work: Work::default(),
            };
            tokio::spawn(writer.run(halt.clone()))
        };
        Self { running: (1..=ACCOUNTS).map(write).collect(), halt }
    }

    /// Stops them and tells what they did.
    ///
    /// # Panics
    /// When one of them failed.
    pub async fn stop(self) -> Work {
        self.halt.store(true, Ordering::Relaxed);
        let mut all = Work::default();
        for writer in self.running {
            let work = writer.await.expect("a writer does not fail");
            all.transactions += work.transactions;
            all.rows += work.rows;
        }
        all
    }
}

struct Writer {
    shop: Shop,
    number: u64,
    first_rows: u64,
    rows_per_second: u64,
    chance: Chance,
    work: Work,
}

impl Writer {
    async fn run(mut self, halt: Arc<AtomicBool>) -> Work {
        let client = self.shop.server.connect(&self.shop.database).await;
        while !halt.load(Ordering::Relaxed) {
            let began = Instant::now();
            let rows = self.transaction(&client).await.expect("the source takes the writer's changes");
            self.work.transactions += 1;
            self.work.rows += rows;
            let due = Duration::from_millis(rows * 1000 / self.rows_per_second.max(1));
            tokio::time::sleep(due.saturating_sub(began.elapsed())).await; // the rate that was asked for
        }
        self.work
    }

    async fn transaction(&mut self, client: &Client) -> Result<u64, Error> {
        let largest = [1, 10, 100, 2000][self.chance.below(4) as usize];
        let size = 1 + self.chance.below(largest);
        let (inserts, updates) = (self.chance.below(size + 1), self.chance.below(size + 1));
        let (moves, deletes) = (self.chance.below(size / 2 + 1), self.chance.below(size / 2 + 1));
        let (tx, writer) = (number(client, "SELECT nextval('shop.tx_no')").await?, self.number);
        client.batch_execute("BEGIN").await?;
        client
            .batch_execute(&format!(
                "INSERT INTO shop.orders SELECT nextval('shop.order_id'), {writer}, 1, {tx}, 5, 'new', g + 0.10, repeat(md5(g::text), 4),
                 jsonb_build_object('name', 'new ' || g, 'email', g || '@example.com'), clock_timestamp() FROM generate_series(1, {inserts}) g"
            ))
            .await?;
        let updated = self
            .picked(
                updates,
                &format!(
                    "UPDATE shop.orders o SET version = version + 1, tx_no = {tx}, balance = balance + 1, changed = clock_timestamp(),
                 status = CASE WHEN (o.id + {tx}) % 7 = 0 THEN 'cancelled' ELSE 'paid' END FROM picked WHERE o.id = picked.id RETURNING 1"
                ),
                client,
            )
            .await?
            .len() as i64;
        let mut removed = self
            .picked(moves, &format!(
                "UPDATE shop.orders o SET id = nextval('shop.order_id'), version = version + 1, tx_no = {tx} FROM picked WHERE o.id = picked.id RETURNING picked.id"
            ), client)
            .await?;
        let gone =
            self.picked(deletes, "DELETE FROM shop.orders o USING picked WHERE o.id = picked.id RETURNING o.id, o.balance", client).await?;
        let given = 5 * inserts as i64 + updated - gone.iter().map(|row| row[1]).sum::<i64>();
        removed.extend(gone);
        self.side_table(tx, client).await?;
        let removed: Vec<String> = removed.iter().map(|row| row[0].to_string()).collect();
        client
            .batch_execute(&format!(
                "UPDATE shop.orders SET version = version + 1, tx_no = {tx}, balance = balance - ({given}) WHERE id = {writer};
                 INSERT INTO shop.ledger VALUES ({tx}, {writer}, (SELECT count(*) FROM shop.orders WHERE tx_no = {tx}), '{{{}}}')",
                removed.join(",")
            ))
            .await?;
        client.batch_execute("COMMIT").await?;
        Ok(inserts + updates + moves + deletes + ACCOUNTS)
    }

    /// Runs a statement over `count` orders from some place on, never over an account, and gives the numbers that it returns.
    async fn picked(&mut self, count: u64, statement: &str, client: &Client) -> Result<Vec<Vec<i64>>, Error> {
        let among_first = self.chance.once_in(2);
        let from =
            if among_first { 10 + self.chance.below(self.first_rows) } else { 1_000_000_000 + self.chance.below(1 + self.work.rows) };
        let query = format!(
            "WITH picked AS (SELECT id FROM shop.orders WHERE id > {from} ORDER BY id LIMIT {count} FOR UPDATE SKIP LOCKED) {statement}"
        );
        let rows = client::rows(client, &query).await;
        Ok(rows.into_iter().map(|row| row.into_iter().flatten().filter_map(|text| text.parse().ok()).collect()).collect())
    }

    async fn side_table(&mut self, tx: i64, client: &Client) -> Result<(), Error> {
        if self.chance.once_in(20) {
            client.batch_execute("TRUNCATE shop.side").await?;
        }
        if self.chance.once_in(4) {
            client
                .batch_execute(&format!("INSERT INTO shop.side SELECT nextval('shop.order_id'), {tx}, 'side' FROM generate_series(1, 3)"))
                .await?;
        }
        Ok(())
    }
}

async fn number(client: &Client, query: &str) -> Result<i64, Error> {
    let rows = client::rows(client, query).await;
    Ok(rows.first().and_then(|row| row.first()?.as_deref()?.parse().ok()).unwrap_or_default())
}
