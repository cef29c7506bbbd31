//! Both sides of a frame, against the golden bytes and against hostile ones.

mod golden;
mod hostile;
