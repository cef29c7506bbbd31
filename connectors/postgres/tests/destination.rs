//! PostgreSQL as a destination: the suite that every destination passes, and what only a server can show.

mod crashes;
mod harness;
mod large;
mod refusals;
mod tables;

use harness::Server;
use tidegate_testkit::Version;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgresql_15_is_a_destination_by_the_suite() {
    let server = Server::shared(Version::V15).await;
    tidegate_conformance::destination::check(&server).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgresql_18_is_a_destination_by_the_suite() {
    let server = Server::shared(Version::V18).await;
    tidegate_conformance::destination::check(&server).await.unwrap();
}
