//! The edits of texts alone: whatever a file looks like, what is put in comes out again without a trace.

use bugeye::init::json::{self, Format, Shape};
use bugeye::init::{Edit, block, toml};
use bugeye::launch_config::jsonc;
use proptest::prelude::*;
use serde_json::{Value, json};

const PLAIN: Format = Format { key: "mcpServers", shape: Shape::Plain };
const LOCAL: Format = Format { key: "mcp", shape: Shape::Local };
const PATH: &str = "/opt/my \"tools\"/bugeye";

fn data(text: &str) -> Value {
    jsonc::parse(text).unwrap_or_else(|error| panic!("{error} in {text:?}"))
}

#[track_caller]
fn text(edit: Result<Edit, String>) -> String {
    match edit {
        Ok(Edit::Text(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// Adds, adds again, removes, removes again; answers what was between.
#[track_caller]
fn there_and_back(old: &str, format: Format, command: &str) -> String {
    let new = text(json::add(Some(old), format, command, false));
    let is_blank = old.trim_start_matches('\u{feff}').trim().is_empty();
    let mut wanted = if is_blank { json!({}) } else { data(old) };
    let entry = match format.shape {
        Shape::Local => json!({ "type": "local", "command": [command, "mcp"], "enabled": true }),
        _ => json!({ "command": command, "args": ["mcp"] }),
    };
    wanted[format.key]["bugeye"] = entry;
    assert_eq!(data(&new), wanted, "{old:?} became {new:?}");
    assert_eq!(json::add(Some(&new), format, command, false), Ok(Edit::Same), "{new:?}");
    assert_eq!(json::remove(&new, format, false), Ok(Edit::Text(old.to_string())), "{new:?}");
    assert_eq!(json::remove(old, format, false), Ok(Edit::Same), "{old:?}");
    // Another program, and back.
    let moved = text(json::add(Some(&new), format, "/elsewhere/bugeye", false));
    assert_eq!(json::remove(&moved, format, false), Ok(Edit::Text(old.to_string())), "{moved:?}");
    new
}

#[test]
fn a_file_that_is_not_there_is_made_and_goes() {
    let new = text(json::add(None, PLAIN, "bugeye", false));
    let lines = [
        "{",
        "  \"mcpServers\": {",
        "    \"bugeye\": { \"command\": \"bugeye\", \"args\": [\"mcp\"] }",
        "  }",
        "}",
        "",
    ];
    assert_eq!(new, lines.join("\n"));
    assert_eq!(json::remove(&new, PLAIN, false), Ok(Edit::Gone));
}

/// All the small forms, with the exact text that each becomes.
#[test]
fn each_form_of_a_file_has_a_form_of_its_own_with_the_entry() {
    const E: &str = r#"{ "command": "bugeye", "args": ["mcp"] }"#;
    let forms = [
        ("", r#"{ "mcpServers": { "bugeye": E}}"#),
        ("\n", "{ \"mcpServers\": { \"bugeye\": E}}\n"),
        ("\u{feff}", "\u{feff}{ \"mcpServers\": { \"bugeye\": E}}"),
        ("{}", r#"{"mcpServers": { "bugeye": E}}"#),
        ("{}\n", "{\"mcpServers\": { \"bugeye\": E}}\n"),
        ("{ }", r#"{ "mcpServers": { "bugeye": E} }"#),
        ("{\n}\n", "{ \"mcpServers\": { \"bugeye\": E}\n}\n"),
        ("{\r\n}\r\n", "{ \"mcpServers\": { \"bugeye\": E}\r\n}\r\n"),
        ("{ // none\n}", "{ \"mcpServers\": { \"bugeye\": E} // none\n}"),
        (r#"{"mcpServers":{}}"#, r#"{"mcpServers":{"bugeye": E}}"#),
        (r#"{"mcpServers":{ }}"#, r#"{"mcpServers":{ "bugeye": E }}"#),
        (r#"{ "mcpServers": {}}"#, r#"{ "mcpServers": {"bugeye": E}}"#),
        ("{\n  \"mcpServers\": {\n  }\n}\n", "{\n  \"mcpServers\": { \"bugeye\": E\n  }\n}\n"),
        (r#"{"a":1}"#, r#"{"mcpServers": { "bugeye": E},"a":1}"#),
        (r#"{ "a": 1 }"#, r#"{ "mcpServers": { "bugeye": E}, "a": 1 }"#),
        ("{\n  \"a\": 1\n}", "{\n  \"mcpServers\": {\n    \"bugeye\": E\n  },\n  \"a\": 1\n}"),
        ("{\r\n\t\"a\": 1,\r\n}", "{\r\n\t\"mcpServers\": {\r\n\t\t\"bugeye\": E\r\n\t},\r\n\t\"a\": 1,\r\n}"),
        ("{\n\"a\": 1}", "{\n\"mcpServers\": {\n  \"bugeye\": E\n},\n\"a\": 1}"),
        (
            "{ // first\n  // second\n  \"a\": 1 }",
            "{ // first\n  // second\n  \"mcpServers\": {\n    \"bugeye\": E\n  },\n  \"a\": 1 }",
        ),
        (
            "{\n    \"mcpServers\": {\n        \"x\": { \"command\": \"x\" },\n    },\n}",
            "{\n    \"mcpServers\": {\n        \"bugeye\": E,\n        \"x\": { \"command\": \"x\" },\n    },\n}",
        ),
        (
            "{\"mcpServers\": { // mine\n  /* x */ \"x\": {} }}",
            "{\"mcpServers\": { // mine\n  /* x */ \"bugeye\": E, \"x\": {} }}",
        ),
        (r#"{"mcp\u0053ervers": {"x": {}}}"#, r#"{"mcp\u0053ervers": {"bugeye": E,"x": {}}}"#),
    ];
    let mut seen = Vec::new();
    for (old, new) in forms {
        let became = there_and_back(old, PLAIN, "bugeye");
        assert_eq!(became, new.replace('E', E), "{old:?}");
        assert!(!seen.contains(&became), "two files become {became:?}");
        seen.push(became);
        there_and_back(old, PLAIN, PATH);
    }
}

/// Every pair of blanks around, in and between: no two files may become the same.
#[test]
fn no_two_files_become_the_same() {
    let blanks =
        ["", " ", "  ", "\n", "\n  ", "\r\n", "\r\n  ", "\n\n", "\t", "\n    ", " \n", "// c\n", "/**/", " /**/ "];
    let mut files = vec![String::new(), " ".into(), "\n".into()];
    for one in blanks {
        for other in blanks {
            files.push(format!("{{{one}}}{other}"));
            files.push(format!("{one}{{}}{other}"));
            files.push(format!("{{{one}\"mcpServers\": {{{other}}}}}"));
            files.push(format!("{{\"mcpServers\": {{{one}}}{other}}}"));
            files.push(format!("{{{one}\"a\": 1{other}}}"));
            files.push(format!("{{\n  \"mcpServers\": {{{one}\"x\": 1{other}}}}}\n"));
            files.push(format!("{{\n  \"mcpServers\":{one}{{{other}}},\n  \"a\": 1\n}}\n"));
        }
    }
    files.sort();
    files.dedup();
    assert!(files.len() > 1000, "{}", files.len());
    let mut new: Vec<String> = files.iter().map(|old| there_and_back(old, PLAIN, "bugeye")).collect();
    new.push(text(json::add(None, PLAIN, "bugeye", false)));
    new.sort();
    let all = new.len();
    new.dedup();
    assert_eq!(new.len(), all);
}

#[test]
fn the_newer_form_of_opencode_is_kept() {
    let old = "{\n  \"mcp\": {\n    \"servers\": {\n      \"x\": { \"type\": \"local\", \"command\": [\"x\"] },\n    },\n  },\n}\n";
    let new = text(json::add(Some(old), LOCAL, "bugeye", false));
    let mut wanted = data(old);
    wanted["mcp"]["servers"]["bugeye"] = json!({ "type": "local", "command": ["bugeye", "mcp"] });
    assert_eq!(data(&new), wanted);
    assert_eq!(json::remove(&new, LOCAL, false), Ok(Edit::Text(old.into())));
    // A server that is only called so.
    there_and_back("{\"mcp\": {\"servers\": {\"type\": \"local\", \"command\": [\"s\"]}}}", LOCAL, "bugeye");
}

#[test]
fn what_the_user_wrote_stays() {
    let entries = [
        r#"{"command": "bugeye", "args": ["mcp", "--http", "127.0.0.1:1"]}"#,
        r#"{"command": "bugeye", "args": ["mcp"], "env": {"BUGEYE_ADAPTER": "gdb"}}"#,
        r#"{"command": "docker", "args": ["mcp"]}"#,
        r#"{"url": "http://localhost:1"}"#,
        "null",
    ];
    for entry in entries {
        let old = format!("{{\n  \"mcpServers\": {{\"a\": {{}}, \"bugeye\": {entry} // mine\n  }}\n}}");
        assert_eq!(json::add(Some(&old), PLAIN, "bugeye", false), Ok(Edit::Kept), "{entry}");
        assert_eq!(json::remove(&old, PLAIN, false), Ok(Edit::Kept), "{entry}");
        let new = text(json::add(Some(&old), PLAIN, "bugeye", true));
        assert_eq!(data(&new)["mcpServers"], json!({ "a": {}, "bugeye": { "command": "bugeye", "args": ["mcp"] } }));
        let gone = text(json::remove(&old, PLAIN, true));
        assert_eq!(data(&gone), json!({ "mcpServers": { "a": {} } }), "{gone}");
        assert!(gone.contains("// mine"), "{gone}");
    }
}

/// Agents write their files anew, with the same data.
#[test]
fn what_an_agent_wrote_anew_is_taken_out() {
    let files = [
        (
            "{\n  \"mcpServers\": {\n    \"bugeye\": {\n      \"command\": \"bugeye\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  },\n  \"n\": 1\n}",
            json!({ "mcpServers": {}, "n": 1 }),
        ),
        (
            r#"{"mcpServers":{"a":{},"bugeye":{"type":"stdio","command":"/x/bugeye","args":["mcp"],"env":{}}}}"#,
            json!({ "mcpServers": { "a": {} } }),
        ),
        (
            "{\"mcpServers\": { // c\n\"bugeye\": {\"command\":\"bugeye\",\"args\":[\"mcp\"]} }}",
            json!({ "mcpServers": {} }),
        ),
        (
            "{\"mcpServers\": {\"a\": 1, // c\n\"bugeye\": {\"command\":\"bugeye\",\"args\":[\"mcp\"]}, \"b\": 2 }}",
            json!({ "mcpServers": { "a": 1, "b": 2 } }),
        ),
        (
            "{\"mcpServers\": {\"a\": 1,\n  \"bugeye\": {\"command\":\"bugeye\",\"args\":[\"mcp\"]},\n}}",
            json!({ "mcpServers": { "a": 1 } }),
        ),
    ];
    for (old, wanted) in files {
        assert_eq!(
            json::add(Some(old), PLAIN, if old.contains("/x/") { "/x/bugeye" } else { "bugeye" }, false),
            Ok(Edit::Same)
        );
        let new = text(json::remove(old, PLAIN, false));
        assert_eq!(data(&new), wanted, "{old} became {new}");
    }
}

#[test]
fn a_file_that_is_not_understood_is_refused_with_the_place() {
    let files = [
        ("{\n  \"a\": 1\n  \"b\": 2\n}", "line 3"),
        ("{\n", "line 2"),
        ("// only a comment", "line 1"),
        ("[]", "no object"),
        ("{\"mcpServers\": []}", "`mcpServers` is no object"),
        ("{\"mcpServers\": null}", "`mcpServers` is no object"),
        ("{\"mcpServers\": {}, \"mcpServers\": {}}", "`mcpServers` twice"),
        ("{,}", "line 1"),
    ];
    for (old, words) in files {
        let error = json::add(Some(old), PLAIN, "bugeye", false).unwrap_err();
        assert!(error.contains(words), "{old:?}: {error}");
    }
    let error = toml::add(Some("a = 1\nb = = 2\n"), "bugeye", false).unwrap_err();
    assert!(error.contains("line 2"), "{error}");
    for old in ["mcp_servers = 3", "mcp_servers = { a = { command = \"x\" } }", "[[mcp_servers]]\na = 1\n"] {
        toml::add(Some(old), "bugeye", false).unwrap_err();
    }
    for old in ["<!-- bugeye:begin -->", "<!-- bugeye:end --><!-- bugeye:begin -->"] {
        block::add(Some(old)).unwrap_err();
        block::remove(old).unwrap_err();
    }
}

#[track_caller]
fn toml_there_and_back(old: &str, command: &str) -> String {
    let read = |text: &str| text.trim_start_matches('\u{feff}').parse::<::toml::Table>().unwrap();
    let new = text(toml::add(Some(old), command, false));
    let mut there = read(&new);
    let servers = there.get_mut("mcp_servers").unwrap().as_table_mut().unwrap();
    let entry = servers.remove("bugeye").unwrap();
    assert_eq!(entry["command"].as_str(), Some(command));
    assert_eq!(entry["args"].as_array().unwrap(), &[::toml::Value::from("mcp")]);
    if servers.is_empty() && !old.contains("mcp_servers]") {
        there.remove("mcp_servers");
    }
    // By what is written: `nan` is not equal to itself.
    assert_eq!(format!("{there:?}"), format!("{:?}", read(old)), "{old:?} became {new:?}");
    assert_eq!(toml::add(Some(&new), command, false), Ok(Edit::Same));
    assert_eq!(toml::remove(&new, false), Ok(Edit::Text(old.into())), "{new:?}");
    assert_eq!(toml::remove(old, false), Ok(Edit::Same));
    let moved = text(toml::add(Some(&new), "/elsewhere/bugeye", false));
    assert_eq!(toml::remove(&moved, false), Ok(Edit::Text(old.into())), "{moved:?}");
    new
}

#[test]
fn a_table_is_put_at_the_end() {
    const T: &str = "[mcp_servers.bugeye]\ncommand = \"bugeye\"\nargs = [\"mcp\"]";
    assert_eq!(toml::add(None, "bugeye", false), Ok(Edit::Text(format!("{T}\n"))));
    assert_eq!(toml::remove(&format!("{T}\n"), false), Ok(Edit::Gone));
    assert_eq!(toml_there_and_back("", "bugeye"), format!("\n\n{T}"));
    assert_eq!(toml_there_and_back("\n", "bugeye"), format!("\n\n{T}\n"));
    assert_eq!(toml_there_and_back("model = 1", "bugeye"), format!("model = 1\n\n{T}"));
    assert_eq!(toml_there_and_back("model = 1\n", "bugeye"), format!("model = 1\n\n{T}\n"));
    let crlf = format!("a = 1\r\n\r\n{T}\r\n", T = T.replace('\n', "\r\n"));
    assert_eq!(toml_there_and_back("a = 1\r\n", "bugeye"), crlf);
    toml_there_and_back("\u{feff}# c\n[mcp_servers]\n", PATH);
    // What comes after it later stays.
    let more = format!("model = 1\n\n{T}\n\n# mine\n[tui]\nx = 1\n");
    assert_eq!(toml::remove(&more, false), Ok(Edit::Text("model = 1\n\n# mine\n[tui]\nx = 1\n".into())));
}

#[test]
fn a_table_that_the_user_wrote_stays() {
    let old = "a = \"\"\"\n[mcp_servers.bugeye]\n\"\"\"\n\n[mcp_servers.bugeye]\ncommand = \"bugeye\"\nargs = [\n  \"mcp\", # x\n]\n\n[mcp_servers.bugeye.env]\nA = \"1\"\n\n# of z\n[z]\n";
    assert_eq!(toml::add(Some(old), "bugeye", false), Ok(Edit::Kept));
    assert_eq!(toml::remove(old, false), Ok(Edit::Kept));
    let new = text(toml::add(Some(old), "bugeye", true));
    let gone = "a = \"\"\"\n[mcp_servers.bugeye]\n\"\"\"\n\n\n\n\n\n# of z\n[z]\n";
    assert_eq!(new, gone.replacen("\n\n\n", "\n\n[mcp_servers.bugeye]\ncommand = \"bugeye\"\nargs = [\"mcp\"]\n", 1));
    assert_eq!(toml::remove(old, true), Ok(Edit::Text(gone.into())));
    // An entry that is not in a table of its own is said to be there, and left.
    let dotted = "mcp_servers.bugeye.command = \"x\"\n";
    assert_eq!(toml::add(Some(dotted), "bugeye", false), Ok(Edit::Kept));
    toml::add(Some(dotted), "bugeye", true).unwrap_err();
}

#[test]
fn a_block_is_put_at_the_end_of_a_text() {
    for old in ["", "\n", "# Title", "# Title\n", "# Title\n\n", "a\r\nb\r\n", "a\r\nb", "\u{feff}x\n", "a\r"] {
        let new = text(block::add(Some(old)));
        assert_eq!(block::add(Some(&new)), Ok(Edit::Same), "{new:?}");
        assert_eq!(block::remove(&new), Ok(Edit::Text(old.into())), "{new:?}");
        assert_eq!(block::remove(old), Ok(Edit::Same));
        // What an older version said is replaced, and comes out all the same.
        let older = new.replace("instead of guessing", "often");
        assert_eq!(block::add(Some(&older)), Ok(Edit::Text(new.clone())));
        assert_eq!(block::remove(&older), Ok(Edit::Text(old.into())));
    }
    let made = text(block::add(None));
    assert_eq!(block::remove(&made), Ok(Edit::Gone));
    assert_eq!(block::remove(&format!("{made}more\n")), Ok(Edit::Text("more\n".into())));
}

/// Blanks and comments, as they may stand between any two things.
fn gap() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => Just(""), 4 => Just(" "), 3 => Just("\n"), 2 => Just("\r\n"), 2 => Just("\t"), 3 => Just("\n  "),
        1 => Just("\r\n\t\t"), 1 => Just("/* , } \" */"), 1 => Just("// { \"mcpServers\": \n"), 1 => Just("//\r\n"),
    ];
    prop::collection::vec(piece, 0..3).prop_map(|pieces| pieces.concat())
}

fn scalar() -> impl Strategy<Value = String> {
    let strings = prop::collection::vec(
        prop_oneof![
            Just("a"),
            Just("{"),
            Just("}"),
            Just("\\\""),
            Just("//"),
            Just("/*"),
            Just(","),
            Just("é"),
            Just("\\\\"),
            Just("\\u0041")
        ],
        0..5,
    );
    prop_oneof![
        strings.prop_map(|pieces| format!("\"{}\"", pieces.concat())),
        Just("null".into()),
        Just("-1.5e3".into()),
        Just("true".into()),
        Just("12345678901234567890".into()),
    ]
}

/// An object with these members; each may be followed by any gap, the last perhaps by a comma.
fn object(members: Vec<(String, String)>, gaps: &[String], comma: bool) -> String {
    let mut next = gaps.iter().cycle().cloned();
    let mut gap = || next.next().unwrap_or_default();
    let count = members.len();
    let mut out = String::from("{");
    for (index, (key, value)) in members.into_iter().enumerate() {
        let end = if index + 1 < count || comma { "," } else { "" };
        out += &format!("{}\"{key}\"{}:{}{value}{}{end}", gap(), gap(), gap(), gap());
    }
    out + &gap() + "}"
}

fn value() -> impl Strategy<Value = String> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        let gaps = || prop::collection::vec(gap(), 1..4);
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..3), gaps(), any::<bool>()).prop_map(|(values, gaps, comma)| {
                let members = values.into_iter().enumerate().map(|(index, value)| (format!("k{index}"), value));
                object(members.collect(), &gaps, comma)
            }),
            (prop::collection::vec(inner, 0..3), gap())
                .prop_map(|(values, gap)| format!("[{gap}{}]", values.join(&format!("{gap},")))),
        ]
    })
}

/// A whole file: with or without the key, in any place, with or without members.
fn file() -> impl Strategy<Value = String> {
    let members = || prop::collection::vec(value(), 0..4);
    let gaps = || prop::collection::vec(gap(), 1..6);
    let servers = prop::option::of((members(), gaps(), any::<bool>(), any::<prop::sample::Index>()));
    (members(), servers, gaps(), any::<bool>(), any::<bool>(), gap()).prop_map(
        |(values, servers, gaps, comma, mark, tail)| {
            let named = |values: Vec<String>| {
                let pairs = values.into_iter().enumerate().map(|(index, value)| (format!("s{index}"), value));
                pairs.collect::<Vec<_>>()
            };
            let mut members = named(values);
            if let Some((values, gaps, comma, place)) = servers {
                let inner = named(values);
                let comma = comma && !inner.is_empty();
                let place = place.index(members.len() + 1);
                members.insert(place, ("mcpServers".into(), object(inner, &gaps, comma)));
            }
            let comma = comma && !members.is_empty();
            format!("{}{}{}{tail}", if mark { "\u{feff}" } else { "" }, gaps[0], object(members, &gaps, comma))
        },
    )
}

/// A statement of TOML; `N` is its number, so that no key is there twice.
fn statement() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("# [mcp_servers.bugeye]"),
        Just(""),
        Just("kN = 1 # c"),
        Just("kN = nan"),
        Just("kN = '[x]'"),
        Just("kN = \"\"\"\n[mcp_servers.bugeye]\n\\\"\"\"\""),
        Just("kN = '''\n[a]'''"),
        Just("kN = [\n  [1], # ]\n  [2],\n]"),
        Just("kN = { a = \"}\" }"),
        Just("[tN]"),
        Just("  [tN.\"a]b\"]"),
        Just("[[lN]]"),
        Just("[mcp_servers.sN]"),
        Just("[mcp_servers.sN.env]"),
        Just("kN.x = 2026-01-01"),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_json_comes_back(old in file(), absolute in any::<bool>()) {
        there_and_back(&old, PLAIN, if absolute { PATH } else { "bugeye" });
    }

    #[test]
    fn any_toml_comes_back(
        parts in prop::collection::vec(statement(), 0..8),
        crlf in any::<bool>(), ended in any::<bool>(), mark in any::<bool>(),
    ) {
        let numbered = parts.iter().enumerate().map(|(index, part)| part.replace('N', &index.to_string()));
        let mut old = numbered.collect::<Vec<_>>().join("\n");
        if ended && !old.is_empty() {
            old.push('\n');
        }
        if crlf {
            old = old.replace('\n', "\r\n");
        }
        if mark {
            old.insert(0, '\u{feff}');
        }
        toml_there_and_back(&old, "bugeye");
    }

    #[test]
    fn any_text_comes_back(old in "(\u{feff})?[a\r\n #]{0,20}") {
        let new = text(block::add(Some(&old)));
        prop_assert_eq!(block::remove(&new), Ok(Edit::Text(old)));
    }

    /// Whatever it is given, it answers.
    #[test]
    fn no_text_is_too_odd(old in "[{}\\[\\]\",:/*a\\\\ \n=.#']{0,30}") {
        let _ = json::add(Some(&old), PLAIN, "bugeye", true);
        let _ = json::remove(&old, PLAIN, true);
        let _ = toml::add(Some(&old), "bugeye", true);
        let _ = toml::remove(&old, true);
    }
}
