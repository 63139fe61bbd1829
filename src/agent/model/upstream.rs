//! Where the agent would have sent its model calls: a base URL, and connections to it that are kept for the next call.
//!
//! TLS is always checked, against the roots of the system, or those that are built in where the system has none.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::Request;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;

use crate::translate::{base64, unescaped};

/// How long it may take until a connection stands.
const CONNECTING: Duration = Duration::from_secs(30);
/// How long a connection is kept that nobody uses, and how many.
const KEPT: Duration = Duration::from_secs(30);
const MOST_KEPT: usize = 16;
/// The longest head of a proxy's answer.
const LONGEST_HEAD: usize = 16 * 1024;

/// What is sent on: a body that was read, or one that is passed on as it comes, after what was read of it.
#[derive(Debug)]
pub enum Sent {
    Whole(Option<Bytes>),
    Passed { read: Option<Bytes>, rest: Incoming },
}

impl Body for Sent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Passed { read, rest } => match read.take() {
                Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                None => Pin::new(rest).poll_frame(context),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Passed { read, rest } => read.is_none() && rest.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Passed { read, rest } => {
                let before = read.as_ref().map_or(0, Bytes::len) as u64;
                match rest.size_hint().exact() {
                    Some(exact) => SizeHint::with_exact(exact + before),
                    None => SizeHint::default(),
                }
            }
        }
    }
}

/// A base URL, taken apart.
#[derive(Debug)]
pub struct Upstream {
    tls: bool,
    host: String,
    port: u16,
    /// What its path begins with, without a `/` at the end.
    path: String,
    idle: Mutex<Vec<(SendRequest<Sent>, Instant)>>,
}

impl Upstream {
    pub fn new(url: &str) -> io::Result<Self> {
        // What stands before an `@` may be a password.
        let shown = url.rsplit('@').next().unwrap_or_default();
        let bad = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("the base URL {shown}: {why}"));
        let (tls, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err(bad("it begins with neither https:// nor http://")),
        };
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(bad("a name and password have no place in it"));
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                (host, port.parse().map_err(|_| bad("its port is no number"))?)
            }
            _ => (authority, if tls { 443 } else { 80 }),
        };
        if host.is_empty() {
            return Err(bad("it has no host"));
        }
        let path = path.trim_end_matches('/').to_string();
        Ok(Self { tls, host: host.to_string(), port, path, idle: Mutex::default() })
    }

    /// As the `Host` header has it.
    #[must_use]
    pub fn authority(&self) -> String {
        let usual = if self.tls { 443 } else { 80 };
        if self.port == usual { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    /// The path of a request below this base.
    #[must_use]
    pub fn path(&self, path: &str, query: Option<&str>) -> String {
        let path = format!("{}{path}", self.path);
        let path = if path.is_empty() { "/".to_string() } else { path };
        query.map_or_else(|| path.clone(), |query| format!("{path}?{query}"))
    }

    /// Sends a request on, over a connection that stands if there is one.
    pub async fn send(&self, ways: &Ways, mut request: Request<Sent>) -> io::Result<hyper::Response<Incoming>> {
        while let Some(mut kept) = self.kept() {
            match kept.try_send_request(request).await {
                Ok(response) => {
                    self.keep(kept);
                    return Ok(response);
                }
                // It was closed before anything was sent.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(io::Error::other(error.into_error())),
                },
            }
        }
        let connecting = tokio::time::timeout(CONNECTING, self.connect(ways)).await;
        let mut new = connecting.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no connection in time"))??;
        let response = new.send_request(request).await.map_err(io::Error::other)?;
        self.keep(new);
        Ok(response)
    }

    fn kept(&self) -> Option<SendRequest<Sent>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(kept, since)| !kept.is_closed() && (since.elapsed() < KEPT || !kept.is_ready()));
        let at = idle.iter().rposition(|(kept, _)| kept.is_ready())?;
        Some(idle.swap_remove(at).0)
    }

    /// It is busy until its answer has been read, and free by itself afterwards.
    fn keep(&self, connection: SendRequest<Sent>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST_KEPT {
            idle.push((connection, Instant::now()));
        }
    }

    async fn connect(&self, ways: &Ways) -> io::Result<SendRequest<Sent>> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let stream = match &ways.proxy {
            Some(proxy) if self.tls && !ways.is_past_proxy(host, self.port) => {
                tunnel(proxy, &self.host, self.port).await?
            }
            _ => TcpStream::connect((host, self.port)).await?,
        };
        stream.set_nodelay(true)?;
        if !self.tls {
            return begin(stream).await;
        }
        let name = ServerName::try_from(host.to_string()).map_err(io::Error::other)?;
        begin(ways.tls().await?.connect(name, stream).await?).await
    }
}

async fn begin<S>(stream: S) -> io::Result<SendRequest<Sent>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    tokio::spawn(async move {
        // Whoever waits for its answer is told by itself.
        let _ = connection.await;
    });
    Ok(sender)
}

/// What all upstreams share on the way.
#[derive(Debug, Default)]
pub struct Ways {
    /// `http://HOST:PORT` of the user's proxy, for what goes by TLS.
    pub proxy: Option<String>,
    /// Hosts that are reached without it.
    pub no_proxy: Option<String>,
    /// A file of certificates to trust besides.
    pub roots: Option<std::path::PathBuf>,
    tls: OnceCell<Arc<ClientConfig>>,
}

impl Ways {
    #[must_use]
    pub fn new(proxy: Option<String>, no_proxy: Option<String>, roots: Option<std::path::PathBuf>) -> Self {
        Self { proxy, no_proxy, roots, tls: OnceCell::new() }
    }

    /// Whether a host is in the list of those without a proxy: itself or with what is below it, with a port or without, or
    /// all by `*`.
    fn is_past_proxy(&self, host: &str, port: u16) -> bool {
        let host = host.to_ascii_lowercase();
        let named = self.no_proxy.as_deref().unwrap_or_default().split([',', ' ']).map(str::to_ascii_lowercase);
        named.into_iter().any(|name| {
            let (name, its_port) = match name.rsplit_once(':') {
                Some((name, port)) if !name.contains(':') => (name, Some(port)),
                _ => (name.as_str(), None),
            };
            let name = name.trim_start_matches("*.").trim_start_matches('.');
            let below = host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
            name == "*" || (!name.is_empty() && below && its_port.is_none_or(|its| its == port.to_string()))
        })
    }

    /// The roots are read when they are first needed.
    async fn tls(&self) -> io::Result<TlsConnector> {
        let config = self.tls.get_or_try_init(|| async { client(self.roots.as_deref()).map(Arc::new) }).await?;
        Ok(TlsConnector::from(Arc::clone(config)))
    }
}

fn client(more: Option<&Path>) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    // A root of the system that can't be read is not trusted; there are others.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    if let Some(file) = more {
        let failed = |error: &dyn std::fmt::Display| io::Error::other(format!("{}: {error}", file.display()));
        for certificate in CertificateDer::pem_file_iter(file).map_err(|error| failed(&error))? {
            roots.add(certificate.map_err(|error| failed(&error))?).map_err(|error| failed(&error))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

/// A way through a proxy to a host.
async fn tunnel(proxy: &str, host: &str, port: u16) -> io::Result<TcpStream> {
    let shown = proxy.rsplit('@').next().unwrap_or_default();
    let bad = |why: String| io::Error::other(format!("the proxy {shown}: {why}"));
    let address = proxy.strip_prefix("http://").unwrap_or(proxy).trim_end_matches('/');
    if address.contains("://") {
        return Err(bad("only http://HOST:PORT is supported".into()));
    }
    let (login, address) = address.rsplit_once('@').map_or((None, address), |(login, at)| (Some(login), at));
    // As others read it: without a port it is that of the web.
    let address = if address.contains(':') { address.to_string() } else { format!("{address}:80") };
    let mut stream = TcpStream::connect(address).await.map_err(|error| bad(error.to_string()))?;
    let login = login.map_or_else(String::new, |login| {
        let login = if login.contains(':') { login.to_string() } else { format!("{login}:") };
        format!("Proxy-Authorization: Basic {}\r\n", base64(&unescaped(&login)))
    });
    let ask = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{login}\r\n");
    stream.write_all(ask.as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > LONGEST_HEAD {
            return Err(bad("its answer has no end".into()));
        }
        head.push(stream.read_u8().await?);
    }
    let first = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_string();
    if first.split(' ').nth(1).is_some_and(|code| code.starts_with('2')) { Ok(stream) } else { Err(bad(first)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_without_a_proxy_are_known() {
        let past = |list: &str, host: &str| Ways::new(None, Some(list.into()), None).is_past_proxy(host, 443);
        for list in
            ["gateway.corp.example", "a,corp.example", ".corp.example ,b", "*.CORP.example", "*", "corp.example:443"]
        {
            assert!(past(list, "Gateway.corp.example"), "{list}");
        }
        for list in ["", ",", "way.corp.example", "corp.example:80", "gateway.corp.example.evil", "x*"] {
            assert!(!past(list, "gateway.corp.example"), "{list}");
        }
        assert!(past("localhost,::1", "::1") && past("127.0.0.1", "127.0.0.1"));
        assert!(!Ways::default().is_past_proxy("x", 443));
    }

    #[test]
    fn base_urls_are_taken_apart() {
        let base = Upstream::new("https://api.example.com/v1/").unwrap();
        assert_eq!((base.tls, base.authority().as_str()), (true, "api.example.com"));
        assert_eq!(base.path("/responses", Some("a=b")), "/v1/responses?a=b");
        let base = Upstream::new("http://127.0.0.1:8080").unwrap();
        assert_eq!((base.tls, base.authority().as_str(), base.path("", None).as_str()), (false, "127.0.0.1:8080", "/"));
        assert_eq!(Upstream::new("http://[::1]:80").unwrap().host, "[::1]");
        for bad in ["api.example.com", "ftp://x", "https://", "https://a:b@c", "http://x:port", "http://:80"] {
            assert!(Upstream::new(bad).is_err(), "{bad}");
        }
    }
}
