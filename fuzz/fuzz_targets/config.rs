//! `config.toml`: any text is settings, or a failure that names its place.

#![no_main]

use bugeye::config::Config;
use bugeye::paths::Paths;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // Settings are only ever read from a file; one per process, in memory where there is /dev/shm.
    let base = if std::path::Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() };
    let config = base.join(format!("bugeye-fuzz-{}", std::process::id()));
    let _ = std::fs::create_dir(&config);
    let nowhere = config.join("nowhere");
    let paths = Paths { runtime: nowhere.clone(), state: nowhere.clone(), data: nowhere, config };
    std::fs::write(paths.config_file(), data).expect("a file in a temporary directory");
    if let Err(failure) = Config::load(&paths) {
        assert!(!failure.message.is_empty());
    }
});
