//! The server from outside, over real connections.

mod differences;
mod http;
mod native;
mod server;
