//! Whatever is wrong is refused with a code, an exit code and a way out, and nothing is touched.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tidegate_system_tests::config::Config;
use tidegate_system_tests::daemon::{envelope, for_ever_unless, text, tidegate};
use tidegate_system_tests::{Daemon, Kind, PIPELINE, Scene, Shop, Target};
use tidegate_testkit::{Postgres, Version};

const ENVIRONMENT: Option<i32> = Some(3);

/// What `validate` says of a configuration file: exit code, and the error.
fn validate(folder: &Path, yaml: &str) -> (Option<i32>, Value) {
    let path = folder.join("tidegate.yaml");
    fs::write(&path, yaml).unwrap();
    let output = tidegate(&["validate", "--json", "-c", &path.to_string_lossy()]);
    (output.status.code(), envelope(&output)["error"].take())
}

const YAML: &str = "\
version: 1
data_dir: ./data
sources:
  shop: {kind: file, path: ./shop.ndjson}
relay: {kind: files}
pipelines:
  all:
    source: shop
    tables: [public.orders]
    transform: []
    destination: {kind: sqlite, path: ./out.db}
";

#[test]
fn what_is_wrong_with_a_configuration_is_told_with_line_column_and_path() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(validate(folder.path(), YAML), (Some(0), Value::Null));
    let wrong = [
        ("an unknown key", "source: shop", "source: shop\n    tabels: [public.orders]", "TG0002", "tabels"),
        ("a key twice", "source: shop", "source: shop\n    source: shop", "TG0002", "source"),
        ("a reference to nothing", "source: shop", "source: shpo", "TG0004", "shpo"),
        ("a wrong unit", "source: shop", "source: shop\n    max_transaction: {rows: 10, bytes: 5 parsecs}", "TG0003", "bytes"),
        ("a limit of 0", "source: shop", "source: shop\n    max_transaction: {rows: 0}", "TG0003", "rows"),
        ("a collection twice", "source: shop", "source: shop\n    collections: [archive, archive]", "TG0003", "collections[1]"),
        ("a table's own collection", "source: shop", "source: shop\n    collections: [public.orders]", "TG0003", "collections[0]"),
        ("a value of another kind", "tables: [public.orders]", "tables: 7", "TG0002", "tables"),
        ("a table name that is none", "[public.orders]", "[orders]", "TG0003", "tables"),
        ("a stage of a later release", "transform: []", "transform: [{filter: \"$.a\"}]", "TG0309", "filter"),
        ("a secret that is not there", "path: ./out.db", "path: \"${env:TIDEGATE_TEST_NOT_SET}\"", "TG0005", "TIDEGATE_TEST_NOT_SET"),
        ("a version of the future", "version: 1", "version: 2", "TG0006", "version"),
        ("a program that is not there", "transform: []", "transform: [{program: ./none.json}]", "TG0301", "none.json"),
        ("text that is no YAML", "version: 1", "version: [", "TG0002", "line"),
    ];
    for (what, from, to, code, named) in wrong {
        let (exit, error) = validate(folder.path(), &YAML.replacen(from, to, 1));
        assert_eq!(error["code"], code, "{what}: {error}");
        assert!(matches!(exit, Some(2 | 3)), "{what}: exit code {exit:?}");
        assert!(error.to_string().contains(named), "{what} does not name {named}: {error}");
    }
}

#[test]
fn what_is_wrong_with_a_program_is_told_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program.json");
    let wrong = [
        ("no JSON", "{", "TG0302", ""),
        ("an unknown op", r#"{"name":"a","version":"1","instructions":[{"op":"jump","path":"a"}]}"#, "TG0303", "$.instructions[0].op"),
        (
            "an empty segment",
            r#"{"name":"a","version":"1","instructions":[{"op":"remove","path":"a..b"}]}"#,
            "TG0303",
            "$.instructions[0].path",
        ),
        (
            "a limit of 0",
            r#"{"name":"a","version":"1","limits":{"depth":0},"instructions":[{"op":"remove","path":"a"}]}"#,
            "TG0303",
            "$.limits.depth",
        ),
        ("no instruction", r#"{"name":"a","version":"1","instructions":[]}"#, "TG0303", "$.instructions"),
    ];
    for (what, program, code, place) in wrong {
        fs::write(&path, program).unwrap();
        let output = tidegate(&["transform", "fingerprint", &path.to_string_lossy()]);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{what}: {error}");
        assert!(output.stdout.is_empty() && error.contains(code) && error.contains(place), "{what}: {error}");
    }
}

#[test]
fn a_wrong_command_line_exits_with_2() {
    for arguments in [&["rnu"][..], &["pipeline"], &["validate", "--colour"]] {
        let output = tidegate(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains("TG0007"), "{}", text(&output.stderr));
    }
}

/// A daemon that must refuse to start: with which code, and a text that names the way out.
fn refuses(scene: &mut Scene, config: &Config, code: &str, fix: &str) {
    let mut daemon = Daemon::new(&config.write(scene.path()));
    daemon.start();
    assert_eq!(daemon.wait().code(), ENVIRONMENT, "{code}\n{}", daemon.log());
    assert!(daemon.log().contains(code) && daemon.log().contains(fix), "{code}, {fix}\n{}", daemon.log());
    let doctor = daemon.cli(&["doctor", "--json"]);
    assert_eq!(doctor.status.code(), ENVIRONMENT, "doctor: {}", text(&doctor.stdout));
    assert!(text(&doctor.stdout).contains(code), "doctor: {}", text(&doctor.stdout));
}

#[tokio::test]
async fn a_source_that_cannot_be_used_is_refused_before_anything_is_made_there() {
    let mut scene = Scene::plain(Kind::Sqlite, 10).await;
    let shop = scene.shop.clone();
    shop.execute("CREATE TABLE shop.keyless (a int); CREATE ROLE weak LOGIN; GRANT USAGE ON SCHEMA shop TO weak").await;
    shop.execute("CREATE ROLE guarded LOGIN REPLICATION PASSWORD 'right'").await;
    let of = |url: &str, tables: &[&str]| Config::new(scene.path()).source_at(&shop, url).pipeline(PIPELINE, tables, None, &scene.target);
    let weak = shop.server.url_as("weak", &shop.database);
    let wrong_password = shop.server.url_as("guarded:wrong", &shop.database);
    let cases = [
        (of(&shop.url(), &["shop.keyless"]), "TG0109", "PRIMARY KEY"),
        (of(&shop.url(), &["shop.missing"]), "TG0107", "shop.missing"),
        (of(&weak, &["shop.orders"]), "TG0106", "ALTER ROLE"),
        (of(&wrong_password, &["shop.orders"]), "TG0102", "password"),
    ];
    for (config, code, fix) in cases {
        refuses(&mut scene, &config, code, fix);
        let made = "SELECT (SELECT count(*) FROM pg_publication) + (SELECT count(*) FROM pg_replication_slots WHERE database = current_database())";
        assert_eq!(shop.server.value(&shop.database, made).await, "0", "{code}: something was made at the source");
    }
}

#[tokio::test]
async fn a_publication_that_the_role_may_not_mend_is_named_with_the_statement_that_mends_it() {
    let mut scene = Scene::plain(Kind::Sqlite, 10).await;
    let shop = scene.shop.clone();
    let role = Postgres::unique("reader");
    shop.execute(&format!(
        "CREATE ROLE {role} LOGIN REPLICATION; GRANT USAGE ON SCHEMA shop TO {role}; GRANT SELECT ON ALL TABLES IN SCHEMA shop TO {role}"
    ))
    .await;
    let url = shop.server.url_as(&role, &shop.database);
    let config = Config::new(scene.path()).source_at(&shop, &url).pipeline(PIPELINE, &Shop::TABLES, None, &scene.target);
    refuses(&mut scene, &config, "TG0110", "CREATE PUBLICATION");
    shop.execute("CREATE PUBLICATION tg_pub FOR TABLE shop.orders").await;
    refuses(&mut scene, &config, "TG0111", "ALTER PUBLICATION");
    shop.execute("ALTER PUBLICATION tg_pub ADD TABLE shop.ledger, shop.side, shop.marker").await;
    shop.execute("ALTER PUBLICATION tg_pub SET (publish = 'insert, update')").await;
    refuses(&mut scene, &config, "TG0112", "ALTER PUBLICATION");
    shop.execute("ALTER PUBLICATION tg_pub SET (publish = 'insert, update, delete, truncate')").await;
    scene.configure(&config);
    scene.daemon.start();
    scene.assert_equal().await;
}

#[tokio::test]
async fn a_server_without_logical_wal_is_refused_with_the_statement_that_mends_it() {
    let server: &'static Postgres = Box::leak(Box::new(Postgres::start_with(Version::V15, &[("wal_level", "replica")])));
    let mut scene = Scene::plain(Kind::Sqlite, 10).await;
    let shop = Shop::create(server, 10).await;
    let config = Config::new(scene.path()).source(&shop).pipeline(PIPELINE, &Shop::TABLES, None, &scene.target);
    refuses(&mut scene, &config, "TG0104", "ALTER SYSTEM SET wal_level");
    server.stop();
}

#[tokio::test]
async fn a_slot_in_use_is_waited_for_and_a_foreign_one_never_taken() {
    let mut scene = Scene::plain(Kind::Sqlite, 10).await;
    scene.daemon.start();
    scene.assert_equal().await;
    assert_eq!(scene.daemon.terminate(), Some(0));
    let (twin, stranger) = (scene.path().join("twin"), scene.path().join("stranger"));
    fs::create_dir(&twin).unwrap();
    fs::create_dir(&stranger).unwrap();
    let copied = std::process::Command::new("cp").arg("-a").arg(scene.path().join("data")).arg(&twin).status();
    assert!(copied.is_ok_and(|status| status.success()));
    scene.daemon.start();
    scene.assert_equal().await;
    // The twin knows the slot and waits for it, until its reader has confirmed more than the twin holds; the stranger has never
    // seen it.
    for (folder, codes) in [(&twin, &["TG0113", "TG0120"][..]), (&stranger, &["TG0120"])] {
        let target = Target::Sqlite(folder.join("out.db"));
        let config = Config::new(folder).source(&scene.shop).pipeline(PIPELINE, &Shop::TABLES, None, &target);
        let mut other = Daemon::new(&config.write(folder));
        other.start();
        for_ever_unless(&mut other, &format!("one of {codes:?} is told"), async |daemon| {
            let output = daemon.cli(&["status", "--json"]);
            let status: Value = serde_json::from_slice(&output.stdout).ok()?;
            codes.iter().any(|code| status["result"]["sources"][0]["error"]["code"] == **code).then_some(())
        })
        .await;
        scene.assert_equal().await;
    }
}

#[tokio::test]
async fn a_destination_that_cannot_be_written_is_refused() {
    let scene = Scene::plain(Kind::Sqlite, 10).await;
    let shop = scene.shop.clone();
    let target = Target::Sqlite(scene.path().join("no-such-folder/out.db"));
    let config = Config::new(scene.path()).source(&shop).pipeline(PIPELINE, &Shop::TABLES, None, &target);
    let mut daemon = Daemon::new(&config.write(scene.path()));
    let doctor = daemon.cli(&["doctor", "--json"]);
    assert_eq!(doctor.status.code(), ENVIRONMENT);
    assert!(text(&doctor.stdout).contains("TG05"), "{}", text(&doctor.stdout));
    daemon.start();
    assert_eq!(daemon.wait().code(), ENVIRONMENT, "{}", daemon.log());
}
