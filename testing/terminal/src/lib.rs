//! A terminal of its own for a program under test, and pictures of what is seen on it.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "this is part of tests: what goes wrong here fails the test that asked for it"
)]

mod pty;
mod screen;
mod svg;

pub use pty::{CTRL_C, DOWN, Terminal};
pub use screen::{Recording, Row, Run, Shown, Style, at_last};
pub use svg::{COLUMNS, picture};
