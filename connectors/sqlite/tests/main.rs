//! The suite that every destination passes, and what only a file can show.

mod crashes;
mod files;
mod harness;
mod large;

use harness::Files;

#[tokio::test]
async fn a_sqlite_file_is_a_destination_by_the_suite() {
    let files = Files::new();
    tidegate_conformance::destination::check(&files).await.unwrap();
}
