//! Adapters that only have what finding, installing and greeting need.

use super::*;
use crate::adapters::debugpy::DEBUGPY;
use crate::adapters::lldb::LLDB;
use crate::adapters::{Find, Install};

pub static NATIVE: Adapter = Adapter {
    id: "native-dap",
    aliases: &["native"],
    languages: &["c", "rust"],
    install: Install { setup_name: "native", ..LLDB.install },
    ..LLDB
};

pub static SCRIPTED: Adapter = Adapter {
    id: "scripted",
    aliases: &["script"],
    languages: &["python"],
    find: Find { python_module: Some("fakepy"), ..DEBUGPY.find },
    install: Install { setup_name: "scripted", pip: Some("fakepy==1.2.3"), ..DEBUGPY.install },
    ..DEBUGPY
};

pub fn paths_in(root: &Path) -> Paths {
    Paths {
        runtime: root.join("runtime"),
        state: root.join("state"),
        data: root.join("data"),
        config: root.join("config"),
    }
}

/// An executable script. Written by another process: a file that is open for writing in this one, or in a child
/// that another test's thread forks meanwhile, can't be run.
pub fn script(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let writes = ["-c", "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\""];
    let status = Command::new("/bin/sh").args(writes).arg(path).arg(text).status().unwrap();
    assert!(status.success());
}
