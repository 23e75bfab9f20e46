//! The server from outside, over real connections.

mod budgets;
mod bytes;
mod cloud;
mod differences;
mod explain;
mod fits;
mod http;
mod lists;
mod native;
mod one_outcome;
mod past;
mod quota;
mod server;
