//! Who may speak to the tap: whoever has the token, is the user, from this machine, and no page of a browser.
//!
//! The base URL that the agent is given has the token in its path: agents send what headers they like, and their paths are
//! left alone. Some are told it on their command line, which every user of a machine can read: so others are not heard.

use std::net::SocketAddr;

use hyper::header::{HOST, ORIGIN};
use hyper::{HeaderMap, StatusCode};

use crate::token;

/// Where a request goes.
#[derive(Debug, PartialEq, Eq)]
pub struct Way<'a> {
    pub provider: &'a str,
    /// What follows the base URL, from its `/` on; may be empty.
    pub path: &'a str,
}

/// The way of a request, or what it is refused with.
pub fn way<'a>(
    path: &'a str,
    headers: &HeaderMap,
    token: &str,
    port: u16,
) -> Result<Way<'a>, (StatusCode, &'static str)> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
    let ours = ["127.0.0.1", "localhost"].iter().any(|name| host.eq_ignore_ascii_case(&format!("{name}:{port}")));
    if !ours || hosts.next().is_some() {
        return Err((StatusCode::FORBIDDEN, "this host is not known here\n"));
    }
    if headers.contains_key(ORIGIN) {
        return Err((StatusCode::FORBIDDEN, "pages have no business here\n"));
    }
    let nothing = (StatusCode::NOT_FOUND, "there is nothing here\n");
    let rest = path.strip_prefix("/s/").ok_or(nothing)?;
    let (given, rest) = rest.split_once('/').ok_or(nothing)?;
    if !token::same(given.as_bytes(), token.as_bytes()) {
        return Err(nothing);
    }
    let end = rest.find('/').unwrap_or(rest.len());
    Ok(Way { provider: &rest[..end], path: &rest[end..] })
}

/// Whether somebody else than the user, or root, is at the other end. Where that can't be told, the token decides.
#[must_use]
pub fn is_another_user(from: SocketAddr, port: u16) -> bool {
    // A client may reach us by a socket of either kind.
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].iter().filter_map(|path| std::fs::read_to_string(path).ok());
    let user = tables.into_iter().find_map(|table| owner(&table, from.port(), port));
    user.is_some_and(|user| user != 0 && user != rustix::process::geteuid().as_raw())
}

/// Whose the socket is that goes from one port of this machine to another, by the kernel's table of them.
fn owner(table: &str, from: u16, to: u16) -> Option<u32> {
    let loopback = u32::from_ne_bytes([127, 0, 0, 1]);
    let ends = |port: u16| format!("{loopback:08X}:{port:04X}");
    let (from, to) = (ends(from), ends(to));
    table.lines().skip(1).find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let found = words.next()?.ends_with(&from) && words.next()?.ends_with(&to);
        // Its state, queues, timer and retransmissions come before.
        if found { words.nth(4)?.parse().ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn asked(path: &str, host: &'static str, origin: Option<&'static str>) -> Result<(String, String), u16> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static(host));
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_static(origin));
        }
        let way = way(path, &headers, TOKEN, 4000).map_err(|(status, _)| status.as_u16())?;
        Ok((way.provider.to_string(), way.path.to_string()))
    }

    #[test]
    fn a_socket_s_owner_is_in_the_kernel_s_table() {
        let loopback = u32::from_ne_bytes([127, 0, 0, 1]);
        let line = |from: &str, to: &str, user: u32| {
            format!(
                "   1: {from} {to} 01 00000000:00000000 00:00000000 00000000  {user}        0 12345 1 0000 20 4 30 10 -1\n"
            )
        };
        let (ours, theirs) = (format!("{loopback:08X}:0FA0"), format!("{loopback:08X}:9C40"));
        let mapped = |end: &str| format!("0000000000000000FFFF0000{end}");
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        // Our own end is another line.
        let table = format!("{head}{}{}", line(&ours, &theirs, 7), line(&theirs, &ours, 1001));
        assert_eq!(owner(&table, 40000, 4000), Some(1001));
        assert_eq!(owner(&table, 40001, 4000), None);
        let table = format!("{head}{}", line(&mapped(&theirs), &mapped(&ours), 1002));
        assert_eq!(owner(&table, 40000, 4000), Some(1002));
        assert_eq!(owner("", 1, 2), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn we_find_ourselves() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (_accepted, from) = listener.accept().unwrap();
        assert_eq!(from, client.local_addr().unwrap());
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        assert_eq!(owner(&table, from.port(), port), Some(rustix::process::geteuid().as_raw()));
        assert!(!is_another_user(from, port));
    }

    #[test]
    fn only_the_token_from_this_machine_and_no_page_passes() {
        let good = format!("/s/{TOKEN}/anthropic/v1/messages");
        let went = Ok(("anthropic".to_string(), "/v1/messages".to_string()));
        assert_eq!(asked(&good, "127.0.0.1:4000", None), went);
        assert_eq!(asked(&good, "LocalHost:4000", None), went);
        assert_eq!(asked(&format!("/s/{TOKEN}/openai"), "localhost:4000", None), Ok(("openai".into(), String::new())));
        for host in ["", "127.0.0.1", "127.0.0.1:4001", "evil.example:4000", "127.0.0.1:4000.evil.example"] {
            assert_eq!(asked(&good, host, None), Err(403), "{host}");
        }
        for origin in ["null", "http://127.0.0.1:4000", ""] {
            assert_eq!(asked(&good, "127.0.0.1:4000", Some(origin)), Err(403), "{origin}");
        }
        for path in [
            "/",
            "/v1/messages",
            "/s/",
            "/s/anthropic/v1/messages",
            &format!("/s/{TOKEN}0/anthropic/v1"),
            &format!("/s/{}/anthropic", &TOKEN[1..]),
        ] {
            assert_eq!(asked(path, "127.0.0.1:4000", None), Err(404), "{path}");
        }
    }
}
