//! Seeds on both engines, and bugs that were planted to be found.

mod planted;
mod seeds;
