//! Settings as they are written, and the mistakes in them.

use super::*;
use crate::failure::Kind;

fn parsed(text: &str) -> Result<Values, Failure> {
    parse(Path::new("config.toml"), text)
}

#[test]
fn an_empty_file_means_the_defaults() {
    assert_eq!(parsed("").unwrap(), Values::default());
    assert_eq!(parsed("# nothing\n[timeouts]\n").unwrap(), Values::default());
}

#[test]
fn every_setting_is_read() {
    let values = parsed(
        r#"
        [timeouts]
        dap_initialize_secs = 1
        launch_secs = 2.5
        request_secs = 3
        inspect_secs = 4
        await_default_secs = 5
        [daemon]
        idle_timeout_minutes = 0
        [output]
        max_events = 7
        max_bytes_mb = 2
        [defaults]
        adapter = "gdb"
        [adapters.lldb-dap]
        path = "~/bin/lldb-dap"
        args = ["--x", "y"]
        [mcp]
        on_close = "keep"
        [diff]
        ignore = ["seed", "tmp_*"]
        [record]
        redact = false
        max_age_days = 0
        max_size_mb = 3
        [agent.prices]
        "llama-3.3" = { input = 1, output = 2.5, cache_read = 0.1 }
        "#,
    )
    .unwrap();
    assert_eq!(values.initialize, Duration::from_secs(1));
    assert_eq!(values.launch, Duration::from_millis(2500));
    assert_eq!(values.request, Duration::from_secs(3));
    assert_eq!(values.inspect, Duration::from_secs(4));
    assert_eq!(values.wait, Duration::from_secs(5));
    assert_eq!(values.idle, None);
    assert_eq!((values.max_events, values.max_bytes), (7, 2 << 20));
    assert_eq!(values.default_adapter.as_deref(), Some("gdb"));
    let (name, settings) = &values.adapters[0];
    assert_eq!(name, "lldb-dap");
    assert_eq!(settings.path.as_deref(), Some(std::env::home_dir().unwrap().join("bin/lldb-dap").as_path()));
    assert_eq!(settings.args, ["--x", "y"]);
    assert_eq!(values.mcp_on_close, "keep");
    assert_eq!(values.diff_ignore, ["seed", "tmp_*"]);
    assert_eq!((values.redact, values.max_age, values.max_size), (false, None, Some(3 << 20)));
    let price = Price { input: 1.0, output: 2.5, cache_read: 0.1, cache_write: 1.0 };
    assert_eq!(values.prices, [("llama-3.3".to_string(), price)]);
}

#[test]
fn a_mistake_names_its_line_and_the_nearest_key() {
    let cases = [
        ("[timeouts]\nlanch_secs = 3", "config.toml:2: no setting of [timeouts]", "`launch_secs`"),
        ("\n[timeout]\n", "config.toml:2: no section", "`timeouts`"),
        ("launch_secs = 3", "config.toml:1: `launch_secs` stands outside", "[timeouts]"),
        ("[adapters.gdb]\npth = 'x'", "config.toml:2: no setting of an adapter", "`path`"),
        ("[zebra]", "no section", "known here: timeouts, daemon"),
        ("timeouts = 3", "must be a section", "[timeouts]"),
        ("[timeouts]\n\nlaunch_secs = \"3\"", "config.toml:3: `launch_secs` must be a number of seconds", ""),
        ("[timeouts]\nlaunch_secs = -1", "config.toml:2:", ""),
        ("[timeouts]\nlaunch_secs = inf", "config.toml:2:", ""),
        ("[output]\nmax_events = 1.5", "must be a whole number", ""),
        ("[adapters.gdb]\nargs = 'x'", "must be a list", ""),
        ("[adapters.lldb]\nway = 'streams'", "config.toml:2: `way` can't be set: lldb is built in", "another name"),
        ("[adapters.moo]\nlanguages = ['moo']", "config.toml:1: the adapter `moo` has no `command`", "command ="),
        ("[adapters.moo]\ncommand = 'moo'", "has no `launch`", "{program}"),
        ("[adapters.moo]\ncommand = 'moo'\nlaunch = {}", "has no `languages` or", "extensions"),
        ("[adapters.moo]\nlaunch = { p = '{progam}' }", "no placeholder `{progam}`", "`{program}`"),
        ("[adapters.moo]\nlaunch = { p = 'x {args}' }", "must be the whole value", ""),
        ("[adapters.moo]\nway = 'pigeon'", "one of \"streams\", \"dials\"", ""),
        (
            "[adapters.moo]\ncommand = 'moo'\nway = 'listens'\nlanguages = ['moo']\nlaunch = {}",
            "has no {port} or {socket}",
            "",
        ),
        ("[record]\nredact = 'yes'", "must be true or false", ""),
        ("[mcp]\non_close = 'maybe'", "\"end\" or \"keep\"", ""),
        ("[diff]\nignore = [1]", "config.toml:2: `ignore` must be a list of names", ""),
        ("[agent]\nprice = {}", "config.toml:2: no setting of [agent]", "`prices`"),
        ("[agent.prices]\nm = 3", "config.toml:2: the price of `m`: it must be a table", ""),
        ("[agent.prices]\n\nm = { input = 3 }", "config.toml:3: the price of `m`: `output` is missing", ""),
        ("[agent.prices]\nm = { input = 3, output = inf }", "`output` must be dollars per million tokens", ""),
        ("[timeouts\n", "config.toml:1:", ""),
    ];
    for (text, message, hint) in cases {
        let failure = parsed(text).unwrap_err();
        assert_eq!(failure.kind, Kind::Usage, "{text}");
        assert!(failure.message.contains(message), "{text}: {failure}");
        assert!(failure.hints.join(" ").contains(hint), "{text}: {:?}", failure.hints);
    }
}

#[test]
fn an_adapter_of_one_s_own_is_read() {
    let values = parsed(
        r#"
        [adapters.moo]
        command = ["moo-adapter", "--port={port}"]
        args = ["-v"]
        way = "listens"
        extensions = [".moo", "cow"]
        launch = { program = "{program}", args = "{args}", deep = { stop = true, n = [1, 0x10, 2.5] } }
        hit_condition = "N"
        catch = { uncaught = "unhandled" }
        "#,
    )
    .unwrap();
    let (_, settings) = &values.adapters[0];
    assert_eq!((settings.path.as_ref(), &settings.args[..]), (None, &["--port={port}".into(), "-v".into()][..]));
    let own = settings.own.as_ref().unwrap();
    assert_eq!((own.program.as_str(), &own.languages[..]), ("moo-adapter", &["moo".into(), "cow".into()][..]));
    let launch = serde_json::Value::Object(own.launch.clone().unwrap());
    assert_eq!(launch.pointer("/deep").unwrap().to_string(), r#"{"n":[1,16,2.5],"stop":true}"#);
    let home = parsed("[adapters.moo]\ncommand = '~/moo'\nlanguages = ['moo']\nattach = { pid = '{pid}' }").unwrap();
    assert_eq!(home.adapters[0].1.path, Some(std::env::home_dir().unwrap().join("moo")));
}

#[test]
fn an_edit_takes_effect_and_a_broken_one_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let paths = Paths {
        runtime: dir.path().join("r"),
        state: dir.path().join("s"),
        data: dir.path().join("d"),
        config: dir.path().to_path_buf(),
    };
    let config = Config::load(&paths).unwrap();
    let same = config.clone();
    std::fs::write(paths.config_file(), "[timeouts]\nlaunch_secs = 7\n").unwrap();
    config.refresh().unwrap();
    assert_eq!(same.launch(), Duration::from_secs(7));
    std::fs::write(paths.config_file(), "[timeouts]\nlaunch_secs = \n").unwrap();
    assert!(config.refresh().is_err());
    assert!(config.refresh().is_err(), "it is said until it is mended");
    assert_eq!(same.launch(), Duration::from_secs(7));
    std::fs::remove_file(paths.config_file()).unwrap();
    config.refresh().unwrap();
    assert_eq!(same.launch(), Duration::from_secs(60));
}

#[test]
fn the_asking_process_comes_first() {
    let environment = [("BUGEYE_REQUEST_TIMEOUT_MS".to_string(), "250".to_string())];
    let config = Config::default();
    assert_eq!(config.request_for(Some(&environment)), Ok(Duration::from_millis(250)));
    assert_eq!(config.request_for(Some(&[])), Ok(Duration::from_secs(30)));
    for wrong in ["soon", "0", "-1", "1.5"] {
        let environment = [("BUGEYE_REQUEST_TIMEOUT_MS".to_string(), wrong.to_string())];
        assert_eq!(config.request_for(Some(&environment)).unwrap_err().kind, crate::failure::Kind::Usage);
    }
    let logs = |value: &str| Config::logs_events(Some(&[("BUGEYE_LOG_EVENTS".to_string(), value.to_string())]));
    assert!(logs("1") && logs("true") && !logs("0") && !logs("False") && !logs(""));
    assert!(!Config::logs_events(Some(&[])));
    let environment = [("BUGEYE_ADAPTER".to_string(), "gdb".to_string())];
    assert_eq!(Config::asked_adapter(Some(&environment)).as_deref(), Some("gdb"));
    assert_eq!(Config::asked_adapter(Some(&[])), None);
}
