//! The server from outside, over real connections.

mod cloud;
mod differences;
mod explain;
mod http;
mod native;
mod server;
