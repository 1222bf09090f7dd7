//! The server as a client sees it, without any CLI.
#![allow(clippy::unwrap_used, reason = "all of it is tests, also the functions without #[test]")]

mod client;
mod faults;
mod formats;
mod program;
mod rules;
