//! Installing adapters, the ordinary way first: the system's package manager, or the language's own into a private
//! folder.
//!
//! Apart from the `setup` command, since other commands install too. Nothing here needs root silently: what must be
//! asked is asked, and where nobody can be asked the failure says what to run by hand.

mod child;

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::adapters::{Adapter, Found};
use crate::failure::Failure;
use crate::find::{self, INTERPRETER_FILE, ask, on_path};
use crate::paths::Paths;
use child::{Done, run};

/// What `setup` may do without asking.
#[derive(Debug, Clone, Copy, Default)]
pub struct Permission {
    /// Install again what is there.
    pub force: bool,
    /// Questions are answered with yes.
    pub yes: bool,
    /// There is somebody at the terminal who can be asked.
    pub interactive: bool,
}

impl Permission {
    /// What this process's own terminal allows.
    #[must_use]
    pub fn of_terminal(force: bool, yes: bool) -> Self {
        let interactive = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        Self { force, yes, interactive }
    }
}

/// Installs an adapter where that needs no question; what is there already is left as it is.
///
/// # Errors
/// Refused, when it can't be installed: the hints say what to run by hand.
pub fn install(adapter: &'static Adapter, paths: &Paths, report: &mut dyn FnMut(&str)) -> Result<Found, Failure> {
    let env_path = std::env::var("PATH").unwrap_or_default();
    match find::find(adapter, paths, None, &env_path) {
        Ok(found) => Ok(found),
        Err(_) => install_with(adapter, paths, Permission::default(), report),
    }
}

/// Installs an adapter, whether or not it is there.
///
/// # Errors
/// As [`install`].
pub fn install_with(
    adapter: &'static Adapter,
    paths: &Paths,
    permission: Permission,
    report: &mut dyn FnMut(&str),
) -> Result<Found, Failure> {
    let env_path = std::env::var("PATH").unwrap_or_default();
    let mut installer = Installer { adapter, paths, env_path, permission, report };
    installer.run()?;
    find::find(adapter, paths, None, &installer.env_path).map_err(|failure| {
        Failure::refused(format!("{} was installed and can't be found afterwards", adapter.id)).cause(failure)
    })
}

/// The commands that [`install_with`] would run, as far as they are known before the first.
#[must_use]
pub fn plan(adapter: &'static Adapter, paths: &Paths) -> Vec<String> {
    let env_path = std::env::var("PATH").unwrap_or_default();
    if let Some(requirement) = adapter.install.pip {
        let folder = find::private_folder(adapter, paths);
        return vec![format!("python3 -m pip install --target {} {requirement}", folder.display())];
    }
    match System::here(adapter, &env_path) {
        Some(system) => vec![system.by_hand()],
        None => Vec::new(),
    }
}

/// One installation under way.
struct Installer<'a> {
    adapter: &'static Adapter,
    paths: &'a Paths,
    env_path: String,
    permission: Permission,
    report: &'a mut dyn FnMut(&str),
}

/// A package manager of this machine, and the packages to try, best first.
#[derive(Debug)]
struct System {
    manager: PathBuf,
    kind: Manager,
    packages: Vec<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manager {
    Apt,
    Dnf,
    Brew,
}

impl System {
    fn here(adapter: &Adapter, env_path: &str) -> Option<Self> {
        let install = &adapter.install;
        let choices = [
            ("apt-get", Manager::Apt, install.apt.to_vec()),
            ("dnf", Manager::Dnf, install.dnf.into_iter().collect()),
            ("brew", Manager::Brew, install.brew.into_iter().collect()),
        ];
        choices
            .into_iter()
            .filter(|(_, _, packages)| !packages.is_empty())
            .find_map(|(name, kind, packages)| Some(Self { manager: on_path(name, env_path)?, kind, packages }))
    }

    /// What a person would type for the best package.
    fn by_hand(&self) -> String {
        self.by_hand_for(self.packages.first().copied().unwrap_or_default())
    }

    fn by_hand_for(&self, package: &str) -> String {
        let sudo = if self.needs_root() { "sudo " } else { "" };
        match self.kind {
            Manager::Apt => format!("{sudo}apt-get update && {sudo}apt-get install -y {package}"),
            Manager::Dnf => format!("{sudo}dnf install -y {package}"),
            Manager::Brew => format!("brew install {package}"),
        }
    }

    /// The first package that apt can install, as its lists are now.
    fn known_package(&self) -> Option<&'static str> {
        let mut command = Command::new(self.manager.with_file_name("apt-cache"));
        command.arg("policy").args(&self.packages).env("LC_ALL", "C");
        let (_, text) = ask(&mut command, Duration::from_secs(20))?;
        first_known(&self.packages, &text)
    }

    fn needs_root(&self) -> bool {
        self.kind != Manager::Brew && !rustix::process::geteuid().is_root()
    }
}

impl Installer<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        if let Some(requirement) = self.adapter.install.pip {
            return self.install_module(requirement);
        }
        let Some(system) = System::here(self.adapter, &self.env_path) else {
            let adapter = self.adapter;
            return Err(Failure::refused(format!("no package manager that has {} was found here", adapter.id))
                .cause("looked for apt-get, dnf and brew on PATH")
                .hint(format!(
                    "install {} by hand, then put its path into `[adapters.{0}] path` of config.toml",
                    adapter.id
                )));
        };
        self.install_package(&system)
    }

    fn install_package(&mut self, system: &System) -> Result<(), Failure> {
        let prefix = if system.needs_root() { self.root_prefix(system)? } else { Vec::new() };
        match system.kind {
            Manager::Apt => self.install_by_apt(system, &prefix),
            Manager::Dnf | Manager::Brew => {
                let package = system.packages.first().copied().unwrap_or_default();
                let command = if self.permission.force { "reinstall" } else { "install" };
                let yes = if system.kind == Manager::Dnf { &["-y"][..] } else { &[] };
                let mut args = vec![command];
                args.extend(yes);
                args.push(package);
                (self.report)(&format!("installing {package} with {}", program_name(&system.manager)));
                self.package_command(&prefix, &system.manager, &args)
                    .and_then(|done| done.or_failure(&format!("{package} could not be installed")))
                    .map_err(|failure| failure.hint(system.by_hand()))
            }
        }
    }

    fn install_by_apt(&mut self, system: &System, prefix: &[String]) -> Result<(), Failure> {
        let mut updated = false;
        loop {
            let Some(package) = system.known_package() else {
                if updated {
                    return Err(Failure::refused(format!(
                        "this system's packages have no {}",
                        system.packages.join(" or ")
                    ))
                    .hint(format!(
                        "install {} by hand, then put its path into `[adapters.{0}] path` of config.toml",
                        self.adapter.id
                    )));
                }
                updated = true;
                self.update_lists(system, prefix)?;
                continue;
            };
            (self.report)(&format!("installing {package} with apt-get"));
            // Versions of lldb exclude each other through their Python packages: never take away what somebody uses.
            let mut args = vec!["install", "-y", "--no-install-recommends", "--no-remove"];
            if self.permission.force {
                args.push("--reinstall");
            }
            args.push(package);
            let done = self.package_command(prefix, &system.manager, &args)?;
            if done.status.success() {
                return Ok(());
            }
            if done.output.contains("remove is disabled") {
                return Err(done
                    .failure(&format!("{package} would take the place of another package"))
                    .hint(format!("if that is fine: sudo apt-get install {package}")));
            }
            // Old lists name packages that the mirror no longer has.
            if updated {
                return Err(done
                    .failure(&format!("{package} could not be installed"))
                    .hint(system.by_hand_for(package)));
            }
            updated = true;
            self.update_lists(system, prefix)?;
        }
    }

    fn update_lists(&mut self, system: &System, prefix: &[String]) -> Result<(), Failure> {
        (self.report)("fetching the package lists with apt-get update");
        self.package_command(prefix, &system.manager, &["update"])?
            .or_failure("the package lists could not be fetched")
            .map_err(|failure| failure.hint("check the network, then try again").hint(system.by_hand()))
    }

    fn package_command(&mut self, prefix: &[String], program: &Path, args: &[&str]) -> Result<Done, Failure> {
        let mut words: Vec<String> = prefix.to_vec();
        words.extend(["env".into(), "DEBIAN_FRONTEND=noninteractive".into(), program.display().to_string()]);
        words.extend(args.iter().map(ToString::to_string));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir("/");
        run(&mut command, &program_name(program), self.report)
    }

    /// The words that make a command run as root, when that was allowed.
    fn root_prefix(&mut self, system: &System) -> Result<Vec<String>, Failure> {
        let refused = |why: &str| {
            Failure::refused(format!("installing {} needs root, {why}", self.adapter.id)).hint(system.by_hand())
        };
        let Some(sudo) = on_path("sudo", &self.env_path) else {
            return Err(refused("and there is no sudo"));
        };
        let sudo = sudo.display().to_string();
        let without_password = ask(Command::new(&sudo).args(["-n", "true"]), Duration::from_secs(5));
        if without_password.is_some_and(|(status, _)| status.success()) {
            return Ok(vec![sudo, "-n".into()]);
        }
        if !self.permission.interactive {
            return Err(refused("and there is no terminal to ask at"));
        }
        if !self.permission.yes && !confirm(&format!("Run `{}`?", system.by_hand())) {
            return Err(refused("and that was declined"));
        }
        // sudo asks for the password at the terminal itself.
        Ok(vec![sudo])
    }

    fn install_module(&mut self, requirement: &str) -> Result<(), Failure> {
        let python = find::interpreter(&self.env_path).ok_or_else(|| {
            Failure::refused(format!("{} needs Python 3, and PATH has none", self.adapter.id))
                .hint("install python3, then try again")
        })?;
        let folder = find::private_folder(self.adapter, self.paths);
        let parent = folder.parent().unwrap_or(&self.paths.data).to_path_buf();
        fs::create_dir_all(&parent).map_err(|error| Failure::io(format!("create {}", parent.display()), &error))?;
        let _lock = self.lock(&parent)?;
        let fresh = parent.join(format!(".{}.new", self.adapter.id));
        let venv = parent.join(format!(".{}.venv", self.adapter.id));
        // Left by a run that was ended half-way; the lock says that nobody is at work there.
        remove(&fresh)?;
        remove(&venv)?;
        fs::create_dir(&fresh).map_err(|error| Failure::io(format!("create {}", fresh.display()), &error))?;
        let installed = self.pip(&python, &venv, &fresh, requirement);
        let installed = installed.and_then(|()| {
            record_interpreter(&python, &fresh);
            put_in_place(&fresh, &folder)
        });
        let _ = remove(&venv);
        let _ = remove(&fresh);
        installed
    }

    fn pip(&mut self, python: &Path, venv: &Path, target: &Path, requirement: &str) -> Result<(), Failure> {
        (self.report)(&format!("installing {requirement} with {} -m pip", program_name(python)));
        let done = self.pip_install(python, target, requirement)?;
        if !done.output.contains("No module named pip") {
            return done.or_failure(&format!("{requirement} could not be installed")).map_err(|failure| {
                let command = format!("{} -m pip download --no-deps {requirement}", program_name(python));
                failure.hint(format!("check that the package index can be reached: `{command}`"))
            });
        }
        (self.report)("this Python has no pip; making a virtual environment for its own");
        let no_pip = "install pip (Debian: `apt-get install python3-pip`), then try again";
        let mut command = Command::new(python);
        command.args(["-m", "venv", "--clear"]).arg(venv).current_dir("/");
        run(&mut command, "venv", self.report)?
            .or_failure("this Python has neither pip nor a way to make a virtual environment")
            .map_err(|failure| failure.hint(no_pip))?;
        self.pip_install(&venv.join("bin/python"), target, requirement)?
            .or_failure(&format!("{requirement} could not be installed"))
            .map_err(|failure| failure.hint(no_pip))
    }

    fn pip_install(&mut self, python: &Path, target: &Path, requirement: &str) -> Result<Done, Failure> {
        let mut command = Command::new(python);
        command
            .args(["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar", "off"])
            .arg("--target")
            .arg(target)
            .arg(requirement)
            // `-m` imports from the current directory first: not from the caller's.
            .current_dir(target)
            .env("PIP_ROOT_USER_ACTION", "ignore")
            // A user's own settings that contradict `--target`.
            .env("PIP_USER", "0")
            .env("PIP_REQUIRE_VIRTUALENV", "0");
        run(&mut command, "pip", self.report)
    }

    /// Two installations at once would take each other's folders away.
    fn lock(&mut self, parent: &Path) -> Result<fs::File, Failure> {
        use rustix::fs::{FlockOperation, flock};
        let path = parent.join(".lock");
        let file = fs::File::create(&path).map_err(|error| Failure::io(format!("open {}", path.display()), &error))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            (self.report)("another installation is at work; waiting for it");
            flock(&file, FlockOperation::LockExclusive)
                .map_err(|error| Failure::io(format!("lock {}", path.display()), &error.into()))?;
        }
        Ok(file)
    }
}

/// The interpreter's real executable, written beside what was installed for it: compiled parts fit no other, and a
/// shim costs a shell at every start.
fn record_interpreter(python: &Path, folder: &Path) {
    let mut command = Command::new(python);
    command.args(["-c", "import sys; print(sys.executable)"]).current_dir("/");
    if let Some((status, text)) = ask(&mut command, Duration::from_secs(5))
        && status.success()
    {
        // Without the file the first Python on PATH is used, which works as well.
        let _ = fs::write(folder.join(INTERPRETER_FILE), text);
    }
}

/// Puts a complete folder where the old one is, if there is one; sessions that use the old one keep what they opened.
fn put_in_place(fresh: &Path, folder: &Path) -> Result<(), Failure> {
    let old = fresh.with_extension("old");
    remove(&old)?;
    if folder.exists() {
        fs::rename(folder, &old).map_err(|error| Failure::io(format!("move {}", folder.display()), &error))?;
    }
    fs::rename(fresh, folder).map_err(|error| Failure::io(format!("move {}", fresh.display()), &error))?;
    remove(&old)
}

fn remove(folder: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::io(format!("remove {}", folder.display()), &error))
        }
        _ => Ok(()),
    }
}

fn first_known(packages: &[&'static str], policy: &str) -> Option<&'static str> {
    packages.iter().copied().find(|package| {
        let mut lines = policy.lines().skip_while(|line| line.strip_suffix(':') != Some(package)).skip(1);
        let candidate =
            lines.by_ref().take_while(|line| line.starts_with(' ')).find(|line| line.contains("Candidate:"));
        candidate.is_some_and(|line| !line.ends_with("(none)"))
    })
}

fn confirm(question: &str) -> bool {
    eprint!("{question} [y/N] ");
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

fn program_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
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

    const WRITES: &str =
        "mkdir -p \"$2/fakepy\" \"$2/fakepy-1.2.3.dist-info\" && echo \"$3\" > \"$2/fakepy/__init__.py\"";

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

    #[test]
    fn the_best_package_that_apt_knows_is_taken() {
        let policy = "lldb-19:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\nlldb-18:\n  Installed: (none)\n  Candidate: 1:18.1\n";
        assert_eq!(first_known(&["lldb-22", "lldb-19", "lldb-18"], policy), Some("lldb-18"));
        assert_eq!(first_known(&["lldb-19"], policy), None);
        assert_eq!(first_known(&["lldb-19"], ""), None);
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
        let text = format!(
            "#!/bin/sh\necho \"$DEBIAN_FRONTEND $@\" >> {}\n[ $1 = update ] && exit 0\n{install}\n",
            log.display()
        );
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
        assert_eq!(
            log,
            "noninteractive update\nnoninteractive install -y --no-install-recommends --no-remove lldb-18\n"
        );
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
}
