//! The doctor names everything that is wrong, with its code and the statement that mends it.

use tidegate_api::{Code, Finding, Severity, Source as _, code};
use tidegate_testkit::{Postgres, Version};

use super::{Scene, source};

fn found<'a>(findings: &'a [Finding], code: &'static Code) -> &'a Finding {
    findings.iter().find(|finding| finding.code == Some(code)).unwrap_or_else(|| panic!("no {code} in {findings:#?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_source_has_nothing_but_the_warnings_of_its_server() {
    let scene = Scene::new(Version::V15, "CREATE TABLE t (id int PRIMARY KEY)").await;
    drop(scene.open().await);
    let findings = scene.source.preflight(&scene.tables).await.unwrap();
    let wrong: Vec<_> =
        findings.iter().filter(|finding| finding.severity != Severity::Passed).map(|finding| finding.code.unwrap().name).collect();
    assert_eq!(wrong, ["wal-keep-unlimited"]);
    assert!(findings.iter().any(|finding| finding.subject == "table public.t" && finding.detail == "key (id)"), "{findings:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_table_that_is_wrong_is_named_with_its_statement() {
    let mut scene = Scene::new(
        Version::V15,
        "CREATE TABLE keyless (a int); CREATE UNLOGGED TABLE fast (id int PRIMARY KEY); CREATE TABLE big (id int PRIMARY KEY, t text);
         CREATE TABLE own (id int PRIMARY KEY, t text); CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id)",
    )
    .await;
    scene.tables.extend(["public.nowhere", "public.parted"].map(|name| name.parse().unwrap()));
    let findings = scene.source.preflight(&scene.tables).await.unwrap();
    let of =
        |table: &str| findings.iter().filter(|finding| finding.subject.starts_with(&format!("table public.{table}"))).collect::<Vec<_>>();
    assert_eq!(of("keyless")[0].code, Some(&code::TABLE_WITHOUT_KEY));
    assert!(of("fast")[0].fix.as_deref().unwrap().contains("SET LOGGED"));
    assert_eq!((of("nowhere")[0].code, of("parted")[0].code), (Some(&code::TABLE_MISSING), Some(&code::TABLE_MISSING)));
    let risk = of("big")[1];
    assert_eq!((risk.code, risk.severity), (Some(&code::UNCHANGED_TOAST), Severity::Warning));
    assert!(risk.fix.as_deref().unwrap().contains(r#"ALTER TABLE "public"."big" REPLICA IDENTITY FULL"#), "{risk:?}");
    let publication = found(&findings, &code::PUBLICATION_MISSING);
    assert!(publication.fix.as_deref().unwrap().starts_with("CREATE PUBLICATION"), "{publication:?}");
    assert_eq!(scene.value("SELECT count(*) FROM pg_publication").await, "0", "the doctor changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_identity_is_not_advised_where_it_would_break_updates() {
    let scene = Scene::new(Version::V18, "CREATE TABLE g (id int PRIMARY KEY, t text, u text GENERATED ALWAYS AS (t || 'x') STORED)").await;
    let findings = scene.source.preflight(&scene.tables).await.unwrap();
    let risk = found(&findings, &code::UNCHANGED_TOAST);
    assert!(!risk.fix.as_deref().unwrap().contains("FULL"), "{risk:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_rights_are_named_with_the_grant() {
    let scene = Scene::new(
        Version::V15,
        "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE r (id int PRIMARY KEY); ALTER TABLE r ENABLE ROW LEVEL SECURITY",
    )
    .await;
    let role = scene.database.as_str();
    scene.execute(&format!("CREATE ROLE {role} LOGIN; GRANT SELECT ON r TO {role}")).await;
    let restricted = source(&scene.server.url_as(role, &scene.database), &scene.database, &[]);
    let findings = restricted.preflight(&scene.tables).await.unwrap();
    assert!(
        found(&findings, &code::REPLICATION_RIGHT).fix.as_deref().unwrap().contains(&format!("ALTER ROLE {role} REPLICATION")),
        "{findings:#?}"
    );
    let rights: Vec<_> =
        findings.iter().filter(|finding| finding.code == Some(&code::TABLE_RIGHT)).map(|finding| finding.fix.clone().unwrap()).collect();
    assert!(rights.iter().any(|fix| fix.contains(r#"GRANT SELECT ON "public"."t""#)), "{rights:?}");
    assert!(rights.iter().any(|fix| fix.contains("BYPASSRLS")), "{rights:?}");
    scene.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_logical_wal_free_slots_or_utf_8_is_named() {
    let server = Postgres::start_with(
        Version::V15,
        &[("wal_level", "replica"), ("max_replication_slots", "1"), ("max_wal_senders", "1"), ("max_slot_wal_keep_size", "1GB")],
    );
    let database = server.create_database_with("ascii", "ENCODING 'SQL_ASCII' LOCALE 'C'").await;
    server.execute(&database, "CREATE TABLE t (id int PRIMARY KEY)").await;
    let source = source(&server.url(&database), "doctor", &[]);
    let tables = ["public.t".parse().unwrap()];
    let findings = source.preflight(&tables).await.unwrap();
    for code in [&code::WAL_LEVEL, &code::SLOTS_EXHAUSTED, &code::WALSENDERS_EXHAUSTED, &code::ENCODING] {
        assert_eq!(found(&findings, code).severity, Severity::Failed, "{findings:#?}");
    }
    let Err(error) = source.open(&tidegate_api::Resume::New, &tables).await else { panic!("the source was opened") };
    assert_eq!((error.code(), error.is_transient()), (&code::WAL_LEVEL, false));
    assert!(error.to_string().contains("wal_level"), "{error}");
}
