//! The daemon from outside, and what holds over the whole tree.

mod arrows;
mod bad_input;
mod crash;
mod doctor;
mod examples;
mod fan_out;
mod fault;
mod invariants;
mod operate;
mod outage;
mod poison;
mod rooms;
mod start;
