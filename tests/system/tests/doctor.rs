//! The doctor against servers that lack something: each finding has its code and the statement that mends it.

use serde_json::Value;
use tidegate_system_tests::config::Config;
use tidegate_system_tests::daemon::envelope;
use tidegate_system_tests::{Daemon, Kind, PIPELINE, Scene, Shop};
use tidegate_testkit::{Postgres, Version};

/// Exit code and findings; where something failed, the error is the first of what failed.
fn doctor(daemon: &Daemon) -> (Option<i32>, Vec<Value>) {
    let output = daemon.cli(&["doctor", "--json"]);
    let answer = envelope(&output);
    let findings = answer["result"]["findings"].as_array().expect("findings, whatever they say").clone();
    let failed = findings.iter().find(|finding| finding["severity"] == "failed");
    assert_eq!(answer["error"]["code"], failed.map_or(Value::Null, |finding| finding["code"].clone()), "{answer}");
    (output.status.code(), findings)
}

fn fix<'a>(findings: &'a [Value], code: &str) -> &'a str {
    let of = |finding: &&Value| finding["severity"] == "failed" && finding["code"] == code;
    let found = findings.iter().find(of).unwrap_or_else(|| panic!("{code} is not among {findings:#?}"));
    found["fix"].as_str().expect("a failed finding has a fix")
}

fn has_failed(findings: &[Value], code: &str) -> bool {
    findings.iter().any(|finding| finding["severity"] == "failed" && finding["code"] == code)
}

#[tokio::test]
async fn a_server_without_logical_wal_and_spare_slots_is_named_with_the_settings_that_mend_it() {
    let settings = [("wal_level", "replica"), ("max_replication_slots", "1"), ("max_wal_senders", "1")];
    let server: &'static Postgres = Box::leak(Box::new(Postgres::start_with(Version::V15, &settings)));
    let mut scene = Scene::plain(Kind::Sqlite, 10).await;
    let shop = Shop::create(server, 10).await;
    scene.configure(&Config::new(scene.path()).source(&shop).pipeline(PIPELINE, &Shop::TABLES, None, &scene.target));
    let (exit, findings) = doctor(&scene.daemon);
    assert_eq!(exit, Some(3));
    assert_eq!(fix(&findings, "TG0104"), "ALTER SYSTEM SET wal_level = 'logical'; then restart the server");
    assert_eq!(fix(&findings, "TG0117"), "ALTER SYSTEM SET max_replication_slots = 4; then restart the server");
    assert_eq!(fix(&findings, "TG0118"), "ALTER SYSTEM SET max_wal_senders = 4; then restart the server");
    server.stop();
}

#[tokio::test]
async fn every_statement_for_rights_and_keys_mends_what_it_is_for() {
    let mut scene = Scene::plain(Kind::Sqlite, 10).await;
    let shop = scene.shop.clone();
    let role = Postgres::unique("patient");
    shop.execute(&format!(
        "CREATE TABLE shop.keyless (a int NOT NULL, b int); CREATE TABLE shop.nothing (a int PRIMARY KEY);
         ALTER TABLE shop.nothing REPLICA IDENTITY NOTHING; CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA shop TO {role};
         GRANT SELECT ON shop.keyless, shop.nothing TO {role}"
    ))
    .await;
    let tables = ["shop.orders", "shop.keyless", "shop.nothing"];
    let url = shop.server.url_as(&role, &shop.database);
    scene.configure(&Config::new(scene.path()).source_at(&shop, &url).pipeline(PIPELINE, &tables, None, &scene.target));

    let (exit, findings) = doctor(&scene.daemon);
    assert_eq!(exit, Some(3));
    let right = fix(&findings, "TG0106").to_owned();
    assert_eq!(right, format!("ALTER ROLE {role} REPLICATION"));
    let grant = fix(&findings, "TG0108").to_owned();
    assert!(grant.contains(&format!(r#"GRANT SELECT ON "shop"."orders" TO {role}"#)), "{grant}");
    assert!(fix(&findings, "TG0109").starts_with(r#"ALTER TABLE "shop"."keyless" ADD PRIMARY KEY"#), "{findings:#?}");
    shop.execute(&format!("{right}; {grant}; ALTER TABLE shop.keyless ADD PRIMARY KEY (a)")).await;

    let (exit, findings) = doctor(&scene.daemon);
    assert_eq!(exit, Some(3));
    assert!(!has_failed(&findings, "TG0106") && !has_failed(&findings, "TG0108"), "{findings:#?}");
    let identity = fix(&findings, "TG0109").to_owned();
    assert_eq!(identity, r#"ALTER TABLE "shop"."nothing" REPLICA IDENTITY DEFAULT"#);
    let publication = fix(&findings, "TG0110").to_owned();
    assert!(publication.starts_with("CREATE PUBLICATION"), "{publication}");
    shop.execute(&format!("{identity}; {publication}")).await;

    let (exit, findings) = doctor(&scene.daemon);
    assert_eq!(exit, Some(0), "{findings:#?}");
    scene.daemon.start();
    scene.daemon.reaches(PIPELINE, "running").await;
}
