//! What Cargo has built, by its own messages, and the environment in which it would start it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::Failure;
use crate::locate::{Build, Kept, Plan};

/// One program that was built.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Artifact {
    pub package_id: String,
    pub name: String,
    /// `lib`, `bin`, `test`, `example`, `bench`.
    pub kind: String,
    pub manifest: PathBuf,
    pub executable: PathBuf,
    /// It was built with a test harness.
    pub is_test: bool,
}

impl Artifact {
    /// The package's folder.
    pub fn root(&self) -> &Path {
        self.manifest.parent().unwrap_or(Path::new("/"))
    }

    /// The options that choose it and nothing else.
    pub fn flags(&self) -> String {
        match self.kind.as_str() {
            "bin" | "test" | "example" | "bench" => format!("--{} {}", self.kind, self.name),
            _ => "--lib".into(),
        }
    }

    pub fn package(&self) -> &str {
        // `path+file:///home/me/app#name@0.1.0`, `…/app#0.1.0`, or of older versions `name 0.1.0 (path…)`.
        let Some((source, tail)) = self.package_id.rsplit_once('#') else {
            return self.package_id.split(' ').next().unwrap_or_default();
        };
        match tail.split_once('@') {
            Some((name, _)) => name,
            None => source.trim_end_matches('/').rsplit('/').next().unwrap_or_default(),
        }
    }
}

/// Everything that Cargo said it has built.
#[derive(Debug, Clone, Default)]
pub struct Built {
    pub artifacts: Vec<Artifact>,
    /// By package: what its build script sets for its programs, and folders with libraries.
    scripts: BTreeMap<String, (Vec<(String, String)>, Vec<String>)>,
    /// Libraries of the toolchain are linked dynamically.
    needs_toolchain: bool,
}

impl Built {
    /// Reads the lines of `--message-format=json`.
    pub fn read(output: &str) -> Self {
        let mut built = Self::default();
        for message in output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            match message["reason"].as_str() {
                Some("compiler-artifact") => built.add(&message),
                Some("build-script-executed") => {
                    let pair = |pair: &Value| Some((pair[0].as_str()?.to_string(), pair[1].as_str()?.to_string()));
                    let env = message["env"].as_array().into_iter().flatten().filter_map(pair).collect();
                    let paths = texts(&message["linked_paths"]).map(Into::into).collect();
                    built.scripts.insert(text(&message["package_id"]), (env, paths));
                }
                _ => {}
            }
        }
        built
    }

    fn add(&mut self, message: &Value) {
        let target = &message["target"];
        let kinds: Vec<&str> = texts(&target["kind"]).collect();
        self.needs_toolchain |= kinds.iter().any(|kind| ["dylib", "proc-macro"].contains(kind));
        let Some(executable) = message["executable"].as_str() else { return };
        let is_test = message["profile"]["test"].as_bool().unwrap_or(false);
        if kinds.contains(&"custom-build") {
            return;
        }
        self.artifacts.push(Artifact {
            package_id: text(&message["package_id"]),
            name: text(&target["name"]),
            kind: kinds.first().map_or_else(String::new, |kind| (*kind).into()),
            manifest: PathBuf::from(text(&message["manifest_path"])),
            executable: PathBuf::from(executable),
            is_test,
        });
    }

    /// What `cargo run` could run.
    pub fn programs(&self) -> impl Iterator<Item = &Artifact> {
        self.artifacts
            .iter()
            .filter(|artifact| !artifact.is_test && ["bin", "example"].contains(&artifact.kind.as_str()))
    }

    /// What `cargo test` would run.
    pub fn suites(&self) -> impl Iterator<Item = &Artifact> {
        self.artifacts.iter().filter(|artifact| artifact.is_test)
    }

    /// The variables that Cargo sets for a program it starts.
    pub fn environment(&self, artifact: &Artifact, package: &Package, kept: &Kept) -> Vec<(String, String)> {
        let mut env = package.variables(artifact);
        let (own, _) = self.scripts.get(&artifact.package_id).cloned().unwrap_or_default();
        env.extend(own);
        env.extend(configured(&kept.cwd, &kept.env));
        env.push(("LD_LIBRARY_PATH".into(), self.libraries(artifact, package, kept)));
        env
    }

    fn libraries(&self, artifact: &Artifact, package: &Package, kept: &Kept) -> String {
        let folder = artifact.executable.parent().unwrap_or(Path::new("/"));
        // Tests and examples lie in a folder beside the libraries'.
        let inner = ["deps", "examples"].iter().any(|name| folder.ends_with(name));
        let output = if inner { folder.parent().unwrap_or(folder) } else { folder };
        let within = |path: &&str| Path::new(path).starts_with(output);
        let linked = self.scripts.values().flat_map(|(_, paths)| paths);
        let mut folders: Vec<String> = linked
            .map(|path| path.split_once('=').map_or(path.as_str(), |(_, path)| path))
            .filter(within)
            .map(Into::into)
            .collect();
        folders.extend([output.join("deps"), output.to_path_buf()].map(|path| path.to_string_lossy().into_owned()));
        folders.extend(package.toolchain.clone());
        let before = kept.env.iter().rev().find(|(name, _)| name == "LD_LIBRARY_PATH");
        folders.extend(before.map(|(_, value)| value.clone()).filter(|value| !value.is_empty()));
        folders.join(":")
    }
}

/// The variables that `[env]` of Cargo's settings sets, from the folder upwards: the nearest counts, and what the caller has
/// set stays unless it is forced.
fn configured(cwd: &Path, caller: &[(String, String)]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for folder in cwd.ancestors() {
        let read = |name: &str| std::fs::read_to_string(folder.join(".cargo").join(name)).ok();
        let settings = read("config.toml").or_else(|| read("config")).and_then(|text| text.parse::<toml::Table>().ok());
        let env = settings.as_ref().and_then(|settings| settings.get("env")?.as_table());
        for (name, setting) in env.into_iter().flatten() {
            let is = |key: &str| setting.get(key).and_then(toml::Value::as_bool).unwrap_or(false);
            let value = setting.as_str().or_else(|| setting.get("value")?.as_str());
            let is_set = !is("force") && caller.iter().any(|(known, _)| known == name);
            let is_known = found.iter().any(|(known, _)| known == name);
            if let (Some(value), false) = (value, is_set || is_known) {
                let path = || folder.join(value).to_string_lossy().into_owned();
                found.push((name.clone(), if is("relative") { path() } else { value.into() }));
            }
        }
    }
    found
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().into()
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// What Cargo knows about the packages here.
#[derive(Debug, Clone, Default)]
pub struct Package {
    metadata: Value,
    /// The folder of the toolchain's own libraries, where they are needed.
    toolchain: Option<String>,
}

impl Package {
    fn of(&self, manifest: &Path) -> &Value {
        let packages = self.metadata["packages"].as_array();
        let found = packages
            .into_iter()
            .flatten()
            .find(|package| package["manifest_path"].as_str().map(Path::new) == Some(manifest));
        found.unwrap_or(&Value::Null)
    }

    /// The program that a package names as its default, of the packages here.
    pub fn default_run(&self) -> Option<&str> {
        let packages = self.metadata["packages"].as_array()?;
        packages.iter().find_map(|package| package["default_run"].as_str())
    }

    fn variables(&self, artifact: &Artifact) -> Vec<(String, String)> {
        let package = self.of(&artifact.manifest);
        let version = text(&package["version"]);
        let (numbers, pre) = version.split_once('-').unwrap_or((&version, ""));
        let pre = pre.split('+').next().unwrap_or_default();
        let mut parts = numbers.split('+').next().unwrap_or_default().split('.');
        let mut part = || parts.next().unwrap_or_default().to_string();
        let authors: Vec<&str> = texts(&package["authors"]).collect();
        let mut variables = vec![
            ("CARGO_MANIFEST_DIR", artifact.root().to_string_lossy().into_owned()),
            ("CARGO_MANIFEST_PATH", artifact.manifest.to_string_lossy().into_owned()),
            ("CARGO_PKG_VERSION_MAJOR", part()),
            ("CARGO_PKG_VERSION_MINOR", part()),
            ("CARGO_PKG_VERSION_PATCH", part()),
            ("CARGO_PKG_VERSION_PRE", pre.into()),
            ("CARGO_PKG_AUTHORS", authors.join(":")),
        ];
        const PLAIN: [(&str, &str); 9] = [
            ("CARGO_PKG_VERSION", "version"),
            ("CARGO_PKG_NAME", "name"),
            ("CARGO_PKG_DESCRIPTION", "description"),
            ("CARGO_PKG_HOMEPAGE", "homepage"),
            ("CARGO_PKG_REPOSITORY", "repository"),
            ("CARGO_PKG_LICENSE", "license"),
            ("CARGO_PKG_LICENSE_FILE", "license_file"),
            ("CARGO_PKG_RUST_VERSION", "rust_version"),
            ("CARGO_PKG_README", "readme"),
        ];
        variables.extend(PLAIN.map(|(name, field)| (name, text(&package[field]))));
        variables.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }
}

/// Asks Cargo about the packages around one artifact, and where it matters the compiler about its libraries.
pub fn describe(
    cargo: &[String],
    artifact: &Artifact,
    built: &Built,
    cwd: &Path,
    then: impl FnOnce(&Package) -> Result<Plan, Failure> + Send + 'static,
) -> Plan {
    let mut argv = cargo.to_vec();
    argv.extend(["metadata", "--no-deps", "--format-version=1", "--manifest-path"].map(Into::into));
    argv.push(artifact.manifest.to_string_lossy().into_owned());
    let toolchain = cargo.iter().find(|word| word.starts_with('+')).cloned();
    let needs_toolchain = built.needs_toolchain;
    let cwd = cwd.to_path_buf();
    let place = cwd.clone();
    let described = move |output: &str| {
        let metadata: Value = serde_json::from_str(output).unwrap_or_default();
        if !needs_toolchain {
            return then(&Package { metadata, toolchain: None });
        }
        let mut argv: Vec<String> = std::iter::once("rustc".to_string()).chain(toolchain).collect();
        argv.extend(["--print".into(), "target-libdir".into()]);
        let located = move |output: &str| then(&Package { metadata, toolchain: Some(output.trim().into()) });
        Ok(Plan::Build(Build { argv, cwd: place, env: Vec::new(), then: Box::new(located) }))
    };
    Plan::Build(Build { argv, cwd, env: Vec::new(), then: Box::new(described) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: &str = r#"
{"reason":"compiler-artifact","package_id":"path+file:///p/app#0.1.0","manifest_path":"/p/app/Cargo.toml","target":{"kind":["custom-build"],"name":"build"},"profile":{"test":false},"executable":null}
{"reason":"build-script-executed","package_id":"path+file:///p/app#0.1.0","linked_paths":["native=/p/target/debug/build/app/out","/usr/lib"],"env":[["MADE","1"]]}
{"reason":"compiler-artifact","package_id":"path+file:///p/app#0.1.0","manifest_path":"/p/app/Cargo.toml","target":{"kind":["lib"],"name":"app"},"profile":{"test":true},"executable":"/p/target/debug/deps/app-1"}
{"reason":"compiler-artifact","package_id":"path+file:///p/app#0.1.0","manifest_path":"/p/app/Cargo.toml","target":{"kind":["bin"],"name":"app"},"profile":{"test":false},"executable":"/p/target/debug/app"}
not json
"#;

    #[test]
    fn cargo_s_own_settings_set_variables() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("inner");
        for (folder, text) in [
            (root.path(), "[env]\nA = \"far\"\nB = { value = \"b\", relative = true }\nC = \"c\"\n"),
            (&inner, "[env]\nA = \"near\"\nD = { value = \"d\", force = true }\n"),
        ] {
            std::fs::create_dir_all(folder.join(".cargo")).unwrap();
            std::fs::write(folder.join(".cargo/config.toml"), text).unwrap();
        }
        let caller = [("C".to_string(), "mine".to_string()), ("D".into(), "mine".into())];
        let found: BTreeMap<String, String> = configured(&inner, &caller).into_iter().collect();
        assert_eq!((found["A"].as_str(), found["D"].as_str(), found.get("C")), ("near", "d", None));
        assert_eq!(Path::new(&found["B"]), root.path().join("b"));
    }

    #[test]
    fn messages_tell_what_was_built_and_how_it_is_started() {
        let built = Built::read(MESSAGES);
        let suites: Vec<&Artifact> = built.suites().collect();
        assert_eq!((suites.len(), suites[0].flags(), suites[0].package()), (1, "--lib".into(), "app"));
        assert_eq!(built.programs().map(Artifact::flags).collect::<Vec<_>>(), ["--bin app"]);
        let metadata = serde_json::json!({ "packages": [
            { "manifest_path": "/p/app/Cargo.toml", "name": "app", "version": "1.2.3-rc.1", "authors": ["A", "B"] },
        ] });
        let package = Package { metadata, toolchain: Some("/t/lib".into()) };
        let kept = Kept {
            words: Vec::new(),
            cwd: "/p".into(),
            env: vec![("LD_LIBRARY_PATH".into(), "/mine".into())],
            env_path: String::new(),
        };
        let env: BTreeMap<String, String> = built.environment(suites[0], &package, &kept).into_iter().collect();
        assert_eq!(env["CARGO_MANIFEST_DIR"], "/p/app");
        assert_eq!((env["CARGO_PKG_VERSION_PATCH"].as_str(), env["CARGO_PKG_VERSION_PRE"].as_str()), ("3", "rc.1"));
        assert_eq!((env["CARGO_PKG_AUTHORS"].as_str(), env["MADE"].as_str()), ("A:B", "1"));
        assert_eq!(
            env["LD_LIBRARY_PATH"],
            "/p/target/debug/build/app/out:/p/target/debug/deps:/p/target/debug:/t/lib:/mine"
        );
    }
}
