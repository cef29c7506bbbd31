//! PostgreSQL at both ends: as a source by logical replication, and as a destination with an atomic checkpoint.
//!
//! * [`source`]: committed changes and snapshots of a database as documents, byte for byte what the server's own
//!   `row_to_json` gives. PostgreSQL 15 and later.
//! * [`destination`]: documents and checkpoint in one transaction.
//!
//! Both are reached by a url: `postgres://user:password@host:port/database?sslmode=verify-full&sslrootcert=/path/ca.pem`.
//! Every part may be percent-encoded; a folder as host is a unix socket (`postgres:///db?host=/run/postgresql&user=me`).
//! Parameters are `host port user password dbname sslmode sslrootcert application_name connect_timeout`, with libpq's
//! meaning; without `sslrootcert`, `verify-ca` and `verify-full` trust the public web's authorities. Passwords are asked for
//! by scram-sha-256 (bound to the TLS channel where there is one), md5 or in clear.

#![deny(missing_docs, unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod connect;
pub mod destination;
pub mod source;
