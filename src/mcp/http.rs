//! MCP by HTTP, for clients that can't start a program: only at this machine's own addresses, only with the token.
//!
//! That an address is the machine's own keeps no browser out: a page of a stranger can have its name resolved to it. So a
//! request must carry the token, name this server in its `Host`, and, if a browser says whence it comes, come from here.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

use super::{LEAVING, MAX_MESSAGE, Server, log_events, runtime, take_streams};
use crate::cli::print;
use crate::failure::Failure;
use crate::paths::Paths;
use crate::token;

/// Where it is served.
const PATH: &str = "/mcp";
/// The variable with a token of the user's own.
const TOKEN: &str = "BUGEYE_MCP_TOKEN";
/// A token shorter than this could be guessed.
const SHORTEST_TOKEN: usize = 32;
/// How long a client may take to send the head of a request.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// How long a session of the protocol is kept that nobody speaks in.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// How many clients may be connected at once.
const CONNECTIONS: usize = 64;

type Answer = Response<BoxBody<Bytes, Infallible>>;
type Service = StreamableHttpService<Server, LocalSessionManager>;

/// Serves until it is interrupted.
pub fn serve(paths: &Paths, structured: bool, address: SocketAddr) -> Result<(), Failure> {
    let token = token()?;
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let listener = TcpListener::bind(address).await.map_err(|error| {
            Failure::io(format!("listen at {address}"), &error).hint("port 0 takes any that is free")
        })?;
        let address = listener.local_addr().map_err(|error| Failure::io("see the address", &error))?;
        // From the first word on, an interrupt is answered by an orderly end.
        let failed = |error| Failure::io("listen for interrupts", &error);
        let mut interrupted = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminated = signal(SignalKind::terminate()).map_err(failed)?;
        let shown = if std::env::var_os(TOKEN).is_some() { TOKEN } else { &token };
        print(&format!("listening: http://{address}{PATH}\ntoken: {shown}\n"))?;
        // What is installed for an agent asks nobody at the terminal.
        let _streams = take_streams().map_err(|error| Failure::io("let go of the terminal", &error))?;
        let gate = Arc::new(Gate::new(address, &token));
        log_events(paths);
        let service = service(Server::new(paths, structured));
        tokio::select! {
            () = accept(listener, gate, service) => Ok(()),
            _ = interrupted.recv() => Ok(()),
            _ = terminated.recv() => Ok(()),
        }
    });
    runtime.shutdown_timeout(LEAVING);
    served
}

/// The user's token, or a new one.
fn token() -> Result<String, Failure> {
    match std::env::var(TOKEN) {
        Ok(token) if token.len() >= SHORTEST_TOKEN && token.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(token),
        Ok(_) => Err(Failure::usage(format!("{TOKEN} is to have at least {SHORTEST_TOKEN} letters and digits"))
            .hint("`openssl rand -hex 32` makes one; without the variable there is a new one each time")),
        Err(_) => token::fresh().map_err(|error| Failure::io("make a token", &error)),
    }
}

/// Each client that opens a session of the protocol has debug sessions of its own, which end some time after it; all
/// others are one client.
fn service(server: Server) -> Service {
    let config = StreamableHttpServerConfig::default()
        // Hosts and origins are looked at before.
        .with_allowed_hosts(Vec::<String>::new())
        .with_max_request_body_bytes(MAX_MESSAGE);
    let each = move || Ok(Server { shared: Arc::clone(&server.shared), own: Arc::default() });
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(KEPT);
    StreamableHttpService::new(each, Arc::new(sessions), config)
}

async fn accept(listener: TcpListener, gate: Arc<Gate>, service: Service) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: others have to go first.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (gate, service) = (Arc::clone(&gate), service.clone());
        tokio::spawn(async move {
            let answer = service_fn(|request| {
                let (gate, service) = (Arc::clone(&gate), service.clone());
                async move { Ok::<_, Infallible>(answer(&gate, &service, request).await) }
            });
            let mut connection = http1::Builder::new();
            connection.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT).max_buf_size(64 * 1024);
            // A client that breaks off is its own affair.
            let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
            drop(place);
        });
    }
}

async fn answer(gate: &Gate, service: &Service, request: Request<Incoming>) -> Answer {
    match gate.refuses(request.uri().path(), request.headers()) {
        Some((status, why)) => refusal(status, why),
        None => service.handle(request).await,
    }
}

fn refusal(status: StatusCode, why: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(why.as_bytes())).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("text/plain"));
    if status == StatusCode::UNAUTHORIZED {
        answer.headers_mut().insert(WWW_AUTHENTICATE, hyper::header::HeaderValue::from_static("Bearer"));
    }
    answer
}

/// Who may pass.
#[derive(Debug)]
struct Gate {
    hosts: Vec<String>,
    token: String,
}

impl Gate {
    fn new(address: SocketAddr, token: &str) -> Self {
        let hosts = vec![address.to_string(), format!("localhost:{}", address.port())];
        Self { hosts, token: token.to_string() }
    }

    /// Why a request is turned away, if it is.
    fn refuses(&self, path: &str, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
        let one = |name| {
            let mut all = headers.get_all(name).iter();
            all.next().filter(|_| all.next().is_none()).and_then(|value| value.to_str().ok())
        };
        if !one(HOST).is_some_and(|host| self.hosts.iter().any(|known| known == host)) {
            return Some((StatusCode::FORBIDDEN, "this server is not of that name\n"));
        }
        let ours = |origin: &str| {
            origin.strip_prefix("http://").is_some_and(|host| self.hosts.iter().any(|known| known == host))
        };
        if headers.contains_key(ORIGIN) && !one(ORIGIN).is_some_and(ours) {
            return Some((StatusCode::FORBIDDEN, "pages of that origin have no business here\n"));
        }
        let given = one(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        if !given.is_some_and(|given| token::same(given.as_bytes(), self.token.as_bytes())) {
            return Some((
                StatusCode::UNAUTHORIZED,
                "give the token that `bugeye mcp --http` printed: Authorization: Bearer TOKEN\n",
            ));
        }
        (path != PATH).then_some((StatusCode::NOT_FOUND, "it is at /mcp\n"))
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    const GOOD: &str = "0123456789abcdef0123456789abcdef";

    fn gate() -> Gate {
        Gate::new("127.0.0.1:8930".parse().unwrap(), GOOD)
    }

    /// Every host with every origin and every token: only the exact ones pass.
    #[test]
    fn only_exact_hosts_origins_and_tokens_pass() {
        let hosts = [
            Some("127.0.0.1:8930"),
            Some("localhost:8930"),
            None,
            Some(""),
            Some("127.0.0.1"),
            Some("localhost"),
            Some("127.0.0.1:8931"),
            Some("evil.example:8930"),
            Some("127.0.0.1:8930.evil.example"),
            Some("localhost.evil.example:8930"),
            Some("LOCALHOST:8930"),
            Some("[::1]:8930"),
            Some("0.0.0.0:8930"),
            Some("127.0.0.1:8930 "),
        ];
        let origins = [
            None,
            Some("http://127.0.0.1:8930"),
            Some("http://localhost:8930"),
            Some("null"),
            Some(""),
            Some("https://127.0.0.1:8930"),
            Some("http://127.0.0.1"),
            Some("http://localhost:89301"),
            Some("http://evil.example"),
            Some("http://localhost:8930.evil.example"),
            Some("http://evil.example/http://localhost:8930"),
            Some("localhost:8930"),
        ];
        let longer = format!("Bearer {GOOD}0");
        let right = format!("Bearer {GOOD}");
        let (shorter, lower, bare) = (&right[..right.len() - 1], right.to_lowercase(), GOOD);
        let tokens =
            [Some(right.as_str()), None, Some("Bearer "), Some(&longer), Some(shorter), Some(&lower), Some(bare)];
        let (mut tried, mut passed) = (0, 0);
        for host in hosts {
            for origin in origins {
                for token in tokens {
                    let mut headers = HeaderMap::new();
                    for (name, value) in [(HOST, host), (ORIGIN, origin), (AUTHORIZATION, token)] {
                        if let Some(value) = value {
                            headers.insert(name, HeaderValue::from_str(value).unwrap());
                        }
                    }
                    let good = hosts[..2].contains(&host) && origins[..3].contains(&origin) && token == tokens[0];
                    let refused = gate().refuses(PATH, &headers);
                    assert_eq!(refused.is_none(), good, "{host:?} {origin:?} {token:?}: {refused:?}");
                    tried += 1;
                    passed += usize::from(good);
                }
            }
        }
        assert_eq!((tried, passed), (14 * 12 * 7, 6));
    }

    #[test]
    fn a_second_host_or_origin_is_one_too_many() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("127.0.0.1:8930"));
        headers.insert(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {GOOD}")).unwrap());
        assert_eq!(gate().refuses(PATH, &headers), None);
        assert_eq!(gate().refuses("/", &headers).unwrap().0, StatusCode::NOT_FOUND);
        headers.append(ORIGIN, HeaderValue::from_static("http://127.0.0.1:8930"));
        headers.append(ORIGIN, HeaderValue::from_static("http://evil.example"));
        assert_eq!(gate().refuses(PATH, &headers).unwrap().0, StatusCode::FORBIDDEN);
        headers.remove(ORIGIN);
        headers.append(HOST, HeaderValue::from_static("evil.example"));
        assert_eq!(gate().refuses(PATH, &headers).unwrap().0, StatusCode::FORBIDDEN);
    }
}
