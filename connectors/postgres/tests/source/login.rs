//! Ways to a server: passwords, TLS, sockets; and what a refusal is called.

use std::process::Command;

use tidegate_api::{Resume, Source as _, code};
use tidegate_testkit::{Postgres, Version};

use super::{Reader, Scene, source};

/// Opens a source by this url and reads one row through both of its sessions.
async fn works(server: &Postgres, database: &str, url: &str, slot: &str) -> Result<(), tidegate_api::Error> {
    let source = source(url, slot, &[]);
    let tables = ["public.t".parse().unwrap()];
    let mut reader = Reader::new(source.open(&Resume::New, &tables).await?);
    server.execute(database, "INSERT INTO t SELECT coalesce(max(id), 0) + 1 FROM t").await;
    reader.until(|reader| reader.transactions == 1).await;
    drop(reader);
    source.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_of_every_method_and_unix_sockets_log_in() {
    let scene = Scene::new(Version::V15, "CREATE TABLE t (id int PRIMARY KEY)").await;
    let (server, database) = (scene.server, scene.database.as_str());
    scene.execute("CREATE ROLE guarded LOGIN SUPERUSER PASSWORD 'p@ss/w:rd é'").await;
    works(server, database, &server.url_as("guarded:p%40ss%2Fw%3Ard%20%C3%A9", database), database).await.unwrap();
    let folder = server.socket_folder().display();
    works(server, database, &format!("postgres:///{database}?host={folder}&user=postgres&port={}", server.port()), database).await.unwrap();
    for (url, secret) in [(server.url_as("guarded:wrong-3f9a", database), "wrong-3f9a"), (server.url_as("guarded", database), "guarded:")] {
        let error = works(server, database, &url, database).await.unwrap_err();
        assert_eq!((error.code(), error.is_transient()), (&code::SOURCE_AUTHENTICATION, false), "{error}");
        assert!(!format!("{error:?}").contains(secret), "{error:?}");
    }
    let error = works(server, database, &server.url("no_such_database"), database).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), (&code::SOURCE_AUTHENTICATION, false), "{error}");
    scene.execute("DROP ROLE guarded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_may_not_replicate_and_a_server_that_is_away_have_their_names() {
    let scene = Scene::new(Version::V15, "CREATE TABLE t (id int PRIMARY KEY)").await;
    let role = scene.database.as_str();
    scene.execute(&format!("CREATE ROLE {role} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")).await;
    let error = works(scene.server, &scene.database, &scene.server.url_as(role, &scene.database), &scene.database).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), (&code::REPLICATION_RIGHT, false), "{error}");
    scene.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    let port = tidegate_testkit::postgres::free_port();
    let error = works(scene.server, &scene.database, &format!("postgres://postgres@127.0.0.1:{port}/x"), "x").await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), (&code::SOURCE_UNREACHABLE, true), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_as_trusted_as_sslmode_asks_for_and_binds_the_password() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let openssl = |arguments: &[&str]| {
        let done =
            Command::new("openssl").args(arguments).current_dir(folder.path()).output().expect("openssl is there: apt-get install openssl");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    openssl(&[
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=test ca",
        "-keyout",
        "ca.key",
        "-out",
        "ca.pem",
    ]);
    openssl(&["req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr"]);
    std::fs::write(path("ext"), "subjectAltName=DNS:localhost\n").unwrap();
    openssl(&[
        "x509",
        "-req",
        "-in",
        "server.csr",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-days",
        "2",
        "-sha384",
        "-extfile",
        "ext",
        "-out",
        "server.pem",
    ]);
    let server = Postgres::start(Version::V15);
    for name in ["server.key", "server.pem"] {
        let content = std::fs::read_to_string(path(name)).unwrap();
        let copy = format!(
            "COPY (SELECT unnest(string_to_array($t${content}$t$, E'\\n'))) TO PROGRAM 'cat > {0}/{name}; chmod 600 {0}/{name}'",
            server.socket_folder().display()
        );
        server.execute("postgres", &copy).await;
    }
    let folder_of_server = server.socket_folder().display().to_string();
    server.execute("postgres", &format!("ALTER SYSTEM SET ssl_cert_file = '{folder_of_server}/server.pem'")).await;
    server.execute("postgres", &format!("ALTER SYSTEM SET ssl_key_file = '{folder_of_server}/server.key'")).await;
    server.execute("postgres", "ALTER SYSTEM SET ssl = on").await;
    server.execute("postgres", "CREATE ROLE guarded LOGIN SUPERUSER PASSWORD 'secret'").await;
    server.restart();
    let database = server.create_database("tls").await;
    server.execute(&database, "CREATE TABLE t (id int PRIMARY KEY)").await;

    let ca = path("ca.pem").display().to_string();
    let url = |host: &str, options: &str| format!("postgres://guarded:secret@{host}:{}/{database}?{options}", server.port());
    for (host, options) in [
        ("127.0.0.1", "sslmode=disable".to_owned()),
        ("127.0.0.1", "sslmode=prefer".to_owned()),
        ("127.0.0.1", "sslmode=require".to_owned()),
        ("127.0.0.1", format!("sslmode=verify-ca&sslrootcert={ca}")),
        ("localhost", format!("sslmode=verify-full&sslrootcert={ca}")),
    ] {
        works(&server, &database, &url(host, &options), "tls").await.unwrap_or_else(|error| panic!("{options}: {error:?}"));
    }
    for (host, options) in [
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={ca}")),
        ("localhost", "sslmode=verify-full".to_owned()),
        ("localhost", "sslmode=verify-ca&sslrootcert=system".to_owned()),
    ] {
        let error = works(&server, &database, &url(host, &options), "tls").await.unwrap_err();
        assert_eq!((error.code(), error.is_transient()), (&code::SOURCE_TLS, false), "{options}: {error}");
    }
    let encrypted = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'tidegate'";
    let source = source(&url("localhost", "sslmode=require"), "tls", &[]);
    let reader = Reader::new(source.open(&Resume::New, &["public.t".parse().unwrap()]).await.unwrap());
    assert_eq!(server.value(&database, encrypted).await, "t");
    drop(reader);
    let plain = Postgres::shared(Version::V15);
    let error = works(plain, "postgres", &format!("{}?sslmode=require", plain.url("postgres")), "tls").await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), (&code::SOURCE_TLS, false), "{error}");
}
