//! Programs, seen from outside.

mod canonical;
mod deletes;
mod differential;
mod documents;
mod duplicates;
mod equality;
mod instructions;
mod limits;
mod model;
mod program_file;
mod schema;
mod shapes;
mod support;
