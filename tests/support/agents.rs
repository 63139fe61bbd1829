//! Real coding agents from npm, installed once (`scripts/agents`).

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program of an agent: `claude`, `codex`.
pub fn program(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/agents");
    let done = Command::new(script).arg(name).env("CARGO_TARGET_DIR", target).output().unwrap();
    assert!(done.status.success(), "{name} can't be installed: {}", String::from_utf8_lossy(&done.stderr));
    let line = String::from_utf8(done.stdout).unwrap();
    let path = line.trim().strip_prefix(&format!("{name} ")).unwrap_or_else(|| panic!("no path in {line:?}"));
    path.into()
}
