//! Installing with package managers that are scripts.

use std::fs;
use std::path::Path;

use super::*;
use crate::find::testing::{NATIVE, SCRIPTED, paths_in, script};

/// A Python whose pip writes a package with this text, or fails.
fn fake_python(root: &Path, pip: &str) -> String {
    script(
        &root.join("bin/python3"),
        &format!(
            "#!/bin/sh\nif [ \"$1\" = -c ]; then echo \"$0\"; exit; fi\nwhile [ \"$1\" != --target ]; do shift; done\n{pip}\n"
        ),
    );
    format!("{}:/usr/bin:/bin", root.join("bin").display())
}

fn install_fake(root: &Path, env_path: &str) -> (Result<(), Failure>, Vec<String>) {
    let paths = paths_in(root);
    let mut said = Vec::new();
    let mut report = |text: &str| said.push(text.to_string());
    let result = Installer {
        adapter: &SCRIPTED,
        paths: &paths,
        env_path: env_path.into(),
        permission: Permission::default(),
        report: &mut report,
    }
    .run();
    (result, said)
}

const WRITES: &str = "mkdir -p \"$2/fakepy\" \"$2/fakepy-1.2.3.dist-info\" && echo \"$3\" > \"$2/fakepy/__init__.py\"";

#[test]
fn a_module_goes_into_the_private_folder_and_is_found_there() {
    let root = tempfile::tempdir().unwrap();
    let env_path = fake_python(root.path(), WRITES);
    for _ in 0..2 {
        let (result, said) = install_fake(root.path(), &env_path);
        result.unwrap();
        assert_eq!(said, ["installing fakepy==1.2.3 with python3 -m pip"]);
        let found = find::find(&SCRIPTED, &paths_in(root.path()), None, "").unwrap();
        assert_eq!(found.version.as_deref(), Some("1.2.3"));
        assert_eq!(found.program, root.path().join("bin/python3"));
    }
    let mut left: Vec<_> =
        fs::read_dir(root.path().join("data/adapters")).unwrap().flatten().map(|e| e.file_name()).collect();
    left.sort();
    assert_eq!(left, [".lock", "scripted"]);
}

#[test]
fn a_failed_install_keeps_what_was_there_and_shows_why() {
    let root = tempfile::tempdir().unwrap();
    install_fake(root.path(), &fake_python(root.path(), WRITES)).0.unwrap();
    let env_path = fake_python(root.path(), "echo 'Could not find a version'; exit 1");
    let failure = install_fake(root.path(), &env_path).0.unwrap_err();
    assert!(failure.message.starts_with("fakepy==1.2.3 could not be installed"), "{failure}");
    assert!(failure.causes[0].contains("Could not find a version"), "{failure}");
    assert!(find::find(&SCRIPTED, &paths_in(root.path()), None, "").is_ok());
}

#[test]
fn without_pip_a_virtual_environment_lends_its_own() {
    let root = tempfile::tempdir().unwrap();
    let text = format!(
        "#!/bin/sh\n\
         [ \"$2\" = pip ] && echo \"$0: No module named pip\" && exit 1\n\
         [ \"$2\" = venv ] || exit 0\n\
         mkdir -p \"$4/bin\"; cat > \"$4/bin/python\" <<'END'\n#!/bin/sh\nwhile [ \"$1\" != --target ]; do shift; done\n{WRITES}\nEND\n\
         chmod +x \"$4/bin/python\"\n"
    );
    script(&root.path().join("bin/python3"), &text);
    let env_path = format!("{}:/usr/bin:/bin", root.path().join("bin").display());
    let (result, said) = install_fake(root.path(), &env_path);
    result.unwrap();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(root.path().join("data/adapters/scripted/fakepy/__init__.py").exists());
    assert!(!root.path().join("data/adapters/.scripted.venv").exists());
}

#[test]
fn no_package_manager_says_what_to_do_by_hand() {
    let root = tempfile::tempdir().unwrap();
    let paths = paths_in(root.path());
    let mut installer = Installer {
        adapter: &NATIVE,
        paths: &paths,
        env_path: root.path().display().to_string(),
        permission: Permission::default(),
        report: &mut |_| {},
    };
    let failure = installer.run().unwrap_err();
    assert!(failure.hints[0].contains("[adapters.native-dap] path"), "{failure:?}");
}

/// A machine whose apt knows a package only after an update, and whose sudo asks nothing.
fn fake_apt(root: &Path, install: &str) -> String {
    let log = root.join("log");
    let bin = root.join("bin");
    script(&bin.join("sudo"), "#!/bin/sh\n[ \"$1\" = -n ] && shift\nexec \"$@\"\n");
    let known = format!(
        "[ -e {0} ] && grep -q update {0} && echo 'lldb-18:' && echo '  Candidate: 1:18'\nexit 0",
        log.display()
    );
    script(&bin.join("apt-cache"), &format!("#!/bin/sh\n{known}\n"));
    let text =
        format!("#!/bin/sh\necho \"$DEBIAN_FRONTEND $@\" >> {}\n[ $1 = update ] && exit 0\n{install}\n", log.display());
    script(&bin.join("apt-get"), &text);
    format!("{}:/usr/bin:/bin", bin.display())
}

fn install_package(root: &Path, env_path: &str) -> (Result<(), Failure>, String) {
    let paths = paths_in(root);
    let permission = Permission::default();
    let mut report = |_: &str| {};
    let mut installer =
        Installer { adapter: &NATIVE, paths: &paths, env_path: env_path.into(), permission, report: &mut report };
    let result = installer.run();
    (result, fs::read_to_string(root.join("log")).unwrap())
}

#[test]
fn lists_that_know_no_package_are_fetched_once() {
    let root = tempfile::tempdir().unwrap();
    let env_path = fake_apt(root.path(), "exit 0");
    let (result, log) = install_package(root.path(), &env_path);
    result.unwrap();
    assert_eq!(log, "noninteractive update\nnoninteractive install -y --no-install-recommends --no-remove lldb-18\n");
}

#[test]
fn a_package_that_would_drive_out_another_is_left_to_the_user() {
    let root = tempfile::tempdir().unwrap();
    let env_path = fake_apt(root.path(), "echo 'E: Packages need to be removed but remove is disabled.'; exit 100");
    let failure = install_package(root.path(), &env_path).0.unwrap_err();
    assert!(failure.message.starts_with("lldb-18 would take the place of another package"), "{failure}");
    let env_path = fake_apt(root.path(), "echo 'E: Unable to fetch'; exit 100");
    let failure = install_package(root.path(), &env_path).0.unwrap_err();
    assert!(failure.causes[0].contains("Unable to fetch"), "{failure}");
    assert!(failure.hints[0].contains("apt-get install -y lldb-18"), "{failure:?}");
}
