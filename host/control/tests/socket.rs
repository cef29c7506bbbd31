//! The router over a real unix socket.

use std::path::Path;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tidegate_api::{BoxFuture, Error, Result, code};
use tidegate_control::status::{Pipeline, Removed, Source, Status};
use tidegate_control::{Act, Envelope, Host, Store};

/// A daemon with one pipeline, which notes what the audit log held when it was asked to act.
struct Noting {
    store: std::path::PathBuf,
    state: Mutex<&'static str>,
    audited: Mutex<Vec<Vec<String>>>,
}

fn audit(folder: &Path) -> Vec<String> {
    let connection = rusqlite::Connection::open(folder.join("control.db")).unwrap();
    let mut statement = connection.prepare("SELECT actor || ' ' || act || ' ' || object || ' ' || outcome FROM audit ORDER BY id").unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

impl Host for Noting {
    fn status(&self) -> Status {
        let state = (*self.state.lock().unwrap()).to_owned();
        let pipeline = Pipeline { name: "all".to_owned(), state, rows: 7, lag_seconds: 0.5, ..Pipeline::default() };
        let source = Source { name: "shop".to_owned(), state: "capturing".to_owned(), retained_bytes: Some(42), ..Source::default() };
        let removed = Removed { name: "old".to_owned(), source: "shop".to_owned(), ..Removed::default() };
        Status { started: true, pipelines: vec![pipeline], sources: vec![source], removed: vec![removed], ..Status::default() }
    }

    fn act<'a>(&'a self, _pipeline: &'a str, act: Act) -> BoxFuture<'a, Result<()>> {
        self.audited.lock().unwrap().push(audit(&self.store));
        Box::pin(async move {
            match act {
                Act::Pause => *self.state.lock().unwrap() = "paused",
                Act::Resume => *self.state.lock().unwrap() = "running",
                Act::Reset => return Err(Error::new(&code::STATE_REFUSED, "reset pipeline").with("state", "stopped")),
            }
            Ok(())
        })
    }

    fn remove<'a>(&'a self, _pipeline: &'a str) -> BoxFuture<'a, Result<()>> {
        self.audited.lock().unwrap().push(audit(&self.store));
        Box::pin(async { Ok(()) })
    }

    fn slots(&self) -> BoxFuture<'_, Vec<Source>> {
        Box::pin(async { self.status().sources })
    }

    fn drop_slot<'a>(&'a self, _source: &'a str) -> BoxFuture<'a, Result<()>> {
        self.audited.lock().unwrap().push(audit(&self.store));
        Box::pin(async { Ok(()) })
    }
}

struct Scene {
    folder: tempfile::TempDir,
    host: Arc<Noting>,
}

impl Scene {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let host = Noting { store: folder.path().to_owned(), state: Mutex::new("running"), audited: Mutex::default() };
        let host = Arc::new(host);
        let store = Arc::new(Store::open(folder.path()).unwrap());
        let router = tidegate_control::router(Arc::clone(&host) as Arc<dyn Host>, store).unwrap();
        let listener = tidegate_control::bind(folder.path()).unwrap();
        tokio::spawn(tidegate_control::serve(listener, router, std::future::pending()));
        Self { folder, host }
    }

    async fn ask(&self, method: Method, path: &str) -> (StatusCode, String) {
        let stream = tidegate_control::connect(self.folder.path()).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = Request::builder().method(method).uri(path).body(Empty::<Bytes>::new()).unwrap();
        let answer = sender.send_request(request).await.unwrap();
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn envelope(&self, method: Method, path: &str) -> (StatusCode, Envelope) {
        let (status, body) = self.ask(method, path).await;
        (status, serde_json::from_str(&body).unwrap())
    }
}

fn me(act: &str) -> String {
    format!("uid {} {act}", rustix::process::getuid().as_raw())
}

#[tokio::test]
async fn an_act_is_in_the_audit_log_before_it_happens_and_its_outcome_behind_it() {
    let scene = Scene::open().await;
    let (status, envelope) = scene.envelope(Method::POST, "/v1/pipelines/all/pause").await;
    assert_eq!((status, envelope.ok, envelope.summary.as_str()), (StatusCode::OK, true, "all is paused"));
    assert_eq!(envelope.result["state"], "paused");
    let (status, envelope) = scene.envelope(Method::POST, "/v1/pipelines/all/reset").await;
    assert_eq!((status, envelope.error.unwrap().code.as_str()), (StatusCode::CONFLICT, "TG0405"));
    let (status, _) = scene.envelope(Method::DELETE, "/v1/slots/shop").await;
    assert_eq!(status, StatusCode::OK);
    let (status, _) = scene.envelope(Method::DELETE, "/v1/pipelines/old").await;
    assert_eq!(status, StatusCode::OK);
    let (status, envelope) = scene.envelope(Method::DELETE, "/v1/pipelines/nobody").await;
    assert_eq!((status, envelope.error.unwrap().code.as_str()), (StatusCode::NOT_FOUND, "TG0015"));

    let lines = [
        me("pipeline pause all begun"),
        me("pipeline pause all done"),
        me("pipeline reset all begun"),
        me("pipeline reset all failed"),
        me("slots drop shop begun"),
        me("slots drop shop done"),
        me("pipeline remove old begun"),
        me("pipeline remove old done"),
    ];
    assert_eq!(*scene.host.audited.lock().unwrap(), [1, 3, 5, 7].map(|begun| lines[..begun].to_vec()));
    assert_eq!(audit(scene.folder.path()), lines);
}

#[tokio::test]
async fn the_audit_log_can_be_neither_changed_nor_shortened() {
    let scene = Scene::open().await;
    scene.ask(Method::POST, "/v1/pipelines/all/pause").await;
    let connection = rusqlite::Connection::open(scene.folder.path().join("control.db")).unwrap();
    for statement in ["DELETE FROM audit", "UPDATE audit SET actor = 'nobody'"] {
        let error = connection.execute(statement, []).unwrap_err();
        assert!(error.to_string().contains("append-only"), "{error}");
    }
}

#[tokio::test]
async fn an_act_without_an_audit_row_does_not_happen() {
    // Invariant 10
    let scene = Scene::open().await;
    let connection = rusqlite::Connection::open(scene.folder.path().join("control.db")).unwrap();
    connection.execute_batch("DROP TABLE audit").unwrap();
    let (status, envelope) = scene.envelope(Method::POST, "/v1/pipelines/all/pause").await;
    assert_eq!((status, envelope.error.unwrap().code.as_str()), (StatusCode::CONFLICT, "TG0701"));
    assert!(scene.host.audited.lock().unwrap().is_empty());
    assert_eq!(scene.host.status().pipelines[0].state, "running");
}

#[tokio::test]
async fn what_does_not_exist_is_named_and_leaves_no_trace() {
    let scene = Scene::open().await;
    for (method, path, status, code) in [
        (Method::POST, "/v1/pipelines/none/pause", StatusCode::NOT_FOUND, "TG0015"),
        (Method::DELETE, "/v1/slots/none", StatusCode::NOT_FOUND, "TG0016"),
        (Method::POST, "/v1/pipelines/all/explode", StatusCode::CONFLICT, "TG0012"),
        (Method::GET, "/v2/status", StatusCode::CONFLICT, "TG0012"),
    ] {
        let (found, envelope) = scene.envelope(method, path).await;
        assert_eq!((found, envelope.error.unwrap().code.as_str()), (status, code), "{path}");
    }
    assert_eq!(audit(scene.folder.path()), Vec::<String>::new());
}

#[tokio::test]
async fn health_and_metrics_follow_the_status() {
    let scene = Scene::open().await;
    assert_eq!(scene.ask(Method::GET, "/livez").await.0, StatusCode::OK);
    assert_eq!(scene.ask(Method::GET, "/startupz").await.0, StatusCode::OK);
    scene.ask(Method::POST, "/v1/pipelines/all/pause").await;
    let (status, body) = scene.ask(Method::GET, "/readyz").await;
    assert_eq!(status, StatusCode::OK);
    assert!(body.contains("degraded"), "{body}");
    *scene.host.state.lock().unwrap() = "faulted";
    let (status, body) = scene.ask(Method::GET, "/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(body.contains("unhealthy"), "{body}");

    let (_, text) = scene.ask(Method::GET, "/metrics").await;
    for line in [
        "tidegate_pipeline_rows_total{outcome=\"applied\",pipeline=\"all\",otel_scope_name=\"tidegate\"} 7",
        "tidegate_pipeline_lag_seconds{pipeline=\"all\",otel_scope_name=\"tidegate\"} 0.5",
        "tidegate_pipeline_state{pipeline=\"all\",state=\"faulted\",otel_scope_name=\"tidegate\"} 1",
        "tidegate_pipeline_state{pipeline=\"all\",state=\"running\",otel_scope_name=\"tidegate\"} 0",
        "tidegate_source_slot_retained_bytes{source=\"shop\",otel_scope_name=\"tidegate\"} 42",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn a_socket_that_a_dead_daemon_left_is_replaced_and_only_its_owner_may_open_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("a-folder-whose-name-is-long".repeat(5));
    std::fs::create_dir(&deep).unwrap();
    drop(tidegate_control::bind(&deep).unwrap());
    let error = tidegate_control::connect(&deep).await.unwrap_err();
    assert_eq!(error.code(), &code::DAEMON_NOT_RUNNING);
    let _listener = tidegate_control::bind(&deep).unwrap();
    tidegate_control::connect(&deep).await.unwrap();
    let mode = std::fs::metadata(deep.join(tidegate_control::SOCKET)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn what_an_operator_decided_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    assert!(!store.paused("all").unwrap());
    store.set_paused("all", true).unwrap();
    store.pin_module("all", "abc").unwrap();
    drop(store);
    let store = Store::open(folder.path()).unwrap();
    assert!(store.paused("all").unwrap());
    assert_eq!(store.module("all").unwrap().as_deref(), Some("abc"));
    assert_eq!(store.module("other").unwrap(), None);
    store.forget("all").unwrap();
    assert_eq!((store.paused("all").unwrap(), store.module("all").unwrap()), (false, None));
}
