//! Half a million changes of a shop's orders, about 970 bytes a row, at a chosen number of rows a transaction.

use tidegate_testkit::Postgres;

/// The table that everything is measured with.
pub const TABLE: &str = "public.orders";

/// The publication of [`TABLE`].
pub const PUBLICATION: &str = "bench";

/// Creates the empty table, its publication, and the procedures that fill it.
pub async fn prepare(server: &Postgres, database: &str) {
    server.execute(database, SCHEMA).await;
}

/// Commits `changes` changes, the first half inserts, the second half updates of the same rows, `rows` in a transaction.
pub async fn change(server: &Postgres, database: &str, changes: u32, rows: u32) {
    server.execute(database, &format!("CALL insert_orders({}, {rows})", changes / 2)).await;
    server.execute(database, &format!("CALL update_orders({}, {rows})", changes / 2)).await;
}

/// Commits `changes` inserts, `rows` in a transaction.
pub async fn insert(server: &Postgres, database: &str, changes: u32, rows: u32) {
    server.execute(database, &format!("CALL insert_orders({changes}, {rows})")).await;
}

/// The end of the server's log now, as its text.
pub async fn log_end(server: &Postgres, database: &str) -> String {
    server.value(database, "SELECT pg_current_wal_insert_lsn()").await
}

/// One more transaction, so that a reader sees a commit behind [`log_end`].
pub async fn one_more(server: &Postgres, database: &str) {
    server.execute(database, "CALL insert_orders(1, 1)").await;
}

const SCHEMA: &str = r#"
CREATE SEQUENCE ids;
CREATE TABLE orders (
  id bigint PRIMARY KEY, customer bigint, status text, total numeric(12,2), created timestamptz, updated timestamp,
  paid boolean, details jsonb, note text, tags text[]
);
CREATE PUBLICATION bench FOR TABLE orders;
CREATE PROCEDURE insert_orders(total int, per_transaction int) LANGUAGE plpgsql AS $$
BEGIN
  SET synchronous_commit = off;
  FOR i IN 1..total / per_transaction LOOP
    INSERT INTO orders SELECT nextval('ids'), g * 7, 'open', g + 0.10, '2024-01-01 00:00:00+00', '2024-01-01 12:34:56.789', g % 2 = 0,
      jsonb_build_object('channel', 'web', 'items', g, 'price', 12.50, 'address', jsonb_build_object('city', 'Ankh', 'zip', '0' || g)),
      repeat(md5(g::text), 20), ARRAY['new', 'priority', 'gift "wrapped"']
      FROM generate_series(1, per_transaction) g;
    COMMIT;
  END LOOP;
END $$;
CREATE PROCEDURE update_orders(total int, per_transaction int) LANGUAGE plpgsql AS $$
BEGIN
  SET synchronous_commit = off;
  FOR i IN 0..total / per_transaction - 1 LOOP
    UPDATE orders SET status = 'paid', paid = true WHERE id > i * per_transaction AND id <= (i + 1) * per_transaction;
    COMMIT;
  END LOOP;
END $$;
"#;
