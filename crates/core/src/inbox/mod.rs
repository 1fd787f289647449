//! The inbox: everything in a town that needs a person, as typed rows in one order.

mod item;
mod last_words;
mod order;
mod request_kind;

pub use item::{ChangeSize, InboxContext, InboxItem, InboxKind, InboxObject};
pub use last_words::last_words;
pub use order::arrange_inbox;
pub use request_kind::{ORIGIN_AWAY_MAX, RequestSurroundings, inbox_kind_of};
