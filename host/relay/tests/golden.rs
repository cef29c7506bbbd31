//! Files of format 1, byte for byte.

use std::path::Path;
use std::sync::Arc;

use tidegate_api::Captured;
use tidegate_relay::{Log, RealDisk, Relay};

use crate::support::*;

fn history() -> Vec<Vec<Captured>> {
    let whole = large(0x16_B374_D848, 2, 2, 10);
    vec![
        vec![transaction(0x16_0000_0001, 1), idle(0x16_0000_0002)],
        whole[..1].to_vec(),
        whole[1..].to_vec(),
        vec![transaction(0x16_B374_D900, 40)],
        vec![transaction(0x16_B374_DA00, 0)],
    ]
}

fn open(folder: &Path) -> Arc<Log> {
    let log = Relay::open(folder, Arc::new(RealDisk), options()).unwrap().log(SOURCE).unwrap();
    if log.identity().is_none() {
        log.created(&identity()).unwrap();
        log.group("a").unwrap();
    }
    log
}

fn golden() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

const NAMES: [&str; 2] = ["0000000000000001-0000000000000001.segment", "0000000000000001-0000000000000002.segment"];

#[tokio::test]
async fn what_is_written_is_format_1() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path());
    for group in history() {
        log.append(group).await.unwrap();
    }
    for name in NAMES {
        let written = std::fs::read(folder.path().join(SOURCE).join(name)).unwrap();
        if std::env::var_os("WRITE_GOLDEN").is_some() {
            std::fs::write(golden().join(name), &written).unwrap();
        }
        assert!(written == std::fs::read(golden().join(name)).unwrap(), "{name} differs");
    }
}

#[tokio::test]
async fn files_of_format_1_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    for name in NAMES {
        std::fs::copy(golden().join(name), folder.path().join(SOURCE).join(name)).unwrap();
    }
    let log = open(folder.path());
    assert_eq!(durable(&log), 0x16_B374_DA00);
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    let all: Vec<Captured> = history().into_iter().flatten().collect();
    assert_eq!(read_through(&mut lease, 0x16_B374_DA00).await, held(&all));
}
