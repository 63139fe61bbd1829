//! The model tap: an agent's calls to its model go through here, by the base URL that it is given.
//!
//! A proxy on loopback, in the process of the adapter. Each call is asked about at the gate before the model is asked; then
//! it goes on to where the agent would have sent it, and the answer comes back byte for byte, in the pieces it came in,
//! while a copy is read on the side. Nothing of a request's headers is kept: keys stay between the agent and its vendor.
//!
//! ```text
//!  agent ─ http://127.0.0.1:PORT/s/TOKEN/PROVIDER/… ─► guard ─► call ⇄ broker
//!                                                                │
//!        answer ◄─ body (copy ─► reply ─► note, record) ◄─ upstream, or a recording (rerun)
//! ```

mod body;
mod call;
mod compare;
mod copy;
pub mod dialect;
mod guard;
mod inject;
mod parts;
pub mod price;
mod record;
pub mod reply;
mod rerun;
mod skim;
mod tap;
mod upstream;
mod who;

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::gate::Line;
use price::Price;
use rerun::Recording;
pub use rerun::Rerun;
use tap::{State, Tap};
use upstream::{Upstream, Ways};

/// A token shorter than this could be guessed.
const SHORTEST_TOKEN: usize = 32;
/// How long a client may take to send the head of a request.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// How many connections an agent may have at once.
const CONNECTIONS: usize = 256;
/// How often an agent that is held is sent something: less than any client waits.
const PING: Duration = Duration::from_secs(15);

/// How the tap is to be set up.
#[derive(Debug, Clone)]
pub struct Config {
    /// The secret in the base URL, at least 32 letters and digits.
    pub token: String,
    /// Names of providers, as they stand in the base URL, and where their calls go on to: the base URL that the agent would
    /// have used, the vendor's or the user's own.
    pub upstreams: Vec<(String, String)>,
    /// The folder of the session's record; without it nothing is kept.
    pub record: Option<PathBuf>,
    /// Answers come from this record instead.
    pub replay: Option<Rerun>,
    pub ping: Duration,
    /// Certificates to trust besides the system's: a file in PEM form.
    pub roots: Option<PathBuf>,
    /// The user's proxy for what goes by TLS: `http://HOST:PORT`, with a name and password before it or not.
    pub proxy: Option<String>,
    /// Hosts that are reached without it, as `NO_PROXY` has them.
    pub no_proxy: Option<String>,
    /// The user's own prices, which go before those of the table.
    pub prices: Vec<(String, Price)>,
}

impl Config {
    #[must_use]
    pub fn new(token: String) -> Self {
        Self {
            token,
            upstreams: Vec::new(),
            record: None,
            replay: None,
            ping: PING,
            roots: None,
            proxy: None,
            no_proxy: None,
            prices: Vec::new(),
        }
    }

    #[must_use]
    pub fn upstream(mut self, provider: &str, url: &str) -> Self {
        self.upstreams.push((provider.into(), url.into()));
        self
    }
}

/// A tap that serves. It ends when this is dropped, and with it every call that is under way.
#[derive(Debug)]
pub struct Served {
    pub port: u16,
    token: String,
    listening: JoinHandle<()>,
}

impl Served {
    /// The base URL of a provider, for the agent.
    #[must_use]
    pub fn url(&self, provider: &str) -> String {
        format!("http://127.0.0.1:{}/s/{}/{provider}", self.port, self.token)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Begins to serve. A failure says what is wrong with the configuration, or with the record to repeat.
pub async fn serve(line: Line, config: Config) -> io::Result<Served> {
    serve_at(listen().await?, line, config)
}

/// A place to serve at, for those who have to know where before they know what.
pub async fn listen() -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await
}

/// As [`serve`], at a place that was made before; within a runtime.
pub fn serve_at(listener: TcpListener, line: Line, config: Config) -> io::Result<Served> {
    let token = config.token;
    if token.len() < SHORTEST_TOKEN || !token.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        let why = format!("the token is to have at least {SHORTEST_TOKEN} letters and digits");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut upstreams = Vec::new();
    for (name, url) in config.upstreams {
        upstreams.push((name, Arc::new(Upstream::new(&url)?)));
    }
    let recording = config.replay.as_ref().map(Recording::read).transpose()?;
    if recording.is_some() && upstreams.is_empty() {
        let why = "the agent asks its model past the model tap: it can't be given the answers of a record";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    let port = listener.local_addr()?.port();
    let state = State { keeper: record::Keeper::new(config.record), recording, ..State::default() };
    let tap = Arc::new(Tap {
        line,
        token: token.clone(),
        port,
        upstreams,
        ways: Ways::new(config.proxy, config.no_proxy, config.roots),
        ping: config.ping,
        prices: config.prices,
        state: Mutex::new(state),
        met: AtomicBool::new(false),
        first: OnceLock::new(),
        spans: AtomicU64::new(0),
    });
    let listening = tokio::spawn(accept(listener, tap));
    Ok(Served { port, token, listening })
}

async fn accept(listener: TcpListener, tap: Arc<Tap>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    // They end with the one that listens.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        while connections.try_join_next().is_some() {}
        let Ok((stream, from)) = listener.accept().await else {
            // Out of descriptors, most likely: others have to go first.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        if guard::is_another_user(from, tap.port) {
            continue;
        }
        let tap = Arc::clone(&tap);
        connections.spawn(async move {
            connection(stream, tap).await;
            drop(place);
        });
    }
}

async fn connection(stream: TcpStream, tap: Arc<Tap>) {
    // A piece of an answer is not to wait for the next.
    let _ = stream.set_nodelay(true);
    let answer = service_fn(move |request| {
        let tap = Arc::clone(&tap);
        async move { Ok::<_, Infallible>(tap.answer(request).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT).auto_date_header(false);
    // An agent that breaks off is free to.
    let _ = server.serve_connection(TokioIo::new(stream), answer).await;
}
