//! A WebSocket, from the client's side and no more than an inspector needs: text messages, whole.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::super::relay::acknowledge_at_once;

/// The longest message that is taken in: the source of a very large script.
const LONGEST: u64 = 256 << 20;

/// Reads messages, as they come.
#[derive(Debug)]
pub struct Reader(TcpStream);

/// Writes messages, each in one piece.
#[derive(Debug)]
pub struct Writer(TcpStream);

/// Opens `ws://HOST:PORT/PATH`.
pub fn connect(url: &str) -> io::Result<(Reader, Writer)> {
    let rest = url.strip_prefix("ws://").ok_or_else(|| io::Error::other(format!("{url} is no ws:// address")))?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(host)?;
    acknowledge_at_once(&stream);
    // The key is there against caches in between; on this machine there are none.
    let request = format!(
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: YnVnZXllLW5vZGUtMDAwMA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let head = read_head(&mut stream)?;
    if !head.starts_with("HTTP/1.1 101") {
        let first = head.lines().next().unwrap_or_default();
        return Err(io::Error::other(format!("the inspector refused: {first}")));
    }
    let writer = stream.try_clone()?;
    Ok((Reader(stream), Writer(writer)))
}

/// What a plain request to an address answers with.
pub fn get(host: &str, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(host)?;
    let limit = Some(std::time::Duration::from_secs(2));
    stream.set_read_timeout(limit)?;
    acknowledge_at_once(&stream);
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let head = read_head(&mut stream)?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<u64>().ok())?
    });
    let mut body = String::new();
    stream.take(length.unwrap_or(1 << 16).min(1 << 20)).read_to_string(&mut body)?;
    Ok(body)
}

/// The head of an answer, and not a byte more: what follows it may be a message already.
fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
        if head.len() > 1 << 14 {
            return Err(io::Error::other("that is no inspector: its answer has no end"));
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

impl Reader {
    /// The next message; None when the other side is done.
    pub fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut message = Vec::new();
        loop {
            let mut head = [0; 2];
            self.fill(&mut head)?;
            let (last, kind) = (head[0] & 0x80 != 0, head[0] & 0x0f);
            let length = match head[1] & 0x7f {
                126 => {
                    let mut bytes = [0; 2];
                    self.fill(&mut bytes)?;
                    u64::from(u16::from_be_bytes(bytes))
                }
                127 => {
                    let mut bytes = [0; 8];
                    self.fill(&mut bytes)?;
                    u64::from_be_bytes(bytes)
                }
                short => u64::from(short),
            };
            if length > LONGEST || u64::try_from(message.len()).is_ok_and(|had| had + length > LONGEST) {
                return Err(io::Error::other("a message of the inspector is too long"));
            }
            let mut payload = Vec::new();
            acknowledge_at_once(&self.0);
            (&mut self.0).take(length).read_to_end(&mut payload)?;
            if u64::try_from(payload.len()).is_ok_and(|read| read < length) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match kind {
                0..=2 => message.extend(payload),
                8 => return Ok(None),
                _ => continue,
            }
            if last {
                return Ok(Some(message));
            }
        }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        acknowledge_at_once(&self.0);
        self.0.read_exact(bytes)
    }
}

impl Writer {
    pub fn send(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(&frame(text.as_bytes()))
    }

    /// Ends the connection, for the reader too.
    pub fn close(&mut self) {
        let _ = self.0.write_all(&[0x88, 0x80, 0, 0, 0, 0]);
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}

/// One text message. A client's frames have to be masked; a mask of zeros leaves them as they are.
fn frame(payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x81];
    match u16::try_from(payload.len()) {
        Ok(length @ 0..=125) => frame.push(0x80 | u8::try_from(length).unwrap_or(125)),
        Ok(length) => {
            frame.push(0x80 | 126);
            frame.extend(length.to_be_bytes());
        }
        Err(_) => {
            frame.push(0x80 | 127);
            frame.extend(u64::try_from(payload.len()).unwrap_or(u64::MAX).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_in_three_ways() {
        assert_eq!(frame(b"ab"), [0x81, 0x82, 0, 0, 0, 0, b'a', b'b']);
        assert_eq!(frame(&[0; 300])[..4], [0x81, 0xfe, 1, 44]);
        assert_eq!(frame(&[0; 70_000])[..10], [0x81, 0xff, 0, 0, 0, 0, 0, 1, 0x11, 0x70]);
    }

    #[test]
    fn messages_are_read_whole_whatever_their_frames() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            assert!(read_head(&mut stream).unwrap().starts_with("GET /id HTTP/1.1"));
            let mut answer = b"HTTP/1.1 101 Switching Protocols\r\n\r\n".to_vec();
            // In two pieces with a ping between them, then a long one, then the end.
            answer.extend([0x01, 2, b'h', b'e', 0x89, 0, 0x80, 1, b'y']);
            answer.extend([0x81, 126, 0x01, 0x00]);
            answer.extend([b'x'; 256]);
            answer.extend([0x88, 0]);
            stream.write_all(&answer).unwrap();
        });
        let (mut reader, _writer) = connect(&format!("ws://{address}/id")).unwrap();
        assert_eq!(reader.next().unwrap().unwrap(), b"hey");
        assert_eq!(reader.next().unwrap().unwrap().len(), 256);
        assert!(reader.next().unwrap().is_none());
        server.join().unwrap();
    }
}
