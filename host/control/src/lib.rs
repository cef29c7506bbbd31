//! The operator's side of the daemon: HTTP on a unix socket, health, metrics, and the audit log.
//!
//! Nothing here moves data. The daemon hands in a [`Host`]; this crate serves it ([`serve`]), writes down every act before
//! it happens ([`Store::audit`], Invariant 10), and remembers between restarts what an operator decided ([`Store`]).
//!
//! # HTTP, version 1
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/status` | pipelines, sources, and what is left of removed pipelines |
//! | `GET /v1/pipelines` | pipelines |
//! | `POST /v1/pipelines/{name}/pause`, `…/resume`, `…/reset` | the pipeline behind the act |
//! | `DELETE /v1/pipelines/{name}` | lets go of what is held for a pipeline that is not configured any more |
//! | `GET /v1/slots` | what each source holds at its server |
//! | `DELETE /v1/slots/{source}` | removes it |
//! | `GET /livez`, `/readyz`, `/startupz` | 200 or 503, with reasons |
//! | `GET /metrics` | Prometheus text |
//!
//! Every answer below `/v1` is one [`Envelope`]. The socket has mode 0600: whoever may open it may do everything. The actor
//! in the audit log is the user id that the kernel names for the peer.

#![deny(missing_docs, unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod envelope;
mod health;
mod host;
mod metrics;
mod router;
mod server;
pub mod status;
mod store;

pub use envelope::{Envelope, Failure};
pub use health::Health;
pub use host::{Act, Host};
pub use metrics::Metrics;
pub use router::router;
pub use server::{SOCKET, bind, connect, serve};
pub use store::{Audit, Store};
