//! The socket that hooks and agents speak to: in a folder of the user's alone, with a token, a line at a time.
//!
//! One task per connection, which ends with it and withdraws what it had asked. Nobody is waited for but at the first line.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::gate;
use super::private;
use super::talk::{ANSWERS, Talk};
use super::wire::{self, MAX_LINE, VERSION};
use crate::token;

/// The name of the socket in its folder.
const NAME: &str = "agent.sock";
/// The most connections at once. An agent may have a hook per tool call under way.
const CONNECTIONS: usize = 256;
/// How long the first line may take: it says who is there.
const FIRST_LINE: Duration = Duration::from_secs(10);
/// How long to wait where no connection can be taken, for want of descriptors.
const AGAIN: Duration = Duration::from_millis(100);

/// A socket that is listened at. Dropping it removes it.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    token: Arc<str>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Socket {
    /// Listens in this folder, which is made where it is missing; `token` lets clients in.
    pub fn open(folder: &Path, token: &str) -> io::Result<Self> {
        private::folder(folder)?;
        let path = folder.join(NAME);
        // One that somebody left: the folder is this session's alone.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        let socket = Self { listener, path, token: token.into() };
        std::fs::set_permissions(&socket.path, std::fs::Permissions::from_mode(0o600))?;
        Ok(socket)
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Serves all who come, as long as it is polled; dropped, it withdraws all they had asked.
    pub async fn serve(self, line: gate::Line, session: &str) {
        let session: Arc<str> = session.into();
        let mut clients = JoinSet::new();
        loop {
            while clients.try_join_next().is_some() {}
            let stream = tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        eprintln!("no connection of an agent can be taken: {error}");
                        tokio::time::sleep(AGAIN).await;
                        continue;
                    }
                },
                Some(_) = clients.join_next() => continue,
            };
            // One too many is closed at once: whoever it is goes on without us.
            if clients.len() < CONNECTIONS {
                clients.spawn(serve(stream, Arc::clone(&self.token), line.clone(), Arc::clone(&session)));
            }
        }
    }
}

async fn serve(stream: UnixStream, token: Arc<str>, line: gate::Line, session: Arc<str>) {
    let own = rustix::process::geteuid().as_raw();
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == own => {}
        Ok(peer) => return eprintln!("user {} was turned away", peer.uid()),
        Err(error) => return eprintln!("a client that can't be identified was turned away: {error}"),
    }
    let (reader, writer) = stream.into_split();
    let (answers, answered) = mpsc::channel(ANSWERS);
    let (talking, writing) = (listen(reader, &token, answers, &line, &session), write(writer, answered));
    tokio::pin!(talking, writing);
    tokio::select! {
        // Nobody reads any more: nobody is to be answered.
        () = &mut writing => {}
        // What is still to be said, said.
        () = &mut talking => drop(tokio::time::timeout(FIRST_LINE, writing).await),
    }
}

/// Takes what comes until the client closes its end, or says what can't be.
async fn listen(
    reader: OwnedReadHalf,
    token: &str,
    answers: mpsc::Sender<Json>,
    line: &gate::Line,
    session: &Arc<str>,
) {
    let mut reader = BufReader::new(reader);
    let refuse = async |message: String| {
        let _ = answers.send(json!({ "type": "error", "message": message })).await;
    };
    let first = match tokio::time::timeout(FIRST_LINE, next(&mut reader)).await {
        Ok(Some(Ok(first))) => wire::read(&first),
        Ok(Some(Err(message))) => return refuse(message).await,
        Ok(None) | Err(_) => return,
    };
    // Before anything else is looked at.
    if !first.token.as_ref().is_some_and(|given| token::same(given.as_bytes(), token.as_bytes())) {
        return refuse("the token is not the one of this session".into()).await;
    }
    if first.v != Some(VERSION) {
        return refuse(format!("another version: this debugger speaks version {VERSION}")).await;
    }
    let mut talk = Talk::new(line, session, answers.clone());
    talk.take(first.said).await;
    loop {
        match next(&mut reader).await {
            Some(Ok(line)) => talk.take(wire::read(&line).said).await,
            Some(Err(message)) => return refuse(message).await,
            None => return,
        }
    }
}

/// The next line, without its newline; none when the client has closed its end.
async fn next(reader: &mut BufReader<OwnedReadHalf>) -> Option<Result<Vec<u8>, String>> {
    let mut line = Vec::new();
    match reader.take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line).await {
        Ok(_) if line.last() == Some(&b'\n') => {
            line.pop();
            Some(Ok(line))
        }
        Ok(_) if line.len() > MAX_LINE => Some(Err(format!("a line may have at most {MAX_LINE} bytes"))),
        // The end, or a line torn by a client that died over it.
        Ok(_) | Err(_) => None,
    }
}

/// Writes answers until there are no more, or nobody reads them.
async fn write(mut writer: OwnedWriteHalf, mut answers: mpsc::Receiver<Json>) {
    while let Some(answer) = answers.recv().await {
        let mut bytes = answer.to_string().into_bytes();
        bytes.push(b'\n');
        if writer.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
