//! Adapters that speak the protocol on a socket: bytes are carried both ways, unread.
//!
//! On the loopback interface a peer that writes in two pieces waits 40 ms for an acknowledgement that the other side
//! holds back; acknowledging at once is set before every read, since the kernel forgets it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Asked;

/// How long an adapter may take to open its socket.
const OPENING: Duration = Duration::from_secs(10);
/// How long an adapter may take to leave once nobody speaks to it.
const LEAVING: Duration = Duration::from_secs(5);

/// The adapter connects to us.
pub fn dials(asked: &Asked) -> u8 {
    let listener = match TcpListener::bind("127.0.0.1:0") {
        Ok(listener) => listener,
        Err(error) => return failed("listen on the loopback interface", &error),
    };
    let address = listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
    let command = filled(&asked.command, &[("{address}", &address)]);
    let mut child = match start(&command, asked) {
        Ok(child) => child,
        Err(error) => return failed(&format!("start {}", command.join(" ")), &error),
    };
    let _ = listener.set_nonblocking(true);
    let deadline = Instant::now() + OPENING;
    loop {
        match listener.accept() {
            Ok((socket, _)) => {
                let _ = socket.set_nonblocking(false);
                return carry(Socket::Tcp(socket), Some(child));
            }
            Err(_) if has_ended(&mut child) => return exit_code(child),
            Err(error) if Instant::now() > deadline => {
                let _ = child.kill();
                return failed("wait for the adapter to connect", &error);
            }
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// The adapter listens, on a port or a socket we choose.
pub fn listens(asked: &Asked) -> u8 {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|probe| probe.local_addr()).map(|address| address.port());
    let port = match port {
        Ok(port) => port,
        Err(error) => return failed("find a free port", &error),
    };
    let folder = asked.streams.as_ref().and_then(|streams| streams.stdout.parent().map(PathBuf::from));
    let socket = folder.unwrap_or_else(std::env::temp_dir).join(format!("adapter-{}", std::process::id()));
    let by_path = asked.command.iter().any(|word| word.contains("{socket}"));
    let path = socket.to_string_lossy();
    let command = filled(&asked.command, &[("{port}", &port.to_string()), ("{socket}", &path)]);
    let mut child = match start(&command, asked) {
        Ok(child) => child,
        Err(error) => return failed(&format!("start {}", command.join(" ")), &error),
    };
    let deadline = Instant::now() + OPENING;
    loop {
        let connected = if by_path {
            UnixStream::connect(&socket).map(Socket::Unix)
        } else {
            TcpStream::connect(("127.0.0.1", port)).map(Socket::Tcp)
        };
        match connected {
            Ok(stream) => {
                let code = carry(stream, Some(child));
                let _ = std::fs::remove_file(&socket);
                return code;
            }
            Err(_) if has_ended(&mut child) => return exit_code(child),
            Err(error) if Instant::now() > deadline => {
                let _ = child.kill();
                return failed("connect to the adapter", &error);
            }
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// What listens at an address speaks the protocol; nothing is started.
pub fn connects(asked: &Asked) -> u8 {
    let address = asked.command.first().map(String::as_str).unwrap_or_default();
    match TcpStream::connect(address) {
        Ok(stream) => carry(Socket::Tcp(stream), None),
        Err(error) => failed(&format!("connect to {address}"), &error),
    }
}

fn filled(words: &[String], values: &[(&str, &str)]) -> Vec<String> {
    let fill = |word: &String| values.iter().fold(word.clone(), |word, (name, value)| word.replace(name, value));
    words.iter().map(fill).collect()
}

fn start(command: &[String], asked: &Asked) -> io::Result<Child> {
    let Some((program, args)) = command.split_first() else {
        return Err(io::Error::other("no command was given"));
    };
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null());
    if let Some(streams) = &asked.streams {
        streams.give_to(&mut command)?;
    }
    command.spawn()
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    fn again(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
        }
    }

    fn close(&self) {
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Self::Unix(stream) => stream.shutdown(Shutdown::Write),
        };
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => {
                acknowledge_at_once(stream);
                stream.read(buffer)
            }
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// No waiting for acknowledgements, in either direction.
pub fn acknowledge_at_once(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ = rustix::net::sockopt::set_tcp_quickack(stream, true);
}

/// Carries bytes until one side ends; answers the adapter's exit code.
fn carry(mut socket: Socket, child: Option<Child>) -> u8 {
    let mut writer = match socket.again() {
        Ok(writer) => writer,
        Err(error) => return failed("share the socket", &error),
    };
    std::thread::spawn(move || {
        let _ = copy(&mut io::stdin().lock(), &mut writer);
        // Nobody speaks any more. The adapter ends its program, or lets it go, and leaves.
        writer.close();
        std::thread::sleep(LEAVING);
        std::process::exit(0);
    });
    let _ = copy(&mut socket, &mut io::stdout().lock());
    child.map_or(0, exit_code)
}

fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = [0u8; 64 * 1024];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            read => {
                to.write_all(&buffer[..read])?;
                to.flush()?;
            }
        }
    }
}

fn has_ended(child: &mut Child) -> bool {
    matches!(child.try_wait(), Ok(Some(_)))
}

/// As a shell tells it: the code, or 128 and the signal's number.
fn exit_code(mut child: Child) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let deadline = Instant::now() + Duration::from_secs(1);
    while Instant::now() < deadline && !has_ended(&mut child) {
        std::thread::sleep(Duration::from_millis(5));
    }
    match child.try_wait() {
        Ok(Some(status)) => {
            let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
            u8::try_from(code).unwrap_or(1)
        }
        _ => 0,
    }
}

fn failed(what: &str, error: &io::Error) -> u8 {
    eprintln!("could not {what}: {error}");
    1
}
