//! The inbox: everything in a town that needs a person, as typed rows in one order.

mod item;
mod last_words;
mod order;
mod wait_end;

pub use item::{ChangeSize, InboxContext, InboxItem, InboxKind, InboxObject};
pub use last_words::last_words;
pub use order::arrange_inbox;
pub use wait_end::{ORIGIN_AWAY_MAX, RequestSurroundings, WaitEnd, end_of_request, end_of_wait};
