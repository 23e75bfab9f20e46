//! The candidate engine against an obviously right, slow implementation, and against cases that
//! users of such systems have reported.

mod cases;
mod explain;
mod given_back;
mod limits;
mod names;
mod oracle;
mod random;
mod world;
