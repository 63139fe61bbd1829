//! The little XML that engines of DBGp send: elements, attributes, text and CDATA. No more is read, and nothing in it is
//! trusted.

use super::wire::from_base64;

/// Elements inside each other; engines need a dozen.
const DEEPEST: usize = 200;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    pub name: String,
    attributes: Vec<(String, String)>,
    text: String,
    pub children: Vec<Element>,
}

impl Element {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        self.attribute(name)?.parse().ok()
    }

    /// The children of one name, whatever namespace they are in.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name.rsplit(':').next() == Some(name))
    }

    pub fn first(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name.rsplit(':').next() == Some(name))
    }

    /// A part of a value: an attribute, or an element of its own where its text needs that.
    pub fn part(&self, name: &str) -> Option<String> {
        self.attribute(name).map(Into::into).or_else(|| self.first(name).map(Self::content))
    }

    /// The values in a value.
    pub fn properties(&self) -> impl Iterator<Item = &Self> {
        self.children.iter().filter(|child| child.name == "property")
    }

    /// Its text, decoded.
    pub fn content(&self) -> String {
        if let Some(value) = self.first("value") {
            return value.content();
        }
        if self.attribute("encoding") == Some("base64") {
            return String::from_utf8_lossy(&from_base64(self.text.trim())).into_owned();
        }
        self.text.clone()
    }
}

/// Reads a document; None when it is none.
pub fn parse(text: &str) -> Option<Element> {
    let mut open: Vec<Element> = vec![Element::default()];
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let last = open.last_mut()?;
        last.text.push_str(&unescaped(&rest[..at]));
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("<![CDATA[") {
            let end = after.find("]]>")?;
            last.text.push_str(&after[..end]);
            rest = &after[end + 3..];
        } else if let Some(after) = rest.strip_prefix("<!--") {
            rest = &after[after.find("-->")? + 3..];
        } else if rest.starts_with("<?") || rest.starts_with("<!") {
            rest = &rest[rest.find('>')? + 1..];
        } else if let Some(after) = rest.strip_prefix("</") {
            rest = &after[after.find('>')? + 1..];
            let done = open.pop()?;
            open.last_mut()?.children.push(done);
        } else {
            let (element, closed, after) = tag(&rest[1..])?;
            rest = after;
            if closed {
                last.children.push(element);
            } else if open.len() > DEEPEST {
                return None;
            } else {
                open.push(element);
            }
        }
    }
    let root = open.pop().filter(|_| open.is_empty())?;
    root.children.into_iter().next()
}

/// `name a="b"/>`: the element, whether it is closed, and what follows.
fn tag(text: &str) -> Option<(Element, bool, &str)> {
    let end = text.find(|c: char| c.is_whitespace() || c == '>' || c == '/')?;
    let mut element = Element { name: text[..end].to_string(), ..Element::default() };
    let mut rest = text[end..].trim_start();
    loop {
        if let Some(after) = rest.strip_prefix("/>") {
            return Some((element, true, after));
        }
        if let Some(after) = rest.strip_prefix('>') {
            return Some((element, false, after));
        }
        let (name, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| *c == '"' || *c == '\'')?;
        let (value, after) = after[1..].split_once(quote)?;
        element.attributes.push((name.trim().to_string(), unescaped(value)));
        rest = after.trim_start();
    }
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some(end) = rest.find(';').filter(|end| *end < 12) else {
            out.push('&');
            rest = &rest[1..];
            continue;
        };
        match &rest[1..end] {
            "lt" => out.push('<'),
            "gt" => out.push('>'),
            "amp" => out.push('&'),
            "quot" => out.push('"'),
            "apos" => out.push('\''),
            number => {
                let code = match number.strip_prefix("#x") {
                    Some(digits) => u32::from_str_radix(digits, 16).ok(),
                    None => number.strip_prefix('#').and_then(|digits| digits.parse().ok()),
                };
                match code.and_then(char::from_u32) {
                    Some(c) => out.push(c),
                    None => out.push_str(&rest[..=end]),
                }
            }
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_engines_send_is_read() {
        let text = "<?xml version=\"1.0\"?>\n<response a=\"1\" b=\"x&quot;&#39;y\"><property name=\"$o-&gt;x\" \
                    encoding=\"base64\"><![CDATA[dGhpbmc=]]></property><x:message line='3'/>t&amp;u</response>";
        let root = parse(text).unwrap();
        assert_eq!((root.name.as_str(), root.number("a"), root.attribute("b")), ("response", Some(1), Some("x\"'y")));
        let property = root.first("property").unwrap();
        assert_eq!((property.attribute("name"), property.content().as_str()), (Some("$o->x"), "thing"));
        assert_eq!(root.first("message").and_then(|message| message.number("line")), Some(3));
        assert_eq!(root.content(), "t&u");
    }

    #[test]
    fn what_is_no_document_is_none() {
        for text in ["", "x", "<a>", "<a", "<a b>", "</a></a>", "<![CDATA[", "<a b=\"", "<a></a></a>"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"<a>".repeat(1000)), None);
        assert_eq!(parse("<a>&bad; & &#xffffffff;</a>").unwrap().content(), "&bad; & &#xffffffff;");
    }
}
