//! Who may control an agent's session: not the agent itself, and one at a time, a person before an agent.
//!
//! Reading needs none of this. It keeps those apart who are of good will: whoever has the user's rights can do what the
//! user can, with this program or without.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Context, Hub, Live, lock};
use crate::commands::{Entry, Past};
use crate::failure::Failure;
use crate::model::Place;
use crate::platform::{self, Process};
use crate::wire::Caller;

/// How long a session stays with a person, and with an agent, after the last time that they used it.
const PERSON: Duration = Duration::from_secs(5 * 60);
const AGENT: Duration = Duration::from_secs(60);

/// Who has the control of a session.
#[derive(Debug, Clone)]
pub struct Holder {
    pub who: String,
    /// Somebody at a terminal.
    pub person: bool,
    /// The process behind it that lasts: a shell, an agent.
    root: Option<Process>,
    used: Instant,
}

/// Who asks for it.
#[derive(Debug, Clone)]
struct Asker {
    who: String,
    person: bool,
    /// The processes behind it that last, the nearest first.
    behind: Vec<Process>,
}

impl Asker {
    fn new(caller: &Caller) -> Self {
        // The asking process itself, and shells that only carry it out, are others the next time.
        let passing = |process: &&Process| is_passing(&platform::command_line(process.pid));
        let behind = caller.above.iter().skip(1).skip_while(passing).copied().collect();
        Self { who: caller.who.clone(), person: caller.person, behind }
    }

    fn holds(&self) -> Holder {
        let root = if serves_many(&self.who) { None } else { self.behind.first().copied() };
        Holder { who: self.who.clone(), person: self.person, root, used: Instant::now() }
    }
}

impl Holder {
    /// Whether this is the one who asks.
    fn is(&self, asker: &Asker) -> bool {
        let same =
            |process: &Process| self.root.is_some_and(|root| (root.pid, root.start) == (process.pid, process.start));
        // An agent that a person has started from their shell is not that person.
        self.person == asker.person
            && (self.who == asker.who || (!serves_many(&asker.who) && asker.behind.iter().any(same)))
    }

    fn is_gone(&self) -> bool {
        self.root.is_some_and(|root| platform::start_time(root.pid) != Some(root.start))
    }

    /// How long it is still theirs.
    fn left(&self) -> Option<Duration> {
        let limit = if self.person { PERSON } else { AGENT };
        limit.checked_sub(self.used.elapsed()).filter(|left| !left.is_zero())
    }

    /// In words.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} ({})", if self.person { "a person" } else { "an agent" }, crate::render::quoted(&self.who))
    }

    /// Seconds since they used it.
    #[must_use]
    pub fn idle(&self) -> u64 {
        self.used.elapsed().as_secs()
    }
}

/// One server that many clients speak through (`mcp:7.2`): its process says nothing about them.
fn serves_many(who: &str) -> bool {
    who.starts_with("mcp:") && who.contains('.')
}

/// `sh -c …`, as agents carry out their commands.
fn is_passing(words: &[String]) -> bool {
    let [program, flags, ..] = words else { return false };
    let name = program.rsplit('/').next().unwrap_or_default().trim_start_matches('-');
    matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "fish" | "ash")
        && flags.starts_with('-')
        && words
            .iter()
            .skip(1)
            .take_while(|word| word.starts_with('-'))
            .any(|word| !word.starts_with("--") && word.contains('c'))
}

/// Why it is not given to the one who asks. `takes`: it was asked for in so many words.
fn refusal(live: &str, holder: Option<&Holder>, asker: &Asker, takes: bool) -> Option<Failure> {
    let holder = holder?;
    let left = holder.left()?;
    if asker.person || holder.is(asker) || holder.is_gone() || (takes && !holder.person) {
        return None;
    }
    let failure =
        Failure::refused(format!("{live} is controlled by {}, who used it {} s ago", holder.name(), holder.idle()))
            .hint(format!("looking needs no control: bugeye -s {live} status, backtrace, inspect, events"));
    Some(if holder.person {
        let left = left.as_secs() + 1;
        failure.hint(format!("it is theirs for {left} s more; they give it up with: bugeye use {live} --release"))
    } else {
        failure.hint(format!("take it: bugeye use {live} --take"))
    })
}

impl Live {
    /// Whether whoever asks is this session's own agent, or was started by it.
    #[must_use]
    pub fn is_of(&self, caller: &Caller) -> bool {
        let agent = self.handle.snapshot.borrow().pid;
        // What it has orphaned falls to the supervisor.
        let own = |process: &Process| process.pid == self.handle.supervisor || Some(process.pid) == agent;
        self.adapter.quirks.agents && self.state().is_live() && caller.above.iter().any(own)
    }

    /// Refuses it to be controlled from within.
    ///
    /// # Errors
    /// Where the caller is its agent, or was started by it, and may not.
    pub fn spares(&self, caller: &Caller) -> Result<(), Failure> {
        if self.is_of(caller) && !self.blueprint.allow_self { Err(from_within(&self.alias)) } else { Ok(()) }
    }

    /// Who has the control, where somebody can have it.
    #[must_use]
    pub fn holder(&self) -> Option<Holder> {
        let held = self.adapter.quirks.agents && self.state().is_live();
        lock(&self.holder).clone().filter(|_| held)
    }

    /// Gives the control to whoever asks, if they may have it.
    pub fn take(&self, caller: &Caller, takes: bool) -> Result<(), Failure> {
        // One that may control itself takes it from nobody.
        if !self.adapter.quirks.agents || !self.state().is_live() || self.is_of(caller) {
            return Ok(());
        }
        let asker = Asker::new(caller);
        let mut holder = lock(&self.holder);
        if let Some(failure) = refusal(&self.alias, holder.as_ref(), &asker, takes) {
            return Err(failure);
        }
        let before = holder.replace(asker.holds());
        // What only carried out one command (`timeout 60 bugeye …`) is gone by the next: nothing was taken from anybody.
        let had = |before: &Holder| !before.is(&asker) && (before.person != asker.person || !before.is_gone());
        if let Some(before) = before.filter(had) {
            self.note(&format!("controlled by {} now, before by {}", asker.holds().name(), before.name()));
        }
        Ok(())
    }

    /// Gives it up.
    pub fn release(&self, caller: &Caller) -> Result<(), Failure> {
        self.take(caller, false)?;
        *lock(&self.holder) = None;
        Ok(())
    }

    /// Whoever starts a session has it.
    pub(super) fn first(caller: &Caller) -> Option<Holder> {
        Some(Asker::new(caller).holds()).filter(|_| !caller.above.is_empty())
    }
}

impl Hub {
    /// Fills in who is behind a request, where that matters: there is an agent to be controlled, or about to be.
    pub fn identify(&self, caller: &mut Caller, peer: Option<u32>, starts: bool) {
        let agents = starts || self.sessions().iter().any(|live| live.adapter.quirks.agents && live.state().is_live());
        if let Some(peer) = peer.filter(|_| agents) {
            caller.above = platform::lineage(peer);
            // Whoever once started this daemon is behind nobody that it starts; nor is the first of all processes.
            let end = |process: &Process| process.pid == std::process::id() || process.pid == 1;
            let end = caller.above.iter().position(end).unwrap_or(caller.above.len());
            caller.above.truncate(end);
        }
    }

    /// Refuses what would end an agent from within, or one that somebody else controls.
    ///
    /// # Errors
    /// Where the caller is an agent of ours, or was started by one, or may not have one of them.
    pub fn may_end_all(&self, caller: &Caller) -> Result<(), Failure> {
        self.sessions().iter().try_for_each(|live| live.spares(caller).and_then(|()| live.take(caller, false)))
    }
}

fn from_within(live: &str) -> Failure {
    Failure::refused(format!("this would control {live} from within: it is the agent that asks, or was started by it"))
        .hint(format!("looking is allowed: bugeye -s {live} status, backtrace, inspect, events"))
        .hint("a program of your own is debugged as usual: bugeye run -- COMMAND")
        .hint("an agent that may control itself is started with: bugeye start --agent --allow-self -- COMMAND")
}

/// Refuses a command about an agent's session to those who may not control it; to others it is theirs from now on.
///
/// # Errors
/// Why not, and what to do.
pub fn check(cx: &Context, entry: &Entry, args: &Value) -> Result<(), Failure> {
    if !controls(entry, args) {
        return Ok(());
    }
    let refuse = |live: &Live, failure: Failure| {
        cx.about(live);
        Err(failure)
    };
    for live in touched(cx, entry, args) {
        live.spares(&cx.caller).or_else(|failure| refuse(&live, failure))?;
        live.take(&cx.caller, false).or_else(|failure| refuse(&live, failure))?;
    }
    Ok(())
}

/// Whether a command does something to the session that it is about.
fn controls(entry: &Entry, args: &Value) -> bool {
    let reads = match entry.name {
        "await" => true,
        "catch" => args["what"].as_array().is_none_or(|words| words.is_empty() || words[0] == "list"),
        _ => false,
    };
    !reads && matches!((entry.past_of)(args.clone()), Past::Changes | Past::Beside)
}

/// A breakpoint on a line is for programs; no agent has any.
fn sets_a_line(entry: &Entry, args: &Value) -> bool {
    let place = args["place"].as_str().and_then(|text| Place::parse(text).ok());
    entry.name == "break" && matches!(place, Some(Place::Line { .. } | Place::Address(_)))
}

/// The sessions that a command does something to.
fn touched(cx: &Context, entry: &Entry, args: &Value) -> Vec<std::sync::Arc<Live>> {
    let all = |project: Option<&std::path::Path>| {
        let mut all = cx.hub.sessions();
        all.retain(|live| project.is_none_or(|project| live.project == project));
        all
    };
    let project = || {
        cx.hub.meant(&cx.caller).map_or_else(|_| super::places::project_of(&cx.caller.cwd), |live| live.project.clone())
    };
    match entry.name {
        "stop" if args["all"] == Value::Bool(true) => {
            let mut all = all(None);
            all.retain(|live| cx.caller.client().is_none_or(|client| live.owner == client));
            all
        }
        "break" if sets_a_line(entry, args) => Vec::new(),
        // What is kept for the project counts for all its sessions.
        "break" | "unbreak" | "enable" | "disable" => all(Some(&project())),
        _ => cx.hub.meant(&cx.caller).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32) -> Process {
        Process { pid, start: u64::from(pid) * 10, parent: 1, group: 1, session: 1, state: 'S' }
    }

    fn asker(who: &str, person: bool, behind: &[u32]) -> Asker {
        Asker { who: who.into(), person, behind: behind.iter().map(|pid| process(*pid)).collect() }
    }

    /// Somebody behind whom there is this test, which lives.
    fn holder(who: &str, person: bool, ago: u64) -> Holder {
        let root = platform::process(std::process::id());
        let used = Instant::now().checked_sub(Duration::from_secs(ago)).unwrap();
        Holder { who: who.into(), person, root, used }
    }

    #[test]
    fn a_person_comes_before_an_agent_and_an_agent_after_both() {
        let person = asker("cli:1", true, &[1]);
        let agent = asker("cli:2", false, &[2]);
        let client = asker("mcp:3", false, &[3]);
        let cases = [
            (holder("mcp:9", false, 0), &person, false, true),
            (holder("cli:9", true, 0), &person, false, true),
            (holder("cli:9", true, 0), &agent, false, false),
            (holder("cli:9", true, 0), &client, false, false),
            (holder("cli:9", true, 0), &agent, true, false),
            (holder("cli:9", true, 299), &agent, false, false),
            (holder("cli:9", true, 301), &agent, false, true),
            (holder("mcp:9", false, 0), &agent, false, false),
            (holder("mcp:9", false, 0), &agent, true, true),
            (holder("mcp:9", false, 59), &client, false, false),
            (holder("mcp:9", false, 61), &client, false, true),
            (holder("mcp:3", false, 0), &client, false, true),
        ];
        for (holder, asker, takes, given) in cases {
            let refused = refusal("s1", Some(&holder), asker, takes);
            assert_eq!(refused.is_none(), given, "{holder:?} {asker:?} {takes}: {refused:?}");
        }
        assert!(refusal("s1", None, &agent, false).is_none());
        let said = refusal("s1", Some(&holder("mcp:9", false, 3)), &agent, false).unwrap();
        assert_eq!(said.message, "s1 is controlled by an agent (mcp:9), who used it 3 s ago");
        assert_eq!(said.hints[1], "take it: bugeye use s1 --take");
        let said = refusal("s1", Some(&holder("cli:9", true, 3)), &agent, false).unwrap();
        assert!(said.hints[1].contains("297 s more") && said.hints[1].contains("--release"), "{said:?}");
    }

    #[test]
    fn an_agent_is_known_by_the_process_that_lasts() {
        let me = std::process::id();
        let mut same = asker("cli:5", false, &[5]);
        same.behind.push(platform::process(me).unwrap());
        let held = holder("cli:9", false, 0);
        assert!(refusal("s1", Some(&held), &same, false).is_none(), "a later shell of the same agent");
        let started = Holder { person: true, ..held.clone() };
        assert!(refusal("s1", Some(&started), &same, false).is_some(), "an agent from a person's own shell");
        let client = Asker { who: "mcp:9.2".into(), ..same.clone() };
        assert!(refusal("s1", Some(&held), &client, false).is_some(), "one of many clients of one server");
        let gone = Holder { root: Some(process(u32::MAX - 1)), ..held };
        assert!(refusal("s1", Some(&gone), &asker("cli:7", false, &[7]), false).is_none(), "nobody is there any more");
    }

    #[test]
    fn shells_that_carry_out_a_command_pass() {
        let words = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
        for line in ["sh -c x", "/bin/bash -lc x", "bash -c -l x", "/usr/bin/zsh -l -c x", "bash --norc -c x"] {
            assert!(is_passing(&words(line)), "{line}");
        }
        for line in ["bash", "-bash", "bash -i", "sh script.sh -c", "python3 -c x", "claude -c", "bash --rcfile x"] {
            assert!(!is_passing(&words(line)), "{line}");
        }
    }
}
