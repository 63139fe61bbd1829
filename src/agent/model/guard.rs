//! Who may speak to the tap: whoever has the token, from this machine, and no page of a browser.
//!
//! The base URL that the agent is given has the token in its path: agents send what headers they like, and their paths are
//! left alone.

use hyper::header::{HOST, ORIGIN};
use hyper::{HeaderMap, StatusCode};

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
    if !same(given.as_bytes(), token.as_bytes()) {
        return Err(nothing);
    }
    let end = rest.find('/').unwrap_or(rest.len());
    Ok(Way { provider: &rest[..end], path: &rest[end..] })
}

/// Compares in a time that tells nothing about where they differ.
fn same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |sum, (left, right)| sum | (left ^ right)) == 0
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
