//! The store of modules and the cache of compiled ones.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tidegate_api::code;
use tidegate_builtin_transforms::program_guest;
use tidegate_sandbox::{Sandbox, Settings};

use tidegate_api::Origin;

use crate::support::{WORKER, came, inserts, kept, open, parse, run};

const PROGRAM: &str = r#"{"name":"p","version":"1","instructions":[{"op":"remove","path":"a"}]}"#;

async fn works(modules: &Path) {
    let sandbox = open(modules);
    let module = sandbox.provision_program_guest().unwrap();
    let transform = sandbox.program(parse(PROGRAM), &module).await.unwrap();
    assert_eq!(came(run(&*transform, &inserts([r#"{"a":1}"#])).await), [kept("{}")]);
}

fn compiled(modules: &Path) -> PathBuf {
    let files = fs::read_dir(modules.join("compiled")).unwrap().map(|entry| entry.unwrap().path());
    files.into_iter().find(|path| path.file_name().unwrap().to_string_lossy().contains('-')).unwrap()
}

#[tokio::test]
async fn what_is_in_the_cache_is_not_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    works(folder.path()).await;
    let settings = Settings { modules: folder.path().to_owned(), worker: "/nowhere".into(), threads: None };
    let sandbox = Sandbox::open(settings).unwrap();
    sandbox.program(parse(PROGRAM), program_guest().sha256).await.unwrap();
}

#[tokio::test]
async fn a_compiled_module_that_was_tampered_with_is_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    works(folder.path()).await;
    let file = compiled(folder.path());
    let good = fs::read(&file).unwrap();
    let middle = good.len() / 2;
    let changed = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    for bad in [changed(0), changed(middle), changed(good.len() - 1), good[..middle].to_vec(), Vec::new()] {
        fs::write(&file, bad).unwrap();
        works(folder.path()).await;
        assert!(fs::read(&file).unwrap() == good, "it was put in its place again");
    }
}

#[tokio::test]
async fn a_compiled_module_under_another_key_or_name_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    works(folder.path()).await;
    let file = compiled(folder.path());
    let good = fs::read(&file).unwrap();
    fs::write(folder.path().join("compiled/key"), [7; 32]).unwrap();
    works(folder.path()).await;
    assert!(fs::read(&file).unwrap() != good);
    fs::write(folder.path().join("compiled/key"), b"torn").unwrap();
    works(folder.path()).await;

    let other = crate::guests::add(folder.path(), crate::guests::GIVES_UP);
    let name = file.file_name().unwrap().to_string_lossy().replace(program_guest().sha256, &other);
    fs::copy(&file, file.with_file_name(name)).unwrap();
    let transform = open(folder.path()).program(parse(PROGRAM), &other).await.unwrap();
    assert!(
        transform.begin(1, Origin::default()).chunk(&inserts(["{}"])).await.is_err(),
        "the module that was named runs, not the guest's code"
    );
}

#[tokio::test]
async fn a_torn_module_is_none_and_is_stored_again() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = open(folder.path());
    let digest = sandbox.provision_program_guest().unwrap();
    let file = folder.path().join(&digest);
    for torn in [&program_guest().bytes[..1000], b""] {
        fs::write(&file, torn).unwrap();
        let error = sandbox.program(parse(PROGRAM), &digest).await.err().unwrap();
        assert_eq!(error.code(), &code::MODULE_MISSING);
        assert_eq!(sandbox.provision_program_guest().unwrap(), digest);
        assert!(fs::read(&file).unwrap() == program_guest().bytes);
    }
}

#[tokio::test]
async fn unfinished_files_of_a_killed_process_are_taken_away_when_they_are_old() {
    let folder = tempfile::tempdir().unwrap();
    let (young, old) = (folder.path().join(".module.0123456789abcdef"), folder.path().join(".module.fedcba9876543210"));
    fs::write(&young, b"half").unwrap();
    fs::write(&old, b"half").unwrap();
    let two_hours_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    fs::File::options().write(true).open(&old).unwrap().set_modified(two_hours_ago).unwrap();
    works(folder.path()).await;
    assert_eq!((young.exists(), old.exists()), (true, false));
}

#[tokio::test]
async fn a_module_that_is_not_there_or_no_name_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = open(folder.path());
    for name in ["", "../key", &"0".repeat(64), &"G".repeat(64)] {
        let error = sandbox.program(parse(PROGRAM), name).await.err().unwrap();
        assert_eq!(error.code(), &code::MODULE_MISSING, "{name}");
    }
}

#[tokio::test]
async fn the_folder_and_its_files_are_the_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let modules = folder.path().join("data/modules");
    works(&modules).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&modules), mode(&modules.join("compiled"))), (0o700, 0o700));
    assert_eq!((mode(&modules.join("compiled/key")), mode(&compiled(&modules))), (0o600, 0o600));

    fs::set_permissions(&modules, fs::Permissions::from_mode(0o755)).unwrap();
    works(&modules).await;
    assert_eq!(mode(&modules), 0o700);
}

async fn with_worker(script: &str) -> tidegate_api::Error {
    let folder = tempfile::tempdir().unwrap();
    let worker = folder.path().join("worker");
    fs::write(&worker, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&worker, fs::Permissions::from_mode(0o700)).unwrap();
    let settings = Settings { modules: folder.path().join("modules"), worker, threads: None };
    let sandbox = Sandbox::open(settings).unwrap();
    let module = sandbox.provision_program_guest().unwrap();
    sandbox.program(parse(PROGRAM), &module).await.err().unwrap()
}

#[tokio::test]
async fn a_compiler_that_fails_is_a_named_error() {
    let killed = with_worker("kill -XCPU $$").await;
    assert_eq!(killed.code(), &code::MODULE_COMPILE);
    assert!(killed.message().contains("signal: 24"), "{killed}");
    let failed = with_worker("echo out of memory >&2; exit 3").await;
    assert_eq!(failed.code(), &code::MODULE_COMPILE);
    assert!(failed.message().contains("out of memory"), "{failed}");
    let nonsense = with_worker("cat >/dev/null; echo this is no code").await;
    assert_eq!(nonsense.code(), &code::MODULE_REFUSED);
}

#[tokio::test]
async fn the_worker_keeps_to_its_own_memory_limit() {
    let script = format!("exec {WORKER} compile-worker 20 30000000");
    let error = with_worker(&script).await;
    assert_eq!(error.code(), &code::MODULE_COMPILE);
}
