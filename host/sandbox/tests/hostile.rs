//! Guests that do not keep to the contract: a named error, never a wrong document.

use tidegate_api::Origin;

use crate::guests;
use crate::support::{inserts, open, parse};

const PROGRAM: &str = r#"{"name":"p","version":"1","instructions":[{"op":"remove","path":"a"}]}"#;

#[tokio::test]
async fn a_guest_that_breaks_the_contract_stops_the_pipeline() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = open(folder.path());
    let broken = [
        (guests::GIVES_UP, "unreachable"),
        (guests::ANSWERS_NOTHING, "it ends too early"),
        (guests::ANSWERS_NONSENSE, "a kept upsert has a document"),
        (guests::POINTS_OUTSIDE, "out of bounds"),
    ];
    for (body, why) in broken {
        let module = guests::add(folder.path(), body);
        let transform = sandbox.program(parse(PROGRAM), &module).await.unwrap();
        let error = transform.begin(1, Origin::default()).chunk(&inserts(["{}"])).await.unwrap_err();
        assert_eq!(error.code(), &tidegate_api::code::SANDBOX_FAILED);
        assert!(!error.is_transient());
        assert!(error.message().contains(why), "{error}");
    }
}

#[tokio::test]
async fn a_guest_that_does_not_take_the_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = open(folder.path());
    let module = guests::put(folder.path(), &guests::picky());
    let error = sandbox.program(parse(PROGRAM), &module).await.err().unwrap();
    assert_eq!(error.code(), &tidegate_api::code::MODULE_REFUSED);
    assert!(error.message().contains("not today"), "{error}");
}

#[tokio::test]
async fn a_module_that_imports_or_does_not_export_the_interface_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = open(folder.path());
    let clock = r#"(import "wasi:clocks/wall-clock@0.2.0" (instance))"#;
    let imports = guests::framed(clock, guests::GIVES_UP, "", guests::INTERFACE);
    let other = guests::framed("", guests::GIVES_UP, "", "tidegate:transform/frames@2.0.0");
    let core = wat::parse_str("(module)").unwrap();
    for (module, why) in [(imports, "wasi:clocks"), (other, guests::INTERFACE), (core, "component"), (b"no module".to_vec(), "")] {
        let module = guests::put(folder.path(), &module);
        let error = sandbox.program(parse(PROGRAM), &module).await.err().unwrap();
        assert_eq!(error.code(), &tidegate_api::code::MODULE_REFUSED, "{error}");
        assert!(error.message().contains(why), "{error}");
    }
}

#[tokio::test]
async fn a_module_with_features_that_differ_between_machines_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = open(folder.path());
    for body in [
        "(drop (i32x4.relaxed_trunc_f32x4_s (v128.const i32x4 0 0 0 0))) (i32.const 32)",
        "(drop (i32.atomic.load (i32.const 0))) (i32.const 32)",
        "(return_call 0 (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))",
    ] {
        let module = guests::add(folder.path(), body);
        let error = sandbox.program(parse(PROGRAM), &module).await.err().unwrap();
        assert_eq!(error.code(), &tidegate_api::code::MODULE_REFUSED, "{error}");
    }
}
