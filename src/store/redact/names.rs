//! Names that secrets go by.

/// How sure a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secret {
    /// `password`: whatever it holds.
    Surely,
    /// `token`, `cookie`: a text, but no number and no single letter, which parsers call so too.
    IfText,
}

const SURE: [&str; 17] = [
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "apikey",
    "authorization",
    "credential",
    "credentials",
    "privatekey",
    "secretkey",
    "sessionkey",
    "accesskey",
    "authkey",
    "passcode",
    "signingkey",
];
const LIKELY: [&str; 8] =
    ["token", "cookie", "cookies", "jwt", "authtoken", "accesstoken", "refreshtoken", "sessionid"];
/// `api_key`, `access_tokens`: the second word alone says nothing.
const BEFORE_KEY: [&str; 9] =
    ["api", "private", "session", "access", "secret", "encryption", "signing", "auth", "master"];
const BEFORE_TOKENS: [&str; 5] = ["auth", "access", "api", "refresh", "bearer"];
/// A name that ends so is about a secret, and holds none: `token_count`, `password_file`.
const ABOUT: [&str; 37] = [
    "count", "counts", "len", "length", "size", "index", "idx", "pos", "position", "offset", "type", "types", "kind",
    "name", "names", "limit", "ttl", "expiry", "expires", "at", "field", "error", "errors", "valid", "required",
    "line", "column", "col", "start", "end", "path", "file", "url", "uri", "policy", "min", "max",
];
/// What no secret name is without.
const STEMS: [&str; 10] = ["pass", "pwd", "secret", "token", "key", "auth", "cred", "cookie", "jwt", "session"];
/// The longest name that is looked at.
const LONGEST: usize = 100;

/// Whether a name is of a secret.
pub fn of(name: &str) -> Option<Secret> {
    if name.len() > LONGEST || name.len() < 3 || !may_be(name.as_bytes()) {
        return None;
    }
    let words = words(name);
    if words.last().is_some_and(|last| ABOUT.contains(&last.as_str())) {
        return None;
    }
    let mut found = None;
    for (at, word) in words.iter().enumerate() {
        let word = word.as_str();
        let before = at.checked_sub(1).and_then(|at| words.get(at)).map_or("", String::as_str);
        let sure = SURE.contains(&word)
            || (["key", "keys"].contains(&word) && BEFORE_KEY.contains(&before))
            // Alone it is the working directory.
            || (word == "pwd" && !["", "old"].contains(&before));
        if sure {
            return Some(Secret::Surely);
        }
        if LIKELY.contains(&word) || (word == "tokens" && BEFORE_TOKENS.contains(&before)) {
            found = Some(Secret::IfText);
        }
    }
    found
}

/// The same of an expression, by the last name in it: `user.password`, `env["API_KEY"]`.
pub fn of_expression(expression: &str) -> Option<Secret> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let bytes = expression.as_bytes();
    let end = bytes.iter().rposition(|byte| is_name(*byte) && !byte.is_ascii_digit())? + 1;
    let end = bytes[end..].iter().position(|byte| !is_name(*byte)).map_or(bytes.len(), |more| end + more);
    let start = bytes[..end].iter().rposition(|byte| !is_name(*byte)).map_or(0, |at| at + 1);
    of(&expression[start..end])
}

/// Whether any stem is in it, whatever its case.
fn may_be(name: &[u8]) -> bool {
    STEMS.iter().any(|stem| name.windows(stem.len()).any(|part| part.eq_ignore_ascii_case(stem.as_bytes())))
}

/// `apiKey_v2` → `api`, `key`, `v2`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        let next_is_lower = letters.peek().is_some_and(char::is_ascii_lowercase);
        let begins = letter.is_ascii_uppercase()
            && (before.is_ascii_lowercase() || (before.is_ascii_uppercase() && next_is_lower));
        if begins || !letter.is_ascii_alphanumeric() {
            words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
        }
        if letter.is_ascii_alphanumeric() {
            word.push(letter.to_ascii_lowercase());
        }
        before = letter;
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

impl Secret {
    /// Nothing is lost by showing this: there is no value, or the name meant something else.
    pub fn is_harmless(self, text: &str) -> bool {
        let bare = text.trim().trim_start_matches(['b', 'u']).trim_matches(['"', '\'', '`']);
        let nothing = ["", "None", "null", "nil", "undefined", "nullptr", "true", "false", "True", "False", "NULL"];
        let missing = ["0x0", "<unavailable>", super::REDACTED, "…"];
        if nothing.contains(&bare) || nothing.contains(&text.trim()) || missing.contains(&bare) {
            return true;
        }
        let number = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_digit() || b"-+._xXabcdefABCDEF".contains(&byte))
                && text.bytes().next().is_some_and(|byte| byte.is_ascii_digit() || byte == b'-')
        };
        self == Self::IfText && (bare.chars().count() < 4 || (bare.len() <= 20 && number(bare)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_names_are_told_from_others() {
        for name in [
            "password",
            "DB_PASSWORD",
            "userPasswd",
            "api_key",
            "apiKey",
            "API-KEY",
            "X-Api-Key",
            "client_secret",
            "AWS_SECRET_ACCESS_KEY",
            "Authorization",
            "privateKey",
            "private_key",
            "session_key",
            "db_pwd",
            "credentials",
            "PASSPHRASE",
            "secret2",
        ] {
            let expected = (name != "secret2").then_some(Secret::Surely);
            assert_eq!(of(name), expected, "{name}");
        }
        for name in ["token", "GITHUB_TOKEN", "authToken", "cookie", "Set-Cookie", "jwt", "access_tokens"] {
            assert_eq!(of(name), Some(Secret::IfText), "{name}");
        }
        for name in [
            "tokens",
            "max_tokens",
            "token_count",
            "tokenizer",
            "author",
            "secretary",
            "PWD",
            "OLDPWD",
            "key",
            "keys",
            "passed",
            "compass",
            "password_file",
            "monkey",
            "turkey",
            "session",
            "i",
            "",
            "keyboard",
        ] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn an_expression_goes_by_its_last_name() {
        for expression in
            ["user.password", "env[\"API_KEY\"]", "cfg['db_password']", "p->secret", "self._password", "passwords[0]"]
        {
            assert_eq!(of_expression(expression), Some(Secret::Surely), "{expression}");
        }
        for expression in ["password.size", "secrets.count", "x + 1", "", "[]", "42"] {
            assert_eq!(of_expression(expression), None, "{expression}");
        }
    }

    #[test]
    fn what_holds_nothing_is_shown() {
        for text in ["None", "''", "\"\"", "null", "false", "0x0", "b''"] {
            assert!(Secret::Surely.is_harmless(text), "{text}");
        }
        assert!(!Secret::Surely.is_harmless("1234"));
        for text in ["42", "'+'", "0x10", "'if'", "-1"] {
            assert!(Secret::IfText.is_harmless(text), "{text}");
        }
        for text in ["'abcdef'", "0x401000 \"abcdef\"", "\"1234567890123456789012345\""] {
            assert!(!Secret::IfText.is_harmless(text), "{text}");
        }
    }
}
