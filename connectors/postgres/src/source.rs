//! PostgreSQL as a source.
