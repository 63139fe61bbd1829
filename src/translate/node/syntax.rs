//! As much of JavaScript's syntax as a debugger needs: where functions are, what their parameters are called, which code
//! a `catch` stands behind, and which lines have code at all.
//!
//! A scanner, not a parser: it knows what is text, comment or pattern and what is code, and reads the rest from the order
//! of words and brackets. It takes TypeScript as it comes.

/// A piece of code, with the byte it begins at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token<'a> {
    at: usize,
    text: &'a str,
}

impl Token<'_> {
    fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$' || c == '#')
    }
}

/// A text of code, scanned.
#[derive(Debug)]
pub struct Code<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    /// For each opening bracket the token that closes it, and back.
    partner: Vec<Option<usize>>,
}

/// A function: its name, what it belongs to, and where its own code begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// The class or object that has it.
    pub owner: Option<String>,
    /// The byte of its first statement, or of its expression.
    pub body: usize,
}

/// Words that stand before a bracket without being a function's name.
const NO_NAMES: [&str; 14] = [
    "if", "for", "while", "switch", "catch", "with", "function", "return", "await", "typeof", "new", "super", "import",
    "case",
];

/// Words after which a `/` begins a pattern.
const BEFORE_PATTERN: [&str; 13] =
    ["return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "else", "do", "await", "yield"];

impl<'a> Code<'a> {
    pub fn new(text: &'a str) -> Self {
        let tokens = scan(text);
        let mut partner = vec![None; tokens.len()];
        let mut open: Vec<usize> = Vec::new();
        for (index, token) in tokens.iter().enumerate() {
            match token.text {
                "(" | "[" | "{" => open.push(index),
                ")" | "]" | "}" => {
                    if let Some(opening) = open.pop() {
                        partner[opening] = Some(index);
                        partner[index] = Some(opening);
                    }
                }
                _ => {}
            }
        }
        Self { text, tokens, partner }
    }

    fn word(&self, index: usize) -> &'a str {
        self.tokens.get(index).map_or("", |token| token.text)
    }

    /// Every function that has a name.
    pub fn functions(&self) -> Vec<Function> {
        let owners = self.owners();
        let mut found = Vec::new();
        for (index, token) in self.tokens.iter().enumerate().filter(|(_, token)| token.is_word()) {
            let before = index.checked_sub(1).map_or("", |before| self.word(before));
            let after = self.word(index + 1);
            let named_by_word =
                before == "function" || (before == "*" && index > 1 && self.word(index - 2) == "function");
            let is_method =
                after == "(" && before != "." && before != "?." && before != "new" && !NO_NAMES.contains(&token.text);
            let body = if named_by_word || (is_method && self.stands_among_members(index, &owners)) {
                self.body_after_parameters(index + 1)
            } else if (after == "=" || after == ":") && before != "?" {
                self.body_of_value(index + 2)
            } else {
                None
            };
            let Some(body) = body else { continue };
            let owner = match before {
                // `Point.prototype.length = function`, `exports.run = function`
                "." => {
                    let part = index.checked_sub(2).map_or("", |at| self.word(at));
                    let whole = index.checked_sub(4).map_or("", |at| self.word(at));
                    Some(if part == "prototype" { whole } else { part }.to_string())
                }
                _ if named_by_word => None,
                _ => self.enclosing(index).and_then(|brace| owners[brace].clone()),
            };
            if token.text == "constructor"
                && let Some(owner) = &owner
            {
                found.push(Function { name: owner.clone(), owner: None, body });
            }
            found.push(Function { name: token.text.trim_start_matches('#').to_string(), owner, body });
        }
        found
    }

    /// For each `{` that opens a class or an object with a name: that name.
    fn owners(&self) -> Vec<Option<String>> {
        let mut owners = vec![None; self.tokens.len()];
        for (index, token) in self.tokens.iter().enumerate() {
            let name = index + 1;
            if token.text == "class" && self.tokens.get(name).is_some_and(Token::is_word) {
                let opens = (name + 1..self.tokens.len().min(name + 60)).find(|at| self.word(*at) == "{");
                if let Some(brace) = opens {
                    owners[brace] = Some(self.word(name).to_string());
                }
            }
            if token.is_word() && matches!(self.word(name), "=" | ":") && self.word(name + 1) == "{" {
                owners[name + 1] = Some(token.text.to_string());
            }
        }
        owners
    }

    /// Whether a word stands where a class or an object has its members.
    fn stands_among_members(&self, index: usize, owners: &[Option<String>]) -> bool {
        let Some(brace) = self.enclosing(index) else { return false };
        if owners[brace].is_some() {
            return true;
        }
        let before_brace = brace.checked_sub(1).map_or("", |at| self.word(at));
        // An object without a name, or a class without one.
        matches!(before_brace, "(" | "," | "return" | "[" | "=>" | "class" | "default")
            || brace.checked_sub(2).is_some_and(|at| self.word(at) == "extends")
    }

    /// The `{` around a token.
    fn enclosing(&self, index: usize) -> Option<usize> {
        let mut at = index;
        while let Some(before) = at.checked_sub(1) {
            at = before;
            match self.word(at) {
                "}" | ")" | "]" => at = self.partner[at]?,
                "{" => return Some(at),
                "(" | "[" => return None,
                _ => {}
            }
        }
        None
    }

    /// The body behind parameters in brackets that begin at this token; a type may stand between.
    fn body_after_parameters(&self, index: usize) -> Option<usize> {
        if self.word(index) == "<" {
            let bracket = (index..self.tokens.len().min(index + 60)).find(|at| self.word(*at) == "(")?;
            return self.body_after_parameters(bracket);
        }
        let close = self.partner.get(index).copied().flatten().filter(|_| self.word(index) == "(")?;
        let mut at = close + 1;
        if self.word(at) == ":" {
            let limit = self.tokens.len().min(at + 40);
            at = (at..limit).find(|at| matches!(self.word(*at), "{" | ";" | "=>"))?;
        }
        (self.word(at) == "{").then(|| self.first_statement(at))?
    }

    /// The body of `function (…) {`, `(…) => …` or `name => …` that begins at this token.
    fn body_of_value(&self, index: usize) -> Option<usize> {
        let at = if self.word(index) == "async" { index + 1 } else { index };
        match self.word(at) {
            "function" => {
                let at = if self.word(at + 1) == "*" { at + 2 } else { at + 1 };
                let at = if self.tokens.get(at)?.is_word() { at + 1 } else { at };
                self.body_after_parameters(at)
            }
            "(" => {
                let close = self.partner[at]?;
                let mut arrow = close + 1;
                if self.word(arrow) == ":" {
                    let limit = self.tokens.len().min(arrow + 30);
                    arrow = (arrow..limit).find(|at| matches!(self.word(*at), "=>" | ";" | "{"))?;
                }
                self.body_of_arrow(arrow)
            }
            _ if self.tokens.get(at).is_some_and(Token::is_word) => self.body_of_arrow(at + 1),
            _ => None,
        }
    }

    fn body_of_arrow(&self, arrow: usize) -> Option<usize> {
        if self.word(arrow) != "=>" {
            return None;
        }
        if self.word(arrow + 1) == "{" { self.first_statement(arrow + 1) } else { Some(self.tokens.get(arrow + 1)?.at) }
    }

    /// The first statement in a block that is run where it stands: functions declared before it are not.
    fn first_statement(&self, brace: usize) -> Option<usize> {
        let mut at = brace + 1;
        loop {
            let function = if self.word(at) == "async" { at + 1 } else { at };
            if self.word(function) != "function" {
                return self.tokens.get(at).map(|token| token.at);
            }
            let block = (function..self.tokens.len()).find(|at| self.word(*at) == "{")?;
            at = self.partner[block]? + 1;
        }
    }

    /// The names of the parameters of the function whose brackets open at, or soon after, this byte.
    pub fn parameters(&self, at: usize) -> Vec<String> {
        let Some(first) = self.tokens.iter().position(|token| token.at >= at) else { return Vec::new() };
        let limit = self.tokens.len().min(first + 4);
        let Some(open) = (first..limit).find(|at| self.word(*at) == "(") else {
            // `name => …`
            let single = self.tokens[first..limit].windows(2).find(|pair| pair[1].text == "=>");
            return single.map(|pair| pair[0].text.to_string()).into_iter().collect();
        };
        let Some(close) = self.partner[open] else { return Vec::new() };
        let mut names = Vec::new();
        // Braces around the token: in an object that is taken apart, the name behind `:` is the variable's.
        let mut taken_apart = 0;
        let mut index = open + 1;
        while index < close {
            match self.word(index) {
                ":" if taken_apart > 0 => {
                    names.pop();
                }
                "=" | ":" => {
                    index = self.end_of_value(index + 1, close);
                    continue;
                }
                "{" => taken_apart += 1,
                "}" => taken_apart -= 1,
                word if self.tokens[index].is_word() => names.push(word.to_string()),
                _ => {}
            }
            index += 1;
        }
        names
    }

    /// The next `,` at this depth, or the end.
    fn end_of_value(&self, from: usize, close: usize) -> usize {
        let mut index = from;
        while index < close {
            match self.word(index) {
                "," | "}" | "]" | ")" => return index,
                "(" | "{" | "[" => index = self.partner[index].unwrap_or(close),
                _ => {}
            }
            index += 1;
        }
        close
    }

    /// Whether a `catch` stands behind this byte, within the function around it that begins at `from`.
    pub fn is_caught(&self, from: usize, at: usize) -> bool {
        self.tokens.iter().enumerate().filter(|(_, token)| token.text == "try" && token.at >= from).any(|(index, _)| {
            let Some(close) = self.partner.get(index + 1).copied().flatten() else { return false };
            let inside = self.tokens[index + 1].at < at && at < self.tokens[close].at;
            inside && self.word(close + 1) == "catch"
        })
    }

    /// Whether the function whose brackets open at this byte is asynchronous.
    pub fn is_async(&self, at: usize) -> bool {
        let first = self.tokens.partition_point(|token| token.at < at);
        (first.saturating_sub(4)..first).any(|index| self.word(index) == "async")
    }

    /// Whether the function whose brackets open at this byte is a generator.
    pub fn is_generator(&self, at: usize) -> bool {
        let first = self.tokens.partition_point(|token| token.at < at);
        (first.saturating_sub(2)..first).any(|index| self.word(index) == "*")
    }

    /// The first line from this one on, counted from 0, that has code a debugger can stop at.
    pub fn line_with_code(&self, line: u32) -> Option<u32> {
        let mut lines = Lines::new(self.text);
        let plain = |text: &str| matches!(text, "}" | "{" | ")" | ";" | "," | "]" | "else");
        self.tokens.iter().filter(|token| !plain(token.text)).map(|token| lines.spot(token.at).0).find(|at| *at >= line)
    }
}

/// Turns bytes of a text into lines and columns, and back; quickest in rising order.
#[derive(Debug)]
pub struct Lines<'a> {
    text: &'a str,
    line: u32,
    start: usize,
}

impl<'a> Lines<'a> {
    pub const fn new(text: &'a str) -> Self {
        Self { text, line: 0, start: 0 }
    }

    /// The line and the column in UTF-16 units, from 0.
    pub fn spot(&mut self, at: usize) -> (u32, u32) {
        if at < self.start {
            (self.line, self.start) = (0, 0);
        }
        while let Some(end) = self.text.get(self.start..at).and_then(|text| text.find('\n')) {
            self.start += end + 1;
            self.line += 1;
        }
        let column = self.text.get(self.start..at).map_or(0, |text| text.encode_utf16().count());
        (self.line, u32::try_from(column).unwrap_or(u32::MAX))
    }

    /// The byte of a line and column.
    pub fn byte(&mut self, (line, column): (u32, u32)) -> usize {
        if line < self.line {
            (self.line, self.start) = (0, 0);
        }
        while self.line < line {
            let Some(end) = self.text[self.start..].find('\n') else { return self.text.len() };
            self.start += end + 1;
            self.line += 1;
        }
        let mut units = 0;
        for (at, c) in self.text[self.start..].char_indices() {
            if units >= column || c == '\n' {
                return self.start + at;
            }
            units += u32::try_from(c.len_utf16()).unwrap_or(1);
        }
        self.text.len()
    }
}

/// Cuts a text into words, numbers and signs; comments, strings and patterns are one sign each, or none.
fn scan(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut tokens: Vec<Token> = Vec::new();
    // Where a template's expression goes on after its `}`: the depth of braces.
    let mut templates: Vec<usize> = Vec::new();
    let mut depth = 0;
    let mut at = if text.starts_with("#!") { text.find('\n').unwrap_or(text.len()) } else { 0 };
    while at < bytes.len() {
        let begin = at;
        let rest = &bytes[at..];
        match bytes[at] {
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'/' if rest.starts_with(b"//") => {
                at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                continue;
            }
            b'/' if rest.starts_with(b"/*") => {
                at += rest.windows(2).skip(2).position(|pair| pair == b"*/").map_or(rest.len(), |end| end + 4);
                continue;
            }
            quote @ (b'"' | b'\'') => at = end_of_string(bytes, at + 1, quote),
            b'`' => at = end_of_template(bytes, at + 1, &mut templates, depth),
            b'}' if templates.last() == Some(&depth) => {
                templates.pop();
                at = end_of_template(bytes, at + 1, &mut templates, depth);
                continue;
            }
            b'/' if begins_pattern(tokens.last()) => at = end_of_pattern(bytes, at + 1),
            byte if is_name_byte(byte) => {
                while at < bytes.len() && is_name_byte(bytes[at]) {
                    at += 1;
                }
            }
            byte => {
                match byte {
                    b'{' => depth += 1,
                    b'}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                at += if rest.starts_with(b"=>") || rest.starts_with(b"?.") || rest.starts_with(b"==") { 2 } else { 1 };
            }
        }
        if let Some(text) = text.get(begin..at) {
            tokens.push(Token { at: begin, text });
        }
    }
    tokens
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#') || byte >= 128
}

fn begins_pattern(before: Option<&Token>) -> bool {
    before.is_none_or(|token| {
        if token.is_word() {
            BEFORE_PATTERN.contains(&token.text)
        } else {
            !matches!(token.text, ")" | "]" | "}") && !is_text(token)
        }
    })
}

fn is_text(token: &Token) -> bool {
    token.text.starts_with(['"', '\'', '`'])
}

fn end_of_string(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while at < bytes.len() && bytes[at] != quote && bytes[at] != b'\n' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// The end of a template, or of its part before an expression.
fn end_of_template(bytes: &[u8], mut at: usize, templates: &mut Vec<usize>, depth: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'`' => return at + 1,
            b'$' if bytes.get(at + 1) == Some(&b'{') => {
                templates.push(depth);
                return at + 2;
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

fn end_of_pattern(bytes: &[u8], mut at: usize) -> usize {
    let mut in_class = false;
    while at < bytes.len() && bytes[at] != b'\n' {
        match bytes[at] {
            b'\\' => at += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'/' if !in_class => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at.min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"#!/usr/bin/env node
// function commented() {}
const text = "function quoted() {", pattern = /function \/ [/] in(pattern)/g;
function plain(a, b = (1, 2), ...rest) { return a + b; }
async function* generator({ x, y: z }, [w]) {
  function inner() { return 1; }
  yield x;
}
const arrow = (one, two) => one + two, short = n => n * 2;
class Point extends Base {
  #secret() { return 1; }
  constructor(x) { super(); this.x = x; }
  static async make(x) { return new Point(x); }
  get length() { return this.x; }
}
Point.prototype.far = function (other) { return other; };
const shapes = { area(w, h) { return w * h; }, side: function () { return `a${plain(1, { a: 2 })}b`; } };
if (plain(1, 2)) { plain(3, 4); }
"#;

    fn body_of(name: &str) -> Option<&'static str> {
        let function = Code::new(TEXT).functions().into_iter().find(|function| function.name == name)?;
        Some(TEXT[function.body..].split([';', '}', ',']).next().unwrap())
    }

    #[test]
    fn functions_are_found_by_name() {
        assert_eq!(body_of("plain"), Some("return a + b"));
        assert_eq!(body_of("generator"), Some("yield x"));
        assert_eq!(body_of("inner"), Some("return 1"));
        assert_eq!(body_of("arrow"), Some("one + two"));
        assert_eq!(body_of("short"), Some("n * 2"));
        assert_eq!(body_of("Point"), Some("super()"));
        assert_eq!(body_of("make"), Some("return new Point(x)"));
        assert_eq!(body_of("secret"), Some("return 1"));
        assert_eq!(body_of("length"), Some("return this.x"));
        assert_eq!(body_of("far"), Some("return other"));
        assert_eq!(body_of("area"), Some("return w * h"));
        assert_eq!(body_of("side"), Some("return `a${plain(1"));
        for none in ["commented", "quoted", "if", "pattern", "text", "super"] {
            assert_eq!(body_of(none), None, "{none}");
        }
        assert_eq!(Code::new(TEXT).functions().iter().filter(|function| function.name == "plain").count(), 1);
    }

    #[test]
    fn functions_know_whose_they_are() {
        let functions = Code::new(TEXT).functions();
        let owner = |name: &str| functions.iter().find(|function| function.name == name).unwrap().owner.clone();
        assert_eq!(owner("make").as_deref(), Some("Point"));
        assert_eq!(owner("far").as_deref(), Some("Point"));
        assert_eq!(owner("area").as_deref(), Some("shapes"));
        assert_eq!(owner("plain"), None);
    }

    #[test]
    fn types_do_not_hide_functions() {
        let text = "export function work<T extends { a: 1 }>(n: number, f: (x: T) => void): Promise<T> { return f(n); }\n\
                    const go = async (a: string): Promise<void> => { go(a); };";
        let names: Vec<String> = Code::new(text).functions().into_iter().map(|function| function.name).collect();
        assert!(names.contains(&"work".to_string()) && names.contains(&"go".to_string()), "{names:?}");
    }

    #[test]
    fn parameters_have_names() {
        let code = Code::new(TEXT);
        let of = |text: &str| code.parameters(TEXT.find(text).unwrap());
        assert_eq!(of("(a, b"), ["a", "b", "rest"]);
        assert_eq!(of("({ x, y"), ["x", "z", "w"]);
        assert_eq!(of("n => n"), ["n"]);
        assert!(of("() { return this").is_empty());
    }

    #[test]
    fn what_is_caught_is_told() {
        let text = "function f() { try { a(); } catch (e) { b(); } finally { c(); } try { d(); } finally {} }";
        let code = Code::new(text);
        let caught = |name: &str| code.is_caught(0, text.find(name).unwrap());
        assert!(caught("a()"));
        assert!(!caught("b()") && !caught("c()") && !caught("d()"));
        assert!(Code::new("x = async () => 1").is_async(10));
    }

    #[test]
    fn lines_without_code_lead_to_the_next() {
        let code = Code::new("// nothing\n\nlet a = 1;\n}\n/* a\n b */ f();\n");
        assert_eq!(code.line_with_code(0), Some(2));
        assert_eq!(code.line_with_code(3), Some(5));
        assert_eq!(code.line_with_code(6), None);
    }

    #[test]
    fn columns_are_counted_as_the_inspector_does() {
        let text = "a\n😀b\nc";
        let mut lines = Lines::new(text);
        assert_eq!(lines.spot(text.find('b').unwrap()), (1, 2));
        assert_eq!(lines.byte((1, 2)), text.find('b').unwrap());
        assert_eq!(lines.spot(text.find('c').unwrap()), (2, 0));
        assert_eq!(lines.byte((0, 0)), 0);
    }
}
