//! Deletes: they run no instruction.

use tidegate_program::{Executor, Input, InputKind, Spent, Verdict};

use crate::support::{executor, remove, require, route};

fn run(executor: &mut Executor, kind: InputKind, partition_key: Option<&str>) -> &'static str {
    let input = Input { kind, document: b"not looked at", partition_key, content_type: None };
    let mut out = Vec::new();
    let verdict = executor.run(&input, &mut out);
    assert!(out.is_empty());
    match verdict {
        Verdict::Keep { partition_key: None } => "keep",
        Verdict::Poison { kind, .. } => kind,
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_a_route_they_pass_untouched_and_spend_nothing() {
    let mut executor = executor("", &format!("{},{}", remove("a"), require("k", "1")));
    for key in [None, Some(""), Some("p")] {
        assert_eq!(run(&mut executor, InputKind::Delete, key), "keep");
        assert_eq!(run(&mut executor, InputKind::DeleteCollection, key), "keep");
    }
    assert_eq!(executor.spent(), Spent::default());
}

#[test]
fn with_a_route_a_delete_needs_a_partition_key() {
    let mut executor = executor("", &format!("{},{}", require("k", "1"), route("t")));
    assert_eq!(run(&mut executor, InputKind::Delete, Some("acme")), "keep");
    for blank in [None, Some(""), Some(" \u{3000}")] {
        assert_eq!(run(&mut executor, InputKind::Delete, blank), "delete-without-partition");
    }
}

#[test]
fn with_a_route_a_collection_is_never_deleted() {
    for members in ["", r#""require_partitioned_deletes":false,"#] {
        let mut executor = executor(members, &route("t"));
        for key in [None, Some("acme")] {
            assert_eq!(run(&mut executor, InputKind::DeleteCollection, key), "collection-delete-with-route");
        }
    }
}

#[test]
fn partitioned_deletes_need_not_be_required() {
    let mut executor = executor(r#""require_partitioned_deletes":false,"#, &route("t"));
    for key in [None, Some(""), Some("acme")] {
        assert_eq!(run(&mut executor, InputKind::Delete, key), "keep");
    }
}
