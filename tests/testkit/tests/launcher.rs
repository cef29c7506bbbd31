use std::time::Duration;

use tidegate_testkit::process::{Child, Signal, bound_command};
use tidegate_testkit::{Postgres, Version};

#[tokio::test]
async fn both_versions_start_and_answer_and_decode() {
    for version in Version::ALL {
        let server = Postgres::shared(version);
        let database = server.create_database("kit").await;
        assert_eq!(server.value(&database, "SHOW wal_level").await, "logical");
        let number: u32 = server.value(&database, "SHOW server_version_num").await.parse().unwrap();
        assert_eq!(number / 10_000, version.major());
        server.execute(&database, "SELECT pg_create_logical_replication_slot('kit', 'pgoutput')").await;
        server.execute(&database, "SELECT pg_drop_replication_slot('kit')").await;
    }
}

#[tokio::test]
async fn a_killed_server_comes_back_with_what_was_committed() {
    let server = Postgres::start(Version::V15);
    server.execute("postgres", "CREATE TABLE kept (id int PRIMARY KEY); INSERT INTO kept VALUES (7)").await;
    server.kill();
    server.start_again();
    assert_eq!(server.value("postgres", "SELECT id FROM kept").await, "7");
    server.restart();
    assert_eq!(server.value("postgres", "SELECT id FROM kept").await, "7");
}

#[test]
fn a_dropped_child_is_gone() {
    let mut command = bound_command("sleep", "KILL", None);
    command.arg("600");
    let mut child = Child::spawn(command);
    let folder = std::path::PathBuf::from(format!("/proc/{}", child.id()));
    assert!(child.ended().is_none() && folder.exists());
    child.signal(Signal::TERM);
    assert!(child.wait(Duration::from_secs(30)).is_some());
    drop(child);
    assert!(!folder.exists());
}
