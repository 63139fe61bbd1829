//! Frames: a `Content-Length` header and that many bytes of JSON, cut from a byte stream without any I/O.

use std::fmt;

use bytes::{Buf, BufMut, BytesMut};
use serde_json::Value;
use tokio_util::codec::{Decoder, Encoder};

use super::Message;

/// The largest frame that is read; debugpy's own limit.
pub const MAX_INCOMING: usize = 16 * 1024 * 1024;
/// The largest frame that is written; delve's own limit.
pub const MAX_OUTGOING: usize = 4 * 1024 * 1024;
/// The largest header block.
const MAX_HEADER: usize = 4 * 1024;

/// Turns bytes into messages and back. Holds no more than one frame's header.
#[derive(Debug, Default)]
pub struct Codec {
    /// The body length of the frame being read.
    expected: Option<usize>,
    /// Numbers of outgoing messages that have none of their own.
    sent: i64,
}

/// Why a stream can't be read on. After any of these the stream is not to be trusted.
#[derive(Debug)]
pub enum FrameError {
    Header(String),
    TooLarge(usize),
    Json(String),
    Io(std::io::Error),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(text) => write!(f, "the adapter sent what is no frame: {text}"),
            Self::TooLarge(size) => write!(f, "a frame of {size} bytes is over the limit"),
            Self::Json(text) => write!(f, "a frame holds no valid message: {text}"),
            Self::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for FrameError {}

impl From<std::io::Error> for FrameError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl Decoder for Codec {
    type Item = Message;
    type Error = FrameError;

    fn decode(&mut self, bytes: &mut BytesMut) -> Result<Option<Message>, FrameError> {
        loop {
            let length = match self.expected {
                Some(length) => length,
                None => match read_header(bytes)? {
                    Some(length) => {
                        self.expected = Some(length);
                        length
                    }
                    None => return Ok(None),
                },
            };
            if bytes.len() < length {
                return Ok(None);
            }
            self.expected = None;
            let body = bytes.split_to(length);
            // serde_json refuses nesting beyond 128 levels by itself.
            let json: Value = serde_json::from_slice(&body).map_err(|error| FrameError::Json(error.to_string()))?;
            if let Some(message) = Message::from_json(json) {
                return Ok(Some(message));
            }
            // JSON, but no message of the protocol: skipped, as a newer protocol may have kinds unknown here.
        }
    }
}

/// Takes a header block off the front. None when it is not complete yet.
fn read_header(bytes: &mut BytesMut) -> Result<Option<usize>, FrameError> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        // Nothing of a header is longer than this, and text without one is no adapter.
        let looks_wrong =
            bytes.len() > MAX_HEADER || !b"Content-".iter().zip(bytes.iter()).all(|(a, b)| a.eq_ignore_ascii_case(b));
        return if looks_wrong { Err(FrameError::Header(excerpt(bytes))) } else { Ok(None) };
    };
    if end > MAX_HEADER {
        return Err(FrameError::Header(excerpt(bytes)));
    }
    let mut length = None;
    let head = bytes.split_to(end);
    bytes.advance(4);
    for line in head.as_ref().split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        let Some((name, value)) = line.trim().split_once(':') else {
            return Err(FrameError::Header(excerpt(&head[..])));
        };
        if name.trim().eq_ignore_ascii_case("content-length") {
            length = value.trim().parse::<usize>().ok();
        }
    }
    match length {
        Some(length) if length > MAX_INCOMING => Err(FrameError::TooLarge(length)),
        Some(length) => Ok(Some(length)),
        None => Err(FrameError::Header(excerpt(&head[..]))),
    }
}

fn excerpt(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(80)];
    String::from_utf8_lossy(head).escape_debug().to_string()
}

impl Encoder<Message> for Codec {
    type Error = FrameError;

    /// Header and body go into one buffer, so that they leave in one write.
    fn encode(&mut self, message: Message, bytes: &mut BytesMut) -> Result<(), FrameError> {
        self.sent += 1;
        let body = message.to_json(self.sent).to_string();
        if body.len() > MAX_OUTGOING {
            return Err(FrameError::TooLarge(body.len()));
        }
        bytes.reserve(body.len() + 32);
        bytes.put_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        bytes.put_slice(body.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn event(name: &str) -> Message {
        Message::Event { event: name.into(), body: json!({"text": "späße\r\n\r\nContent-Length: 3"}) }
    }

    fn encoded(messages: &[Message]) -> BytesMut {
        let mut bytes = BytesMut::new();
        let mut codec = Codec::default();
        for message in messages {
            codec.encode(message.clone(), &mut bytes).unwrap();
        }
        bytes
    }

    fn decode_all(chunks: &[&[u8]]) -> Result<Vec<Message>, FrameError> {
        let mut codec = Codec::default();
        let mut bytes = BytesMut::new();
        let mut out = Vec::new();
        for chunk in chunks {
            bytes.extend_from_slice(chunk);
            while let Some(message) = codec.decode(&mut bytes)? {
                out.push(message);
            }
        }
        Ok(out)
    }

    #[test]
    fn split_at_every_byte_it_is_the_same_message() {
        let messages = [event("one"), event("two")];
        let bytes = encoded(&messages);
        for cut in 0..=bytes.len() {
            assert_eq!(decode_all(&[&bytes[..cut], &bytes[cut..]]).unwrap(), messages, "cut at {cut}");
        }
    }

    #[test]
    fn byte_by_byte_it_is_the_same_message() {
        let bytes = encoded(&[event("one"), event("two")]);
        let chunks: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decode_all(&chunks).unwrap().len(), 2);
    }

    #[test]
    fn many_messages_in_one_chunk_all_come_out_in_order() {
        let messages: Vec<Message> = (0..100).map(|n| event(&n.to_string())).collect();
        assert_eq!(decode_all(&[&encoded(&messages)]).unwrap(), messages);
    }

    #[test]
    fn other_headers_and_any_case_are_accepted() {
        let text = b"Content-Type: x\r\ncontent-length: 38\r\n\r\n{\"type\":\"event\",\"event\":\"initialized\"}";
        assert_eq!(decode_all(&[text]).unwrap().len(), 1);
    }

    #[test]
    fn json_that_is_no_message_is_passed_over_and_the_next_is_read() {
        let mut text = b"Content-Length: 2\r\n\r\n{}".to_vec();
        text.extend_from_slice(&encoded(&[event("after")]));
        assert_eq!(decode_all(&[&text]).unwrap(), [event("after")]);
    }

    #[test]
    fn bad_input_is_a_typed_error_and_allocates_nothing_it_was_promised() {
        let cases: [&[u8]; 8] = [
            b"Content-Length: 99999999999\r\n\r\n",
            b"Content-Length: -1\r\n\r\n",
            b"Content-Length: abc\r\n\r\n",
            b"Content-Type: x\r\n\r\n",
            b"no colon\r\n\r\n",
            b"Segmentation fault\n",
            b"Content-Length: 3\r\n\r\n{]}",
            b"Content-Length: 2\r\n\r\n\xff\xff",
        ];
        for case in cases {
            assert!(decode_all(&[case]).is_err(), "{}", String::from_utf8_lossy(case));
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let frame = format!("Content-Length: {}\r\n\r\n{deep}", deep.len());
        assert!(matches!(decode_all(&[frame.as_bytes()]), Err(FrameError::Json(_))));
        let header = format!("Content-X: {}", "a".repeat(MAX_HEADER));
        assert!(matches!(decode_all(&[header.as_bytes()]), Err(FrameError::Header(_))));
    }

    #[test]
    fn a_message_over_the_limit_is_not_sent() {
        let big = Message::Event { event: "x".into(), body: json!("y".repeat(MAX_OUTGOING)) };
        assert!(matches!(Codec::default().encode(big, &mut BytesMut::new()), Err(FrameError::TooLarge(_))));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..8)) {
            let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            let _ = decode_all(&chunks);
        }

        #[test]
        fn no_damage_to_a_real_stream_makes_it_panic(at in 0usize..400, byte in any::<u8>()) {
            let mut bytes = encoded(&[event("one"), event("two"), event("three")]);
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = decode_all(&[&bytes]);
        }
    }
}
