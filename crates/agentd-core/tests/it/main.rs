//! Tests of the core against recorded data.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod streams;
