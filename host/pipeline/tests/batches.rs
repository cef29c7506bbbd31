//! What becomes of a transaction.

use tidegate_api::{Change, Operation};
use tidegate_pipeline::{MaxTransaction, Parts, Settings, State, Stored, start};
use tidegate_sqlite::{Config, SqliteDestination};

use crate::support::transform::{Verdict, by};
use crate::support::{NAME, ORDERS, World, change, insert, problem, transaction, until_at, until_state};

/// Key and document of every row in a SQLite file.
pub(crate) fn stored(file: &std::path::Path) -> Vec<(String, String)> {
    let database = rusqlite::Connection::open(file).unwrap();
    let query = "SELECT key, CAST(document AS TEXT) FROM documents WHERE pipeline = ?1 AND collection = ?2 ORDER BY key";
    let mut statement = database.prepare(query).unwrap();
    let rows = statement.query_map((NAME, ORDERS), |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

fn owned(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(key, document)| ((*key).to_owned(), (*document).to_owned())).collect()
}

#[tokio::test]
async fn key_changes_truncates_and_foreign_tables_arrive_in_sqlite_as_they_happened() {
    let world = World::new();
    let file = world.folder.path().join("out.db");
    let destination = std::sync::Arc::new(SqliteDestination::new(Config { path: file.clone() }).unwrap());
    let handle = start(Parts { destination, ..world.parts() }, Stored::default());
    let foreign = Change { relation: "public.other", ..insert("1", "{\"v\":\"foreign\"}") };
    world.append([transaction(10, &[insert("1", "{\"v\":1}"), foreign, insert("2", "{\"v\":2}")])]).await;
    until_at(&handle, 10).await;
    assert_eq!(stored(&file), owned(&[("1", "{\"v\":1}"), ("2", "{\"v\":2}")]));

    let key_change = [change(Operation::Delete, "1", None), insert("9", "{\"v\":1}")];
    world.append([transaction(20, &key_change)]).await;
    until_at(&handle, 20).await;
    assert_eq!(stored(&file), owned(&[("2", "{\"v\":2}"), ("9", "{\"v\":1}")]));

    let other = Change { relation: "public.other", ..change(Operation::Truncate, "", None) };
    world.append([transaction(30, &[insert("3", "{}"), change(Operation::Truncate, "", None), insert("4", "{}"), other])]).await;
    let status = until_at(&handle, 30).await;
    assert_eq!(stored(&file), owned(&[("4", "{}")]));
    assert_eq!(status.rows, 2 + 2 + 3);
    handle.stop().await;
}

#[tokio::test]
async fn only_the_changes_of_its_own_tables_count_against_the_largest_transaction() {
    let world = World::new();
    let settings = Settings { max_transaction: MaxTransaction { rows: 2, bytes: 1000 }, ..world.settings() };
    let large = "x".repeat(2000);
    let foreign = Change { relation: "public.other", ..insert("1", &large) };
    world
        .append([
            transaction(10, &[foreign, foreign, foreign, insert("1", "{}"), insert("2", "{}")]),
            transaction(20, &[insert("3", "{}"), insert("4", "{}"), insert("5", "{}")]),
        ])
        .await;
    let parts = || Parts { settings: settings.clone(), ..world.parts() };
    let handle = start(parts(), Stored::default());
    let status = until_state(&handle, State::Paused).await;
    assert_eq!((problem(&status), world.checkpoint()), ("TG0403", Some(10)));
    handle.stop().await;

    // The operator raises the bound.
    let settings = Settings { max_transaction: MaxTransaction { rows: 3, bytes: 1000 }, ..settings };
    let handle = start(Parts { settings: settings.clone(), ..world.parts() }, Stored::default());
    until_at(&handle, 20).await;
    world.append([transaction(30, &[insert("6", &large)])]).await;
    assert_eq!(problem(&until_state(&handle, State::Paused).await), "TG0403");
    handle.stop().await;
}

#[tokio::test]
async fn a_transform_is_asked_only_about_the_pipelines_own_tables() {
    let world = World::new();
    let handle = world.start_with(by(|change| if change.relation == ORDERS { Verdict::Keep } else { Verdict::Poison("foreign") }));
    let foreign = Change { relation: "public.other", ..insert("1", "{}") };
    world.append([transaction(10, &[foreign]), transaction(20, &[foreign, insert("1", "{}")])]).await;
    assert_eq!(until_at(&handle, 20).await.rows, 1);
    handle.stop().await;
}

#[tokio::test]
async fn an_update_without_its_large_value_is_refused_by_name() {
    let world = World::new();
    let handle = world.start();
    let lacking = Change { unavailable: Some("body"), ..change(Operation::Update, "1", Some("{}")) };
    world.append([transaction(10, &[lacking])]).await;
    let report = until_state(&handle, State::Paused).await.poison.unwrap();
    assert_eq!((report.kind.as_str(), report.reason.contains("body")), ("unchanged-toast", true));
    handle.stop().await;
}
