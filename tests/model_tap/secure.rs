//! Who may speak to the tap, what it speaks to, and what it never tells.

use std::sync::Arc;

use bugeye::agent::model::serve;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::canned::{self, all};
use crate::world::{Desk, Say, TOKEN, Upstream, config, files, post, post_with, send, tap, with_upstreams};

#[tokio::test]
async fn strangers_are_refused_and_nobody_is_asked() {
    let canned = canned::messages();
    let upstream = Upstream::always(Say::json(&canned.whole)).await;
    let (line, desk) = Desk::open();
    let served = tap(line, &upstream.url).await;
    let body = canned.question.to_string();
    let path = format!("POST {}", canned.path);
    for (words, status) in [
        (vec!["origin: http://evil.example"], 403),
        (vec!["origin: null"], 403),
        (vec!["host: evil.example"], 403),
        (vec!["host: 127.0.0.1:1"], 403),
        (vec!["host: 127.0.0.1:1", "host: localhost:2"], 403),
    ] {
        assert_eq!(send(&served, &path, &words, body.as_bytes()).await.got().await.status, status, "{words:?}");
    }
    for path in ["/nobody/v1/messages", ""] {
        assert_eq!(
            send(&served, &format!("POST {path}"), &[], body.as_bytes()).await.got().await.status,
            404,
            "{path}"
        );
    }
    let mut stream = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
    let wrong = TOKEN.replace('0', "1");
    let head = format!(
        "POST /s/{wrong}{} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-length: 0\r\n\r\n",
        canned.path, served.port
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 404");
    assert!(upstream.seen().is_empty() && desk.all_notes().is_empty() && desk.asks().is_empty());

    for token in ["", "short", &format!("{TOKEN}/../x")] {
        let (line, _desk) = Desk::open();
        assert!(serve(line, bugeye::agent::model::Config::new(token.into())).await.is_err(), "{token}");
    }
}

#[tokio::test]
async fn keys_of_the_agent_are_passed_on_and_never_told_or_kept() {
    const KEYS: [&str; 6] = ["hush-auth", "hush-key", "hush-cookie", "hush-proxy", "hush-goog", "hush-query"];
    let record = tempfile::tempdir().unwrap();
    for canned in all() {
        let upstream = Upstream::always(Say::sse(&canned.stream)).await;
        let (line, desk) = Desk::judging(Some(record.path()), |_| Some(Default::default()));
        let mut config = with_upstreams(config(), &upstream.url);
        config.record = Some(record.path().into());
        let served = serve(line, config).await.unwrap();
        let words = [
            "authorization: Bearer hush-auth",
            "x-api-key: hush-key",
            "cookie: hush-cookie",
            "proxy-authorization: hush-proxy",
            "x-goog-api-key: hush-goog",
        ];
        let sign = if canned.path.contains('?') { '&' } else { '?' };
        post_with(&served, &format!("{}{sign}key=hush-query", canned.path), &words, &canned.question).await;
        let seen = upstream.seen().remove(0);
        for name in ["authorization", "x-api-key", "cookie", "x-goog-api-key"] {
            assert!(seen.header(name).is_some_and(|value| value.contains("hush")), "{name}");
        }
        // That one is for a proxy, and ends with us.
        assert_eq!(seen.header("proxy-authorization"), None);
        assert!(seen.line.ends_with("key=hush-query"));
        desk.note("model.response", 0).await;
        let told = format!("{:?} {:?}", desk.all_notes(), desk.asks());
        assert!(!KEYS.iter().any(|key| told.contains(key)), "{told}");
    }
    let kept = files(record.path());
    assert!(kept.len() > 8, "{}", kept.len());
    for (path, content) in kept {
        let text = String::from_utf8_lossy(&content).into_owned();
        assert!(!KEYS.iter().any(|key| text.contains(key)), "{}", path.display());
    }
}

fn fixture(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tls").join(name)
}

/// An upstream by TLS, whose certificate only `ca.pem` speaks for. Answers its port.
async fn by_tls(answer: String) -> u16 {
    let chain = CertificateDer::pem_file_iter(fixture("server.pem")).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let server = server.with_no_client_auth().with_single_cert(chain, key).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(server));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut read = vec![0; 65536];
            let _ = stream.read(&mut read).await;
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            );
            let _ = stream.write_all(format!("{head}{answer}").as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    port
}

#[tokio::test]
async fn tls_is_checked() {
    let canned = canned::messages();
    let port = by_tls(canned.whole.to_string()).await;
    let url = format!("https://localhost:{port}");
    // Nobody whom the system trusts speaks for it.
    let (line, _desk) = Desk::open();
    let served = tap(line, &url).await;
    let got = post(&served, canned.path, &canned.question).await;
    let why = got.json()["error"]["message"].to_string();
    assert!(got.status == 502 && why.contains("certificate"), "{got:?}");
    // The user's own authority does.
    let (line, _desk) = Desk::open();
    let mut trusting = with_upstreams(config(), &url);
    trusting.roots = Some(fixture("ca.pem"));
    let served = serve(line, trusting.clone()).await.unwrap();
    let got = post(&served, canned.path, &canned.question).await;
    assert_eq!((got.status, got.json()), (200, canned.whole.clone()));
    // Not for another name.
    let (line, _desk) = Desk::open();
    let mut other = with_upstreams(config(), &format!("https://127.0.0.2:{port}"));
    other.roots = Some(fixture("ca.pem"));
    let served = serve(line, other).await.unwrap();
    assert_eq!(post(&served, canned.path, &canned.question).await.status, 502);
}

#[tokio::test]
async fn a_proxy_of_the_user_s_is_the_way_to_tls() {
    let canned = canned::messages();
    let port = by_tls(canned.whole.to_string()).await;
    let (address, mut asked) = proxy_to(port).await;
    let (line, _desk) = Desk::open();
    let mut through = with_upstreams(config(), &format!("https://localhost:{port}"));
    (through.roots, through.proxy) = (Some(fixture("ca.pem")), Some(format!("http://{address}")));
    let served = serve(line, through.clone()).await.unwrap();
    let got = post(&served, canned.path, &canned.question).await;
    assert_eq!((got.status, got.json()), (200, canned.whole.clone()));
    let head = asked.recv().await.unwrap();
    assert!(head.starts_with(&format!("CONNECT localhost:{port} HTTP/1.1\r\n")), "{head}");
    assert!(!head.contains("Proxy-Authorization"), "{head}");

    // With a password, and with one that has signs of its own in it.
    for (login, sent) in [("me:hush", "bWU6aHVzaA=="), ("me:p%40ss", "bWU6cEBzcw=="), ("me", "bWU6")] {
        let (line, _desk) = Desk::open();
        let with =
            bugeye::agent::model::Config { proxy: Some(format!("http://{login}@{address}/")), ..through.clone() };
        let served = serve(line, with).await.unwrap();
        assert_eq!(post(&served, canned.path, &canned.question).await.status, 200);
        let head = asked.recv().await.unwrap();
        assert!(head.contains(&format!("\r\nProxy-Authorization: Basic {sent}\r\n")), "{head}");
    }

    // Not for hosts that are to be reached without it.
    let (line, _desk) = Desk::open();
    let past = bugeye::agent::model::Config { no_proxy: Some("corp.example,localhost".into()), ..through };
    let served = serve(line, past).await.unwrap();
    assert_eq!(post(&served, canned.path, &canned.question).await.status, 200);
    assert!(asked.try_recv().is_err(), "the proxy was asked");
}

/// A proxy that leads to one port, and tells what it was asked.
async fn proxy_to(port: u16) -> (std::net::SocketAddr, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = proxy.local_addr().unwrap();
    let (to, asked) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = proxy.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            to.send(String::from_utf8(head).unwrap()).unwrap();
            stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
            let mut upstream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut stream, &mut upstream).await });
        }
    });
    (address, asked)
}

#[tokio::test]
async fn a_base_url_that_is_none_is_refused_at_the_start() {
    for url in ["api.example.com", "https://user:hush@api.example.com"] {
        let (line, _desk) = Desk::open();
        let error = serve(line, config().upstream("anthropic", url)).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("base URL") && !text.contains("hush"), "{text}");
    }
}
