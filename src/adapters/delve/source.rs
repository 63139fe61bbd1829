//! The arguments of a Go function, read from its source: Delve tells them together with the locals.

/// A token of Go that matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Mark(char),
}

/// The names of the receiver, the parameters and the named results of the innermost function around a line.
pub fn arguments(source: &str, line: u32) -> Vec<String> {
    let tokens = tokens(source);
    let mut found = Vec::new();
    // Functions that are open here: how deep their bodies are, and their arguments.
    let mut open: Vec<(usize, Vec<String>)> = Vec::new();
    let mut depth = 0;
    let mut signature: Option<Vec<String>> = None;
    let mut at = 0;
    while let Some((token, token_line)) = tokens.get(at) {
        if *token_line > line {
            break;
        }
        at += 1;
        match token {
            Token::Word(word) if word == "func" => {
                let (names, after) = read_signature(&tokens, at);
                // What has no body is a type.
                if matches!(tokens.get(after), Some((Token::Mark('{'), _))) {
                    signature = Some(names);
                    at = after;
                }
            }
            Token::Mark('{') => {
                depth += 1;
                if let Some(names) = signature.take() {
                    open.push((depth, names));
                }
            }
            Token::Mark('}') => {
                let closes = open.last().is_some_and(|(body, _)| *body == depth);
                // A function's last line is still its own.
                if closes && *token_line < line {
                    open.pop();
                }
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
        found = open.last().map(|(_, names)| names.clone()).unwrap_or_default();
    }
    found
}

/// Reads what follows `func`; answers the names and where the rest begins.
fn read_signature(tokens: &[(Token, u32)], mut at: usize) -> (Vec<String>, usize) {
    let is = |at: usize, mark: char| matches!(tokens.get(at), Some((Token::Mark(found), _)) if *found == mark);
    let mut names = Vec::new();
    // A name, type parameters, and up to three lists: receiver, parameters, results.
    loop {
        if is(at, '(') {
            let end = closing(tokens, at, '(', ')');
            names.extend(list(&tokens[at + 1..end.min(tokens.len())]));
            at = end + 1;
        } else if is(at, '[') {
            at = closing(tokens, at, '[', ']') + 1;
        } else if is(at, '{') || at >= tokens.len() || is(at, '}') || is(at, ')') || is(at, ',') {
            return (names, at);
        } else if matches!(&tokens[at].0, Token::Word(word) if word == "struct" || word == "interface")
            && is(at + 1, '{')
        {
            at = closing(tokens, at + 1, '{', '}') + 1;
        } else {
            at += 1;
        }
    }
}

fn closing(tokens: &[(Token, u32)], open: usize, begin: char, end: char) -> usize {
    let mut depth = 0;
    for (at, (token, _)) in tokens.iter().enumerate().skip(open) {
        match token {
            Token::Mark(mark) if *mark == begin => depth += 1,
            Token::Mark(mark) if *mark == end => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len()
}

/// The names of a list of parameters: `a, b int, c ...string`; a list of types alone has none.
fn list(tokens: &[(Token, u32)]) -> Vec<String> {
    let mut parts: Vec<Vec<&Token>> = vec![Vec::new()];
    let mut depth = 0;
    for (token, _) in tokens {
        match token {
            Token::Mark('(' | '[' | '{') => depth += 1,
            Token::Mark(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        match token {
            Token::Mark(',') if depth == 0 => parts.push(Vec::new()),
            token => {
                if let Some(part) = parts.last_mut() {
                    part.push(token);
                }
            }
        }
    }
    // A name is followed by its type; one with a comma behind it shares the type of the next.
    let begins_type = |word: &str| ["func", "chan", "map", "struct", "interface"].contains(&word);
    let named = |part: &Vec<&Token>| match part[..] {
        // `a ...int` has a name, `a.B` is a type.
        [Token::Word(_), Token::Mark('.'), third, ..] => *third == Token::Mark('.'),
        [Token::Word(first), _, ..] => !begins_type(first),
        _ => false,
    };
    if !parts.iter().any(named) {
        return Vec::new();
    }
    let name = |part: &Vec<&Token>| match part.first() {
        Some(Token::Word(name)) if name != "_" => Some(name.clone()),
        _ => None,
    };
    parts.iter().filter_map(name).collect()
}

/// Words and marks with their lines, without comments and literals.
fn tokens(source: &str) -> Vec<(Token, u32)> {
    let mut out = Vec::new();
    let mut line = 1;
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => line += 1,
            '/' if chars.peek() == Some(&'/') => {
                while chars.peek().is_some_and(|c| *c != '\n') {
                    chars.next();
                }
            }
            '/' if chars.peek() == Some(&'*') => {
                let mut before = ' ';
                for c in chars.by_ref().skip(1) {
                    line += u32::from(c == '\n');
                    if before == '*' && c == '/' {
                        break;
                    }
                    before = c;
                }
            }
            quote @ ('"' | '`' | '\'') => {
                while let Some(c) = chars.next() {
                    line += u32::from(c == '\n');
                    if c == '\\' && quote != '`' {
                        chars.next();
                    } else if c == quote {
                        break;
                    }
                }
            }
            c if c.is_alphanumeric() || c == '_' => {
                let mut word = String::from(c);
                while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    word.push(c);
                }
                out.push((Token::Word(word), line));
            }
            c if c.is_whitespace() => {}
            c => out.push((Token::Mark(c), line)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::arguments;

    #[test]
    fn the_arguments_of_the_function_around_a_line() {
        let source = "package main\n\
            \n\
            // func comment(x int) {\n\
            func plain(n int, a, b string) int {\n\
            \treturn n\n\
            }\n\
            func (t *Tree[K]) Method(key K, more ...int) (found bool, err error) {\n\
            \ts := \"func(q int) {\"\n\
            \tgo func(inner int) {\n\
            \t\tprintln(inner)\n\
            \t}(3)\n\
            \treturn\n\
            }\n\
            func types(func(x int) string, map[string]int) {\n\
            \tprintln()\n\
            }\n\
            func taking(call func(int) int, _ int, _unused chan<- int) {\n\
            \tprintln()\n\
            }\n\
            func none() { println() }\n\
            func Generic[T any, U comparable](v T, w map[U]struct{ a int }) T {\n\
            \treturn v\n\
            }\n";
        let cases: [(u32, &[&str]); 12] = [
            (1, &[]),
            (4, &["n", "a", "b"]),
            (5, &["n", "a", "b"]),
            (6, &["n", "a", "b"]),
            (8, &["t", "key", "more", "found", "err"]),
            (10, &["inner"]),
            (12, &["t", "key", "more", "found", "err"]),
            (15, &[]),
            (18, &["call", "_unused"]),
            (20, &[]),
            (22, &["v", "w"]),
            (24, &[]),
        ];
        for (line, expected) in cases {
            assert_eq!(arguments(source, line), expected, "line {line}");
        }
    }
}
