//! Expressions that a hook in the program may read without running any of the program's own code.
//!
//! Such an expression is written anew for the hook: each property is read by a function that refuses to call a getter,
//! and operators get nothing that they would have to ask for a number. All others are left to the debugger, which can
//! tell in the engine what changes the program and what does not.

/// Words that are no variables.
const WORDS: [&str; 38] = [
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "export",
    "extends",
    "finally",
    "for",
    "function",
    "if",
    "import",
    "in",
    "instanceof",
    "let",
    "new",
    "package",
    "return",
    "static",
    "super",
    "switch",
    "throw",
    "try",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "yield",
];
/// Globals that Node makes when they are first asked for.
const LAZY: [&str; 12] = [
    "crypto",
    "Crypto",
    "CryptoKey",
    "SubtleCrypto",
    "fetch",
    "navigator",
    "localStorage",
    "sessionStorage",
    "CustomEvent",
    "WebSocket",
    "EventSource",
    "Storage",
];
/// Values by name.
const NAMED: [&str; 6] = ["null", "undefined", "true", "false", "NaN", "Infinity"];
/// Operators, longest first, and whether they look at no more than their operands' identity or truth.
const OPERATORS: [(&str, bool); 23] = [
    (">>>", false),
    ("===", true),
    ("!==", true),
    ("**", false),
    ("==", false),
    ("!=", false),
    ("<=", false),
    (">=", false),
    ("<<", false),
    (">>", false),
    ("&&", true),
    ("||", true),
    ("??", true),
    ("+", false),
    ("-", false),
    ("*", false),
    ("/", false),
    ("%", false),
    ("<", false),
    (">", false),
    ("&", false),
    ("|", false),
    ("^", false),
];

/// What the hook gives an expression to read with.
const READER: &str = "__b";
/// The hook itself has the same.
const HOOK: &str = "__bugeye__";

/// The function that reads this expression in the frame of a hit; None where the debugger itself has to.
pub fn function(expression: &str) -> Option<String> {
    let body = written(expression, READER)?;
    let parameter = if body.contains(READER) { READER } else { "()" };
    // In brackets: the engine compiles it at once.
    Some(format!("({parameter}=>{body})"))
}

/// The same without a function, for where no more than this is to be read: the engine has less to compile.
pub fn value(expression: &str) -> Option<String> {
    written(expression, HOOK)
}

fn written(expression: &str, reader: &'static str) -> Option<String> {
    let mut parser = Parser { text: expression, at: 0, asks_numbers: false, reader };
    let mut body = parser.expression(0)?;
    parser.skip_space();
    if parser.at < expression.len() {
        return None;
    }
    if parser.asks_numbers {
        parser = Parser { text: expression, at: 0, asks_numbers: true, reader };
        body = parser.expression(0)?;
    }
    Some(body)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// An operator turns its operands into numbers or texts.
    asks_numbers: bool,
    reader: &'static str,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    fn take(&mut self, word: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn while_is(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let text = &rest[..rest.find(|c: char| !is_part(c)).unwrap_or(rest.len())];
        self.at += text.len();
        text
    }

    fn expression(&mut self, depth: u32) -> Option<String> {
        if depth > 20 {
            return None;
        }
        let mut out = String::new();
        loop {
            loop {
                self.skip_space();
                let sign = self.rest().chars().next()?;
                if !matches!(sign, '!' | '-' | '+' | '~') || out.ends_with(['+', '-', '~', '!']) {
                    break;
                }
                self.asks_numbers |= sign != '!';
                out.push(sign);
                self.at += 1;
            }
            out.push_str(&self.operand(depth)?);
            self.skip_space();
            let operator = OPERATORS.iter().find(|(operator, _)| self.rest().starts_with(operator));
            let after = |length: usize| self.rest()[length..].chars().next();
            match operator {
                // `a = 1`, `a += 1`, `a++`
                Some((operator, _))
                    if !operator.contains('=') && after(operator.len()) == Some('=')
                        || operator.len() == 1 && self.rest()[1..].starts_with(operator) =>
                {
                    return None;
                }
                Some((operator, is_plain)) => {
                    self.asks_numbers |= !is_plain;
                    out.push_str(operator);
                    self.at += operator.len();
                }
                None if self.rest().starts_with('?') && !self.rest().starts_with("?.") => {
                    self.at += 1;
                    let then = self.expression(depth + 1)?;
                    if !self.take(":") {
                        return None;
                    }
                    out.push_str(&format!("?{then}:"));
                }
                None => return Some(out),
            }
        }
    }

    fn operand(&mut self, depth: u32) -> Option<String> {
        self.skip_space();
        let first = self.rest().chars().next()?;
        let mut base = match first {
            '(' => {
                self.at += 1;
                let inner = self.expression(depth + 1)?;
                self.take(")").then(|| format!("({inner})"))?
            }
            '\'' | '"' => {
                let end = self.rest()[1..]
                    .find([first, '\\', '\n'])
                    .filter(|end| self.rest()[1 + end..].starts_with(first))?;
                let text = &self.rest()[..end + 2];
                self.at += text.len();
                text.to_string()
            }
            '0'..='9' => {
                let number = self.while_is(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
                let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
                    && number.bytes().filter(|byte| *byte == b'.').count() <= 1
                    && (number.len() == 1 || !number.starts_with('0') || number.starts_with("0."));
                return is_plain.then(|| number.to_string());
            }
            _ => {
                let name = self.name()?;
                if WORDS.contains(&name) || LAZY.contains(&name) {
                    return None;
                }
                if NAMED.contains(&name) {
                    return Some(name.to_string());
                }
                name.to_string()
            }
        };
        loop {
            self.skip_space();
            let rest = self.rest();
            if rest.starts_with('.') {
                self.at += 1;
                self.skip_space();
                let name = self.name()?;
                base = format!("{}.get({base},'{name}')", self.reader);
            } else if rest.starts_with('[') {
                self.at += 1;
                let index = self.expression(depth + 1)?;
                if !self.take("]") {
                    return None;
                }
                base = format!("{}.get({base},{index})", self.reader);
            } else if rest.starts_with(['(', '`']) || rest.starts_with("?.") || rest.starts_with("=>") {
                return None;
            } else {
                break;
            }
        }
        let is_group = first == '(' && base.starts_with('(');
        Some(if self.asks_numbers && !is_group { format!("{}.primitive({base})", self.reader) } else { base })
    }

    fn name(&mut self) -> Option<&'a str> {
        let is_first = |c: char| c.is_alphabetic() || c == '_' || c == '$';
        self.rest().chars().next().filter(|c| is_first(*c))?;
        Some(self.while_is(|c| is_first(c) || c.is_ascii_digit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_reads_is_written_for_the_hook() {
        let cases = [
            ("i", "(()=>i)"),
            (" this ", "(()=>this)"),
            ("a.b", "(__b=>__b.get(a,'b'))"),
            ("a.b[i].c", "(__b=>__b.get(__b.get(__b.get(a,'b'),i),'c'))"),
            ("a['x y']", "(__b=>__b.get(a,'x y'))"),
            ("i + 1", "(__b=>__b.primitive(i)+1)"),
            ("-x * (y - 2)", "(__b=>-__b.primitive(x)*(__b.primitive(y)-2))"),
            ("a === b && !c", "(()=>a===b&&!c)"),
            ("a ? b.c : 1.5", "(__b=>a?__b.get(b,'c'):1.5)"),
            ("s.length >= 3", "(__b=>__b.primitive(__b.get(s,'length'))>=3)"),
            ("'it' + s", "(__b=>__b.primitive('it')+__b.primitive(s))"),
            ("null", "(()=>null)"),
        ];
        for (text, expected) in cases {
            assert_eq!(function(text).as_deref(), Some(expected), "{text}");
            let (_, body) = expected.trim_end_matches(')').split_once("=>").unwrap();
            let value = value(text).unwrap();
            assert_eq!(value.trim_end_matches(')'), body.replace("__b.", "__bugeye__.").as_str(), "{text}");
        }
    }

    #[test]
    fn what_may_do_more_is_left_to_the_debugger() {
        for text in [
            "f()",
            "a.f(x)",
            "x = 1",
            "x += 1",
            "x++",
            "++x",
            "--x",
            "a?.b",
            "new A",
            "`t`",
            "{a: 1}",
            "a =>a",
            "typeof a",
            "a instanceof B",
            "'k' in o",
            "delete a.b",
            "await p",
            "this.#x",
            "a b",
            "a +",
            "",
            "a)",
            "(a",
            "a, b",
            "[1]",
            "x ==",
            "a => b",
            "/x/",
            "x **= 2",
            "a ??= b",
            "'it\\'s'",
            "a.b`t`",
            "x - -y",
            "09",
        ] {
            assert_eq!(function(text), None, "{text}");
        }
    }
}
