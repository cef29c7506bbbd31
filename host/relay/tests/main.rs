//! The relay, from outside: on a disk that loses power, fails and fills up, and on the real one.

mod append;
mod capture;
mod corruption;
mod faults;
mod golden;
mod groups;
mod large;
mod model;
mod power_cuts;
mod retention;
mod support;
