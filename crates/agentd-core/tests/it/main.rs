//! Tests of the documents as a whole, over the public interface.

mod corpus;
mod hand_written;
mod round_trip;
