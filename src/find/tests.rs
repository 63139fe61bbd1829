//! Finding adapters on machines made of folders.

use super::testing::{NATIVE, SCRIPTED, paths_in, script};
use super::*;
use crate::failure::Kind;

struct Machine {
    root: tempfile::TempDir,
    paths: Paths,
}

impl Machine {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let paths = paths_in(root.path());
        Self { root, paths }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn env_path(&self) -> String {
        format!("relative:{}:{}", self.at("first").display(), self.at("second").display())
    }

    fn find(&self, adapter: &'static Adapter, configured: Configured<'_>) -> Result<Found, Failure> {
        find(adapter, &self.paths, configured, &self.env_path())
    }
}

#[test]
fn the_highest_version_on_path_wins_wherever_it_is() {
    let machine = Machine::new();
    script(&machine.at("first/lldb-dap"), "");
    script(&machine.at("first/lldb-dap-18"), "");
    script(&machine.at("second/lldb-dap-20"), "");
    std::fs::write(machine.at("second/lldb-dap-22"), "not executable").unwrap();
    let found = machine.find(&NATIVE, None).unwrap();
    assert_eq!(found.program, machine.at("second/lldb-dap-20"));
    assert_eq!(found.version.as_deref(), Some("20"));
}

#[test]
fn the_private_folder_goes_before_path() {
    let machine = Machine::new();
    script(&machine.at("first/lldb-dap-22"), "");
    script(&machine.at("data/adapters/native-dap/bin/lldb-dap"), "");
    assert!(machine.find(&NATIVE, None).unwrap().program.ends_with("native-dap/bin/lldb-dap"));
}

#[test]
fn a_plain_name_has_the_version_of_the_folder_it_leads_to() {
    let machine = Machine::new();
    script(&machine.at("llvm-19/bin/lldb-dap"), "");
    std::fs::create_dir(machine.at("first")).unwrap();
    std::os::unix::fs::symlink(machine.at("llvm-19/bin/lldb-dap"), machine.at("first/lldb-dap")).unwrap();
    assert_eq!(machine.find(&NATIVE, None).unwrap().version.as_deref(), Some("19"));
    script(&machine.at("Cellar/llvm/20.1.8/bin/lldb-dap"), "");
    assert_eq!(version::by_place(&machine.at("Cellar/llvm/20.1.8/bin/lldb-dap")).as_deref(), Some("20.1.8"));
}

#[test]
fn a_configured_path_is_the_only_one_looked_at() {
    let machine = Machine::new();
    script(&machine.at("first/lldb-dap-19"), "");
    script(&machine.at("mine/my-lldb"), "");
    let args = ["--repl-mode=auto".to_string()];
    let found = machine.find(&NATIVE, Some((&machine.at("mine/my-lldb"), &args))).unwrap();
    assert_eq!((found.program, found.args, found.version), (machine.at("mine/my-lldb"), args.to_vec(), None));

    for (path, words) in [("mine/none", "does not exist"), ("mine", "is not an executable file")] {
        let failure = machine.find(&NATIVE, Some((&machine.at(path), &[]))).unwrap_err();
        assert_eq!(failure.kind, Kind::Refused);
        assert!(failure.message.contains(words), "{failure}");
        assert!(failure.hints[0].contains("config.toml"), "{failure:?}");
    }
}

#[test]
fn the_configuration_is_read_under_any_name_and_arguments_need_no_path() {
    let machine = Machine::new();
    script(&machine.at("first/lldb-dap-19"), "");
    script(&machine.at("mine/my-lldb"), "");
    let find_with = |text: &str| {
        std::fs::create_dir_all(&machine.paths.config).unwrap();
        std::fs::write(machine.paths.config_file(), text).unwrap();
        let config = Config::load(&machine.paths).unwrap();
        let found = super::find_with(&NATIVE, &machine.paths, &config, &machine.env_path()).unwrap();
        (found.program, found.args)
    };
    let found = find_with("[adapters.native]\nargs = [\"-x\"]\n");
    assert_eq!(found, (machine.at("first/lldb-dap-19"), vec!["-x".to_string()]));
    let found = find_with(&format!("[adapters.native-dap]\npath = {:?}\n", machine.at("mine/my-lldb")));
    assert_eq!(found, (machine.at("mine/my-lldb"), Vec::new()));
}

#[test]
fn a_private_module_runs_with_the_interpreter_it_was_installed_for() {
    let machine = Machine::new();
    let folder = machine.at("data/adapters/scripted");
    std::fs::create_dir_all(folder.join("fakepy-1.2.3.dist-info")).unwrap();
    script(&folder.join("fakepy/__init__.py"), "");
    assert!(machine.find(&SCRIPTED, None).unwrap_err().message.contains("needs Python"));
    script(&machine.at("second/python"), "");
    let found = machine.find(&SCRIPTED, None).unwrap();
    assert_eq!(found.program, machine.at("second/python"));
    assert_eq!((found.module_path, found.version.as_deref()), (Some(folder.clone()), Some("1.2.3")));
    script(&machine.at("real/python3.12"), "");
    std::fs::write(folder.join(INTERPRETER_FILE), format!("{}\n", machine.at("real/python3.12").display())).unwrap();
    assert_eq!(machine.find(&SCRIPTED, None).unwrap().program, machine.at("real/python3.12"));
}

#[test]
fn a_module_beside_its_interpreter_is_seen_without_running_it() {
    let machine = Machine::new();
    script(&machine.at("venv/bin/python3"), "#!/bin/sh\nexit 1\n");
    script(&machine.at("venv/lib/python3.12/site-packages/fakepy/__init__.py"), "");
    std::fs::create_dir(machine.at("venv/lib/python3.12/site-packages/fakepy-2.0.dist-info")).unwrap();
    let env_path = machine.at("venv/bin").display().to_string();
    let found = find(&SCRIPTED, &machine.paths, None, &env_path).unwrap();
    assert_eq!((found.module_path, found.version.as_deref()), (None, Some("2.0")));
    std::fs::create_dir(machine.at("venv/lib/python3.9")).unwrap();
    assert!(find(&SCRIPTED, &machine.paths, None, &env_path).is_err(), "two series: not certain, so it is asked");
}

#[test]
fn what_is_nowhere_is_refused_with_the_command_that_installs_it() {
    let machine = Machine::new();
    script(&machine.at("first/python3"), "#!/bin/sh\nexit 1\n");
    let failure = machine.find(&SCRIPTED, None).unwrap_err();
    assert_eq!(failure.hints, ["bugeye setup scripted"]);
    assert_eq!(failure.message, "scripted is not installed (it debugs python)");
}

#[test]
fn a_question_has_a_limit() {
    let began = Instant::now();
    assert!(ask(Command::new("sleep").arg("30"), Duration::from_millis(50)).is_none());
    assert!(began.elapsed() < Duration::from_secs(5));
    let (status, text) = ask(Command::new("echo").arg("yes"), ASK_LIMIT).unwrap();
    assert!(status.success());
    assert_eq!(text, "yes\n");
}
