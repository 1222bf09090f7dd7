//! Tests of the documents as a whole, over the public interface.

#![allow(clippy::unwrap_used, reason = "a test that cannot make its input should fail")]

mod allow;
mod bad_input;
mod check;
mod corpus;
mod docs;
mod example;
mod forecast;
mod hand_written;
mod headings;
mod journal;
mod languages;
mod merge;
mod phases;
mod prompts;
mod records;
mod renames;
mod reviews;
mod round_trip;
mod rules;
mod states;
mod streams;
mod walks;
