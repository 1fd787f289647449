//! A parser of server-sent events that takes the stream in pieces of any size.

/// Longest event that is kept, in bytes; of a longer one nothing is.
const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerEvent {
    /// The id to reconnect with; empty if it has none.
    pub id: String,
    /// The event type; empty for the default type.
    pub kind: String,
    /// The data.
    pub data: String,
}

/// Reads events out of a stream.
#[derive(Debug, Default)]
pub struct ServerEvents {
    /// The beginning of a line.
    line: Vec<u8>,
    /// The last byte was a carriage return, so that a line feed after it belongs to it.
    after_return: bool,
    event: ServerEvent,
    has_data: bool,
    /// The event, or a line of it, is too long.
    is_too_long: bool,
}

impl ServerEvents {
    /// Takes the next bytes of the stream; the events that are complete now.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<ServerEvent> {
        let mut complete = Vec::new();
        for byte in bytes {
            let follows_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if follows_return => {}
                b'\n' | b'\r' => complete.extend(self.end_of_line()),
                _ if self.line.len() >= EVENT_BYTES_MAX => self.is_too_long = true,
                byte => self.line.push(*byte),
            }
        }
        complete
    }

    fn end_of_line(&mut self) -> Option<ServerEvent> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            let is_one = std::mem::take(&mut self.has_data);
            let is_too_long = std::mem::take(&mut self.is_too_long);
            return (is_one && !is_too_long).then_some(event);
        }
        let line = String::from_utf8_lossy(&line);
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" if !value.contains('\0') => value.clone_into(&mut self.event.id),
            "event" => value.clone_into(&mut self.event.kind),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.is_too_long |= self.event.data.len() + value.len() > EVENT_BYTES_MAX;
                if !self.is_too_long {
                    self.event.data.push_str(value);
                }
            }
            // Comments, retry times, and fields of later versions.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event(id: &str, kind: &str, data: &str) -> ServerEvent {
        ServerEvent { id: id.to_owned(), kind: kind.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn events_are_read_and_everything_else_is_left_out() {
        let text = "retry: 2000\n: listening\n\nid: 7\nevent: closed\ndata: {\"a\":1}\n\n: still here\n\n\
                    data:one\r\ndata: two\r\n\r\nid: 9\n\nevent: x\rdata\r\rdata: cut off";
        let expected =
            [event("7", "closed", "{\"a\":1}"), event("", "", "one\ntwo"), event("", "x", "")];
        assert_eq!(ServerEvents::default().feed(text.as_bytes()), expected);
    }

    #[test]
    fn an_event_that_is_too_long_is_left_out_and_the_next_is_not() {
        let line = "x".repeat(EVENT_BYTES_MAX / 2);
        let text = format!("data: {line}\ndata: {line}\n\ndata: {line}{line}{line}\n\ndata: y\n\n");
        assert_eq!(ServerEvents::default().feed(text.as_bytes()), [event("", "", "y")]);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_in_which_pieces_they_come(
            text in "((id|event|data|:)?:? ?[a-zü]{0,3}(\r\n|\n|\r)){0,12}",
            cuts in prop::collection::vec(0_usize..80, 0..6),
        ) {
            let whole = ServerEvents::default().feed(text.as_bytes());
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let mut events = ServerEvents::default();
            let parts: Vec<ServerEvent> =
                cuts.windows(2).flat_map(|cut| events.feed(&text.as_bytes()[cut[0]..cut[1]])).collect();
            prop_assert_eq!(parts, whole);
        }
    }
}
