//! From text to records.

mod comments;
mod dependencies;
mod fields;
mod issue;
mod line;
pub(crate) mod values;

pub(crate) use fields::Fields;
pub use issue::Record;
pub use line::{Line, parse_line};
