//! An adapter that connects to a server of gdb's protocol, with one word put in for it.
//!
//! On x86 a program stands behind a breakpoint when it has been hit. GNU gdbserver sets it back only for a client that
//! says `swbreak+`, and leaves it to others to do so themselves, which LLDB does not know. So LLDB connects to a socket
//! of ours, and what it says first is passed on with that word added. All else is carried as it is.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, ExitStatus};

use super::Asked;
use super::relay::acknowledge_at_once;

/// The packet in which a client says what it understands, and what is added to it.
const ASKS: &[u8] = b"$qSupported";
const ADDED: &[u8] = b"swbreak+;hwbreak+";

/// `SOCKET HOST:PORT COMMAND`: runs the command, which speaks on our streams, and serves the socket meanwhile.
pub fn bridges(asked: &Asked) -> u8 {
    let [socket, address, program, args @ ..] = &asked.command[..] else {
        eprintln!("a socket, an address and a command are wanted");
        return 2;
    };
    let listener = match UnixListener::bind(socket) {
        Ok(listener) => listener,
        Err(error) => return failed(&format!("listen at {socket}"), &error),
    };
    let address = address.clone();
    std::thread::spawn(move || {
        if let Ok((client, _)) = listener.accept()
            && let Err(error) = serve(client, &address)
        {
            eprintln!("could not reach {address}: {error}");
        }
    });
    let status = Command::new(program).args(args).status();
    let _ = std::fs::remove_file(socket);
    match status {
        Ok(status) => exit_code(status),
        Err(error) => failed(&format!("start {program}"), &error),
    }
}

fn serve(mut client: UnixStream, address: &str) -> io::Result<()> {
    let server = TcpStream::connect(address)?;
    acknowledge_at_once(&server);
    let (mut to_client, mut from_server) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || {
        let mut buffer = [0u8; 64 * 1024];
        loop {
            acknowledge_at_once(&from_server);
            match from_server.read(&mut buffer) {
                Ok(read) if read > 0 && to_client.write_all(&buffer[..read]).is_ok() => {}
                _ => break,
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let mut to_server = &server;
    let mut start = Start::default();
    let mut buffer = [0u8; 64 * 1024];
    loop {
        match client.read(&mut buffer)? {
            0 => break,
            read => to_server.write_all(&start.pass(&buffer[..read]))?,
        }
    }
    server.shutdown(Shutdown::Write)
}

/// What a client says, until it has said what it understands.
#[derive(Default)]
struct Start {
    kept: Vec<u8>,
    done: bool,
}

impl Start {
    /// What is to be passed on now.
    fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.done {
            return bytes.to_vec();
        }
        self.kept.extend_from_slice(bytes);
        let Some(from) = self.kept.windows(ASKS.len()).position(|window| window == ASKS) else {
            // The beginning of the packet may be at the end of what came.
            let maybe = (0..self.kept.len()).find(|at| ASKS.starts_with(&self.kept[*at..]));
            let rest = self.kept.split_off(maybe.unwrap_or(self.kept.len()));
            return std::mem::replace(&mut self.kept, rest);
        };
        let Some(end) = self.kept[from..].iter().position(|byte| *byte == b'#').map(|at| from + at) else {
            return Vec::new();
        };
        if self.kept.len() < end + 3 {
            return Vec::new();
        }
        self.done = true;
        let mut body = self.kept[from + 1..end].to_vec();
        body.push(if body.contains(&b':') { b';' } else { b':' });
        body.extend_from_slice(ADDED);
        let sum = body.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        let mut out = self.kept[..=from].to_vec();
        out.extend_from_slice(&body);
        out.extend_from_slice(format!("#{sum:02x}").as_bytes());
        out.extend_from_slice(&self.kept[end + 3..]);
        out
    }
}

/// As a shell tells it: the code, or 128 and the signal's number.
fn exit_code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

fn failed(what: &str, error: &io::Error) -> u8 {
    eprintln!("could not {what}: {error}");
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_added_to_what_the_client_says_first_however_it_comes() {
        let said = b"+$QStartNoAckMode#b0+$qSupported:a+;b-#00$g#67";
        let expected = "+$QStartNoAckMode#b0+$qSupported:a+;b-;swbreak+;hwbreak+#";
        for cut in 0..said.len() {
            let mut start = Start::default();
            let mut out = start.pass(&said[..cut]);
            out.extend(start.pass(&said[cut..]));
            out.extend(start.pass(b"$qSupported#37"));
            let out = String::from_utf8(out).unwrap();
            let rest = out.strip_prefix(expected).unwrap();
            let body = expected.rsplit('$').next().unwrap().trim_end_matches('#');
            let sum = body.bytes().fold(0u8, u8::wrapping_add);
            assert_eq!(rest, format!("{sum:02x}$g#67$qSupported#37"), "{cut}");
        }
        assert_eq!(Start::default().pass(b"$qSupported#37"), b"$qSupported:swbreak+;hwbreak+#d5");
    }
}
