//! Wishes become bindings: what is sent per file, what came back, and which wish a stop belongs to.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::{Answer, Config, OpId, Pending, Session};
use crate::dap::types::{self, AdapterBreakpoint, read};
use crate::failure::Failure;
use crate::model::{Binding, BindingState, Breakpoint, Place, SessionState};

/// What the adapter made of one wish.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub adapter_id: Option<i64>,
    pub binding: Binding,
    /// The condition was seen to work, or to fail, at a stop.
    pub condition_checked: bool,
}

/// The wish that stands for the program's beginning; never shown.
pub(super) const ENTRY_ID: u32 = u32::MAX;
/// The wish that stands for the end of `until`; never shown.
pub const UNTIL_ID: u32 = u32::MAX - 1;
/// `catch` words that are function breakpoints, from here downwards; never shown as breakpoints.
const CATCH_ID: u32 = u32::MAX - 16;

/// Traced points: this less the point's id; never shown as breakpoints.
pub(super) const TRACE_ID: u32 = CATCH_ID - 32;
/// The most points of a trace.
pub const MAX_POINTS: u32 = 500;

/// Ids that are ours, not the user's.
pub(super) const fn is_internal(id: u32) -> bool {
    id > TRACE_ID - MAX_POINTS - 1
}

pub(super) const fn is_trace(id: u32) -> bool {
    id < TRACE_ID && is_internal(id)
}

impl Session {
    pub(super) fn bindings(&self) -> BTreeMap<u32, Binding> {
        self.bound.iter().filter(|(id, _)| !is_internal(**id)).map(|(id, bound)| (*id, bound.binding.clone())).collect()
    }

    /// All wishes that are to be at the adapter now, ours included.
    fn active_wishes(&self) -> Vec<Breakpoint> {
        let agents = self.adapter.quirks.agents;
        // A word alone (`model`, `stop`) may be a function, or what an agent does.
        let fits = |wish: &&Breakpoint| match &wish.place {
            Place::Function { module: None, .. } if agents => true,
            place => place.is_for_agents() == agents,
        };
        let mut wishes: Vec<Breakpoint> =
            self.wishes.iter().filter(|wish| wish.enabled).filter(fits).cloned().collect();
        if (self.entering || self.to_record)
            && let Some(function) = self.adapter.quirks.entry_function
        {
            wishes.push(internal(ENTRY_ID, function.into()));
        }
        wishes.extend(self.until.clone());
        wishes.extend(self.trace_wishes());
        for ((word, function), index) in self.adapter.quirks.catch_functions.iter().zip(0..16) {
            if self.catch_words().iter().any(|caught| caught == word) {
                wishes.push(internal(CATCH_ID - index, (*function).into()));
            }
        }
        wishes
    }

    /// The `catch` words in force: the user's, else the language's own.
    fn catch_words(&self) -> &[String] {
        match &self.target {
            crate::model::Target::Launch(launch) if self.catch.is_empty() => &launch.catch,
            _ => &self.catch,
        }
    }

    /// The word whose function breakpoint was hit.
    pub(super) fn caught_word(&self, ids: &[u32]) -> Option<&str> {
        let index = ids.iter().find_map(|id| CATCH_ID.checked_sub(*id)).filter(|index| *index < 16)?;
        self.adapter.quirks.catch_functions.get(usize::try_from(index).ok()?).map(|(word, _)| *word)
    }

    /// The requests that bring the adapter in line with the wishes. `all` sends exceptions too.
    pub(super) fn breakpoint_requests(&mut self, all: bool) -> Vec<(&'static str, Json, Config)> {
        let wishes = self.folded(self.active_wishes());
        if matches!(self.target, crate::model::Target::Core { .. }) {
            let bound = wishes.iter().map(|wish| (wish.id, pending_bound("a core file can't run".into())));
            self.bound.extend(bound);
            return Vec::new();
        }
        let mut files: BTreeMap<String, Vec<&Breakpoint>> =
            self.sent_files.iter().map(|file| (file.clone(), Vec::new())).collect();
        let mut functions = Vec::new();
        for wish in &wishes {
            match &wish.place {
                Place::Line { file, .. } => files.entry(file.clone()).or_default().push(wish),
                Place::Function { .. } => functions.push(wish),
                Place::Address(_) => {
                    let why = format!("{} can't set breakpoints by address", self.via());
                    self.bound.insert(wish.id, pending_bound(why));
                }
            }
        }
        let mut requests = Vec::new();
        self.sent_files = files.iter().filter(|(_, list)| !list.is_empty()).map(|(file, _)| file.clone()).collect();
        for (file, list) in files {
            let breakpoints: Vec<Json> = list.iter().map(|wish| self.source_breakpoint(wish)).collect();
            let ids = list.iter().map(|wish| wish.id).collect();
            let name = file.rsplit(['/', '\\']).next().unwrap_or(&file);
            let arguments = json!({ "source": { "path": file, "name": name }, "breakpoints": breakpoints });
            requests.push(("setBreakpoints", arguments, Config::Source { file, ids }));
        }
        if !functions.is_empty() || self.functions_sent {
            if self.capabilities.has("supportsFunctionBreakpoints") {
                self.functions_sent = !functions.is_empty();
                requests.push(self.function_request(&functions));
            } else {
                for wish in functions {
                    let why = format!("{} has no function breakpoints; name a file:line", self.via());
                    self.bound.insert(wish.id, pending_bound(why));
                }
            }
        }
        if all {
            let arguments = self.exception_arguments();
            requests.push(("setExceptionBreakpoints", arguments, Config::Exceptions));
        }
        requests
    }

    fn function_request(&self, functions: &[&Breakpoint]) -> (&'static str, Json, Config) {
        let breakpoints: Vec<Json> = functions.iter().map(|wish| self.function_breakpoint(wish)).collect();
        let ids = functions.iter().map(|wish| wish.id).collect();
        ("setFunctionBreakpoints", json!({ "breakpoints": breakpoints }), Config::Functions { ids })
    }

    /// Functions once more, where a name the user wrote has to be written another way; None where none has.
    pub(super) fn functions_again(&mut self, config: &Config) -> Option<(&'static str, Json, Config)> {
        let Config::Functions { ids } = config else { return None };
        let again = self.adapter.quirks.function_again;
        let wishes = self.active_wishes();
        let mut renamed = false;
        for wish in wishes.iter().filter(|wish| ids.contains(&wish.id)) {
            let Place::Function { name, .. } = &wish.place else { continue };
            let Some(why) = self.bound.get(&wish.id).and_then(|bound| bound.binding.why.clone()) else { continue };
            match self.renamed.get(name) {
                // It was no better: what was said first is the reason.
                Some((_, first)) if why.contains("not found") => {
                    let bound = pending_bound(first.clone());
                    self.bound.insert(wish.id, bound);
                }
                Some(_) => {}
                None => {
                    if let Some(other) = again(name, &why) {
                        self.renamed.insert(name.clone(), (other, why));
                        renamed = true;
                    }
                }
            }
        }
        let is_function = |wish: &&Breakpoint| matches!(wish.place, Place::Function { .. });
        let functions: Vec<&Breakpoint> = wishes.iter().filter(is_function).collect();
        renamed.then(|| self.function_request(&functions))
    }

    fn source_breakpoint(&self, wish: &Breakpoint) -> Json {
        let line = match &wish.place {
            Place::Line { line, .. } => *line,
            _ => 0,
        };
        let mut breakpoint = json!({ "line": line });
        self.add_conditions(wish, &mut breakpoint);
        if let (true, Some(message)) = (is_trace(wish.id), &wish.log) {
            breakpoint["logMessage"] = Json::String(message.clone());
        }
        breakpoint
    }

    fn function_breakpoint(&self, wish: &Breakpoint) -> Json {
        let name = match &wish.place {
            Place::Function { name, .. } => self.renamed.get(name).map_or(name, |(other, _)| other).clone(),
            other => other.to_string(),
        };
        let mut breakpoint = json!({ "name": name });
        self.add_conditions(wish, &mut breakpoint);
        breakpoint
    }

    fn add_conditions(&self, wish: &Breakpoint, breakpoint: &mut Json) {
        let hits = wish.hits.filter(|hits| *hits > 1 && !self.counts_here(wish));
        if let (Some(hits), Some(in_condition)) = (hits, self.adapter.quirks.hits_in_condition) {
            let condition = in_condition(wish.id, hits, wish.condition.as_deref());
            breakpoint["condition"] = Json::String(condition);
            return;
        }
        if let Some(condition) = &wish.condition {
            breakpoint["condition"] = Json::String(condition.clone());
        }
        if let Some(hits) = hits {
            breakpoint["hitCondition"] = Json::String((self.adapter.quirks.hit_condition)(hits));
        }
    }

    /// The adapter's filters for the `catch` words in force; when the user said nothing, its own defaults too.
    fn exception_filters(&self) -> Vec<String> {
        let mut filters = Vec::new();
        if self.catch.is_empty() {
            let by_default = self.adapter.quirks.catches_by_default;
            let known = self.capabilities.exception_filters().into_iter();
            let known = known.filter(|filter| by_default && filter.on_by_default);
            filters.extend(known.map(|filter| filter.filter));
        }
        for filter in self.catch_words().iter().filter_map(|word| self.filter_for(word).ok().flatten()) {
            if !filters.contains(&filter) {
                filters.push(filter);
            }
        }
        filters
    }

    /// Whether an exception is no stop: the program's way to leave, or a test's way to say that it is skipped.
    pub(super) fn is_ignored(&self, exception: &str) -> bool {
        let quirks = &self.adapter.quirks;
        let skipped = self.wants_failures() && quirks.skip_exceptions.contains(&exception);
        quirks.ignored_exceptions.contains(&exception) || skipped
    }

    /// Whether what is caught is what the program itself asks for: where its tests fail.
    pub(super) fn wants_failures(&self) -> bool {
        self.catch.is_empty() && !self.catch_words().is_empty()
    }

    /// Filters, and types by name where the adapter takes them.
    fn exception_arguments(&self) -> Json {
        let by_name = self.adapter.natives.thrown_type.is_none() && self.capabilities.has("supportsExceptionOptions");
        let typed: Vec<(&str, &str)> =
            self.catch.iter().filter_map(|word| word.split_once(' ')).filter(|_| by_name).collect();
        let mut filters = self.exception_filters();
        if typed.is_empty() {
            return json!({ "filters": filters });
        }
        let options: Vec<Json> = typed
            .iter()
            .map(|(word, kind)| {
                let mode = if *word == "uncaught" { "unhandled" } else { "always" };
                json!({ "path": [{ "names": ["Python Exceptions"] }, { "names": [kind] }], "breakMode": mode })
            })
            .collect();
        // A filter would catch every type.
        let plain: Vec<String> = self.catch.iter().filter(|word| !word.contains(' ')).cloned().collect();
        filters.retain(|filter| {
            plain.iter().any(|word| self.filter_for(word).is_ok_and(|meant| meant.as_ref() == Some(filter)))
        });
        json!({ "filters": filters, "exceptionOptions": options })
    }

    /// The filter a `catch` word means; None when it is a function here.
    fn filter_for(&self, word: &str) -> Result<Option<String>, Failure> {
        if word == "none" || self.adapter.quirks.catch_functions.iter().any(|(name, _)| *name == word) {
            return Ok(None);
        }
        let known = self.capabilities.exception_filters();
        let (word, kind) = word.split_once(' ').map_or((word, None), |(word, kind)| (word, Some(kind)));
        if kind.is_some()
            && self.adapter.natives.thrown_type.is_none()
            && !self.capabilities.has("supportsExceptionOptions")
        {
            return Err(self.unsupported("catching one type alone", &format!("catch all of them: bugeye catch {word}")));
        }
        let meant =
            self.adapter.quirks.catch_words.iter().find(|(name, _)| *name == word).map_or(word, |(_, filter)| filter);
        if known.iter().any(|filter| filter.filter == meant) {
            return Ok(Some(meant.to_string()));
        }
        let mut words: Vec<String> = known.into_iter().map(|filter| filter.filter).collect();
        words.extend(self.adapter.quirks.catch_words.iter().map(|(name, _)| (*name).to_string()));
        words.extend(self.adapter.quirks.catch_functions.iter().map(|(name, _)| (*name).to_string()));
        words.sort();
        words.dedup();
        Err(Failure::unsupported(format!("{} can't catch `{word}`", self.via()))
            .hint(format!("it knows: {}", words.join(", "))))
    }

    pub(super) fn update_catch(&mut self, op: OpId, words: Vec<String>) {
        for word in &words {
            if self.state != SessionState::Starting
                && let Err(failure) = self.filter_for(word)
            {
                return self.answer(op, Err(failure));
            }
        }
        self.catch = words;
        self.send_updates(op, true);
    }

    pub(super) fn update_breakpoints(&mut self, op: OpId, wishes: Vec<Breakpoint>) {
        if self.state == SessionState::Starting {
            self.wishes = wishes;
            let bindings = self.bindings();
            return self.answer(op, Ok(Answer::Bindings(bindings)));
        }
        // A wish that changed is judged anew.
        for old in &self.wishes {
            if wishes.iter().find(|wish| wish.id == old.id).is_none_or(|wish| wish != old) {
                self.bound.remove(&old.id);
            }
        }
        self.bound.retain(|id, _| is_internal(*id) || wishes.iter().any(|wish| wish.id == *id));
        self.wishes = wishes;
        if !self.check_conditions(op) {
            self.send_updates(op, false);
        }
    }

    /// Has new conditions parsed first, where the adapter can tell. False when there is nothing to check.
    fn check_conditions(&mut self, op: OpId) -> bool {
        let Some(check) = self.adapter.quirks.check_condition else { return false };
        let new =
            |wish: &&Breakpoint| wish.enabled && wish.condition.as_ref().is_some_and(|c| !self.parsed.contains(c));
        let conditions: Vec<(u32, String)> =
            self.wishes.iter().filter(new).filter_map(|wish| Some((wish.id, wish.condition.clone()?))).collect();
        if conditions.is_empty() {
            return false;
        }
        self.batches.insert(op, conditions.len());
        self.checking.insert(op);
        for (id, condition) in conditions {
            let arguments = json!({ "expression": check(&condition), "context": "repl" });
            let why = Pending::Update(Config::Check { id, condition }, op);
            self.request("evaluate", arguments, why, self.limits.inspect);
        }
        true
    }

    pub(super) fn send_updates(&mut self, op: OpId, all: bool) {
        let requests = self.breakpoint_requests(all);
        if requests.is_empty() {
            return self.answer_update(op);
        }
        self.batches.insert(op, requests.len());
        for (command, arguments, config) in requests {
            self.request(command, arguments, Pending::Update(config, op), self.limits.request);
        }
    }

    /// Everything that `op` wanted set has been answered.
    fn answer_update(&mut self, op: OpId) {
        if self.tracers.contains(&op) {
            self.tracers.retain(|tracer| *tracer != op);
            return self.answer_traced(op);
        }
        let bindings = self.bindings();
        self.answer(op, Ok(Answer::Bindings(bindings)));
    }

    /// What was refused because the program ran is sent again, now that it stands still.
    pub(super) fn send_unsent(&mut self) {
        if std::mem::take(&mut self.unsent) {
            for (command, arguments, config) in self.breakpoint_requests(true) {
                self.request(command, arguments, Pending::Update(config, 0), self.limits.request);
            }
        }
    }

    /// Sends the wishes again for the session's own purposes; nobody waits for the answers.
    pub(super) fn refresh_breakpoints(&mut self) {
        for (command, arguments, config) in self.breakpoint_requests(false) {
            self.request(command, arguments, Pending::Update(config, 0), self.limits.request);
        }
    }

    pub(super) fn on_updated(&mut self, config: &Config, op: OpId, result: Result<Json, String>) {
        self.take_bindings(config, result);
        if let Some((command, arguments, config)) = self.functions_again(config) {
            self.request(command, arguments, Pending::Update(config, op), self.limits.request);
            return;
        }
        let Some(left) = self.batches.get_mut(&op) else { return };
        *left -= 1;
        if *left == 0 {
            self.batches.remove(&op);
            if self.checking.remove(&op) {
                return self.send_updates(op, false);
            }
            self.answer_update(op);
        }
    }

    /// Reads what became of the wishes in one request.
    pub(super) fn take_bindings(&mut self, config: &Config, result: Result<Json, String>) {
        let ids = match config {
            Config::Source { ids, .. } | Config::Functions { ids } => ids.clone(),
            Config::Check { id, condition } => {
                match result {
                    Err(message) if message != super::SILENT => {
                        let why = format!("the condition can't be parsed: {}", last_line(&message));
                        self.bound.insert(*id, pending_bound(why));
                        self.wishes.retain(|wish| wish.id != *id);
                    }
                    _ => {
                        self.parsed.insert(condition.clone());
                    }
                }
                return;
            }
            Config::Exceptions => {
                let refused = matches!(&result, Err(message) if self.is_not_stopped(message));
                self.unsent |= refused;
                if let Ok(body) = result {
                    let made = read::<types::BreakpointsBody>(&body).breakpoints;
                    self.exception_ids = made.iter().filter_map(|made| made.id).collect();
                }
                return;
            }
            Config::Prelude | Config::Prepare | Config::Version => return,
        };
        let answers = match result {
            Ok(body) => read::<types::BreakpointsBody>(&body).breakpoints,
            Err(message) => {
                let refused = self.is_not_stopped(&message);
                self.unsent |= refused;
                for id in ids {
                    let why = if refused {
                        "the program is running: it takes hold at its next stop (bugeye pause)".into()
                    } else {
                        super::gather::explain(&message)
                    };
                    self.bound.insert(id, pending_bound(why));
                }
                return;
            }
        };
        let mut answers = answers.into_iter();
        for id in ids {
            match answers.next() {
                Some(answer) => self.bind(id, &answer),
                None => {
                    self.bound.insert(id, pending_bound("the adapter said nothing about it".into()));
                }
            }
        }
    }

    fn bind(&mut self, id: u32, answer: &AdapterBreakpoint) {
        let traced = self.trace_wishes();
        let wish = self.wishes.iter().chain(&traced).find(|wish| wish.id == id);
        let asked_line = wish.and_then(|wish| match &wish.place {
            Place::Line { line, .. } => Some(*line),
            _ => None,
        });
        let condition = wish.and_then(|wish| wish.condition.clone());
        let line = answer.line.and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0);
        let old = self.bound.get(&id);
        let hits = old.map_or(0, |bound| bound.binding.hits);
        let condition_checked = old.is_some_and(|bound| bound.condition_checked);
        let unchecked =
            self.adapter.quirks.any_function.filter(|_| asked_line.is_none() && line.is_none() && hits == 0);
        let state = match (answer.verified && unchecked.is_none(), line, asked_line) {
            (false, _, _) => BindingState::Pending,
            (true, Some(line), Some(asked)) if line != asked => BindingState::Moved,
            _ => BindingState::Verified,
        };
        // Our own adapter says something of one that is set only where there is something to say.
        let said = answer.message.clone().filter(|_| answer.verified && self.adapter.quirks.agents);
        let why = (state == BindingState::Pending).then(|| match &answer.message {
            _ if unchecked.is_some() => unchecked.unwrap_or_default().into(),
            Some(message) if condition.is_some() && (self.adapter.quirks.is_about_condition)(message) => {
                format!("the condition can't be parsed: {message}")
            }
            Some(message) if !(self.adapter.quirks.error_text)(message).is_empty() => message.clone(),
            _ if asked_line.is_some() => "no code of this program comes from that line".into(),
            _ => "no function of that name in this program".into(),
        });
        let why = why.or(said);
        let binding =
            Binding { state, line, file: answer.source.as_ref().and_then(|source| source.path.clone()), why, hits };
        self.bound.insert(id, Bound { adapter_id: answer.id, binding, condition_checked });
    }

    pub(super) fn on_breakpoint_event(&mut self, body: &Json) {
        let body: types::BreakpointEventBody = read(body);
        let Some(adapter_id) = body.breakpoint.id else { return };
        let found = self.bound.iter().find(|(_, bound)| bound.adapter_id == Some(adapter_id)).map(|(id, _)| *id);
        let Some(id) = found else { return };
        if body.reason == "removed" {
            self.bound.insert(id, pending_bound("the adapter removed it".into()));
        } else {
            self.bind(id, &body.breakpoint);
        }
    }

    /// The wishes a stop belongs to: by the adapter's ids, else by where it is.
    pub(super) fn hit_wishes(&self, stopped: &types::StoppedBody) -> Vec<u32> {
        let adapter_ids = (self.adapter.quirks.hit_ids)(stopped);
        let mut ids: Vec<u32> = self
            .bound
            .iter()
            .filter(|(_, bound)| bound.adapter_id.is_some_and(|id| adapter_ids.contains(&id)))
            .map(|(id, _)| *id)
            .collect();
        ids.sort_unstable();
        ids
    }

    /// For adapters that do not say which breakpoint was hit.
    pub(super) fn wishes_at(&self, file: Option<&str>, line: Option<u32>, function: &str) -> Vec<u32> {
        self.active_wishes()
            .iter()
            .filter(|wish| match &wish.place {
                Place::Line { file: wanted, line: asked } => {
                    let bound = self.bound.get(&wish.id).and_then(|bound| bound.binding.line).unwrap_or(*asked);
                    Some(bound) == line
                        && file.is_some_and(|file| file == wanted || file.ends_with(&format!("/{wanted}")))
                }
                Place::Function { name, .. } => function == name,
                Place::Address(_) => false,
            })
            .map(|wish| wish.id)
            .collect()
    }

    /// Whether passes are counted here, since the adapter would count those too where the condition is false.
    fn counts_here(&self, wish: &Breakpoint) -> bool {
        self.adapter.quirks.counts_before_condition && wish.condition.is_some() && wish.hits.is_some()
    }

    /// Counts passes that are counted here, and are not the one asked for yet.
    pub(super) fn is_early(&mut self, ids: &[u32]) -> bool {
        let early = |id: &u32| {
            let wish = self.wishes.iter().find(|wish| wish.id == *id && self.counts_here(wish));
            let seen = self.bound.get(id).map_or(0, |bound| bound.binding.hits);
            wish.and_then(|wish| wish.hits).is_some_and(|hits| seen + 1 < u64::from(hits))
        };
        let all = !ids.is_empty() && ids.iter().all(early);
        if all {
            for id in ids {
                self.bound.entry(*id).and_modify(|bound| bound.binding.hits += 1);
            }
        }
        all
    }

    /// Counts a hit. The adapter counted those it did not show, so the first one seen of `--hits N` is number N.
    pub(super) fn count_hit(&mut self, id: u32) -> u64 {
        let wish = self.wishes.iter().find(|wish| wish.id == id && !self.counts_here(wish));
        let skipped = wish.and_then(|wish| wish.hits).unwrap_or(1);
        let Some(bound) = self.bound.get_mut(&id) else { return 1 };
        bound.binding.hits = (bound.binding.hits + 1).max(u64::from(skipped));
        bound.binding.hits
    }
}

fn internal(id: u32, function: String) -> Breakpoint {
    let place = Place::Function { module: None, name: function.clone() };
    Breakpoint::new(id, place, function)
}

fn pending_bound(why: String) -> Bound {
    let binding = Binding { state: BindingState::Pending, line: None, file: None, why: Some(why), hits: 0 };
    Bound { adapter_id: None, binding, condition_checked: false }
}

fn last_line(text: &str) -> String {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or(text).trim().to_string()
}
