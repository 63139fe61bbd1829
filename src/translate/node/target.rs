//! One thread of JavaScript: its scripts, and where it stands while it is paused.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::rc::Rc;

use serde_json::{Value, json};

use super::breakpoints::{Placed, Site, Unit};
use super::calls::Calls;
use super::inspector::Wire;
use super::sourcemap::{SourceMap, Spot};
use super::urls;

/// The main thread of a process, or a worker.
#[derive(Debug)]
pub struct Target {
    pub thread: i64,
    pub name: String,
    pub wire: Wire,
    pub scripts: RefCell<HashMap<String, Rc<Script>>>,
    /// Scripts that breakpoints may be in beyond what their address tells, by that address.
    pub units: RefCell<BTreeMap<String, Rc<Unit>>>,
    pub placed: RefCell<BTreeMap<Site, Placed>>,
    /// Held while its breakpoints are brought in line.
    pub syncing: tokio::sync::Mutex<()>,
    pub traps: RefCell<Traps>,
    pub paused: RefCell<Option<Rc<Pause>>>,
    pub doing: RefCell<Doing>,
    /// What the inspector was last told to pause at.
    pub catching: Cell<&'static str>,
    /// Exceptions it paused at that were none to stop at.
    pub passed: Cell<u32>,
    pub calls: Calls,
    /// It was let go, and is no longer held before its first line.
    pub released: Cell<bool>,
}

/// Breakpoints of our own, to be there before a script runs.
#[derive(Debug, Default)]
pub struct Traps {
    /// On the function that compiles modules: its id, and its condition.
    pub compile: Option<(String, String)>,
    /// Before a script is run: its id, and which.
    pub script: Option<(String, &'static str)>,
    /// On the first line of the program.
    pub entry: Option<String>,
}

/// Why a thread runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Doing {
    #[default]
    Running,
    Pausing,
    Stepping(Step),
}

/// A step under way, and where it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub method: &'static str,
    pub depth: usize,
    pub place: Place,
    /// How often it was prolonged.
    pub again: u32,
    /// It leads to the program's first line.
    pub is_entry: bool,
}

#[derive(Debug)]
pub struct Script {
    pub id: String,
    pub url: String,
    pub path: Option<PathBuf>,
    pub map_url: String,
    map: OnceCell<Option<Rc<SourceMap>>>,
    source: RefCell<Option<Rc<str>>>,
}

/// A place as a reader knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// None for code that is in no file: its address is all there is.
    pub path: Option<PathBuf>,
    pub url: String,
    /// From 1.
    pub line: u32,
    pub column: u32,
    /// The code is the generator's own: its map has nothing for it.
    pub unmapped: bool,
}

#[derive(Debug)]
pub struct Pause {
    pub frames: Vec<Frame>,
    pub exception: Option<Value>,
    /// Nothing runs: the frame is of the question that made it pause.
    pub is_idle: bool,
}

#[derive(Debug)]
pub struct Frame {
    pub id: String,
    pub function: String,
    pub script: Option<Rc<Script>>,
    pub spot: Spot,
    pub function_spot: Option<Spot>,
    pub place: Place,
    pub scopes: Vec<Value>,
    pub this: Value,
    /// The code of a module itself, outside of its functions.
    pub is_module: bool,
}

/// The name that our own questions have as scripts.
pub const OWN: &str = "bugeye:";

impl Script {
    pub fn new(params: &Value) -> Self {
        let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default().to_string();
        let url = text("url");
        Self {
            id: text("scriptId"),
            path: urls::path_of(&url),
            url,
            map_url: text("sourceMapURL"),
            map: OnceCell::new(),
            source: RefCell::default(),
        }
    }

    /// Part of Node, or ours.
    pub fn is_internal(&self) -> bool {
        self.url.is_empty() || self.url.starts_with("node:") || self.url.starts_with(OWN) || self.is_preload()
    }

    pub fn is_preload(&self) -> bool {
        self.url.ends_with(super::launch::PRELOAD)
    }

    /// The program's own, rather than a package's.
    pub fn is_own(&self) -> bool {
        !self.is_internal() && !is_package(&self.url)
    }

    /// Its source map, read when it is first needed.
    pub fn map(&self) -> Option<&Rc<SourceMap>> {
        let read = || {
            if self.map_url.is_empty() || self.is_internal() {
                return None;
            }
            SourceMap::load(&self.url, &self.map_url).map(Rc::new)
        };
        self.map.get_or_init(read).as_ref()
    }

    /// Where a spot in it is for a reader: in the file it was made from, if that is there.
    pub fn place(&self, spot: Spot) -> Place {
        let mut unmapped = false;
        if let Some(map) = self.map() {
            match map.original(spot) {
                Some((path, (line, column))) if path.is_file() => {
                    let path = Some(path.to_path_buf());
                    return Place { path, url: self.url.clone(), line: line + 1, column: column + 1, unmapped };
                }
                Some(_) => {}
                None => unmapped = true,
            }
        }
        Place { path: self.path.clone(), url: self.url.clone(), line: spot.0 + 1, column: spot.1 + 1, unmapped }
    }

    pub async fn source(&self, wire: &Wire) -> Option<Rc<str>> {
        let known = self.source.borrow().clone();
        if known.is_some() {
            return known;
        }
        let answer = wire.call("Debugger.getScriptSource", json!({ "scriptId": self.id })).await.ok()?;
        let source: Rc<str> = answer.get("scriptSource")?.as_str()?.into();
        *self.source.borrow_mut() = Some(source.clone());
        Some(source)
    }
}

pub fn is_package(name: &str) -> bool {
    name.contains("/node_modules/")
}

impl Target {
    pub fn new(thread: i64, name: String, wire: Wire) -> Self {
        Self {
            thread,
            name,
            wire,
            scripts: RefCell::default(),
            units: RefCell::default(),
            placed: RefCell::default(),
            syncing: tokio::sync::Mutex::default(),
            traps: RefCell::default(),
            paused: RefCell::default(),
            doing: RefCell::default(),
            catching: Cell::new("none"),
            passed: Cell::new(0),
            calls: Calls::default(),
            released: Cell::new(false),
        }
    }

    pub fn pause(&self) -> Option<Rc<Pause>> {
        self.paused.borrow().clone()
    }

    pub fn script(&self, id: &str) -> Option<Rc<Script>> {
        self.scripts.borrow().get(id).cloned()
    }

    /// The breakpoints that a new script is the condition of: each pass makes one, and none has an address.
    pub fn conditions(&self, params: &Value) -> Vec<Site> {
        if params.get("url").and_then(Value::as_str).is_some_and(|url| !url.is_empty()) {
            return Vec::new();
        }
        let length = params.get("length").and_then(Value::as_u64).unwrap_or_default();
        let placed = self.placed.borrow();
        placed.iter().filter(|(_, placed)| placed.is_condition(length)).map(|(site, _)| site.clone()).collect()
    }

    /// Reads a `Debugger.paused` event.
    pub fn read_pause(&self, params: &Value) -> Pause {
        let frames = params.get("callFrames").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut read: Vec<Frame> = frames.iter().map(|frame| self.read_frame(frame)).collect();
        // From the outermost on: a module's code is known by what loads it.
        for index in (0..read.len()).rev() {
            let outer = read.get(index + 1);
            let is_loaded = outer.is_some_and(|outer| outer.place.url.starts_with("node:internal/modules/"));
            // Some generators wrap a module in a function once more.
            let same = |outer: &Frame| outer.is_module && outer.place.url == read[index].place.url;
            let is_wrapped =
                outer.is_some_and(same) && read[index].script.as_ref().is_some_and(|script| !script.map_url.is_empty());
            let frame = &mut read[index];
            let types: Vec<&str> =
                frame.scopes.iter().filter_map(|scope| scope.get("type").and_then(Value::as_str)).collect();
            let is_module = !types.contains(&"local") && types.contains(&"module");
            let is_wrapper =
                (is_loaded || is_wrapped) && frame.function.is_empty() && !frame.place.url.starts_with("node:");
            frame.is_module = is_module || is_wrapper;
            if frame.function.is_empty() {
                frame.function = if frame.is_module { "(module)" } else { "(anonymous)" }.into();
            }
        }
        let is_idle = read.first().is_some_and(|frame| frame.place.url.starts_with(OWN));
        Pause { frames: read, exception: None, is_idle }
    }

    fn read_frame(&self, frame: &Value) -> Frame {
        let text = |pointer: &str| frame.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_string();
        let number = |at: &Value, name: &str| {
            at.get(name).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok()).unwrap_or_default()
        };
        let spot_at = |name: &str| {
            let at = frame.get(name)?;
            Some((number(at, "lineNumber"), number(at, "columnNumber")))
        };
        let spot = spot_at("location").unwrap_or_default();
        let script = self.script(&text("/location/scriptId"));
        let place = match &script {
            Some(script) => script.place(spot),
            None => Place { path: None, url: text("/url"), line: spot.0 + 1, column: spot.1 + 1, unmapped: false },
        };
        Frame {
            id: text("/callFrameId"),
            function: text("/functionName"),
            script,
            spot,
            function_spot: spot_at("functionLocation"),
            place,
            scopes: frame.get("scopeChain").and_then(Value::as_array).cloned().unwrap_or_default(),
            this: frame.get("this").cloned().unwrap_or_default(),
            is_module: false,
        }
    }
}

impl Frame {
    pub fn is_internal(&self) -> bool {
        self.script.as_ref().is_none_or(|script| script.is_internal())
    }

    pub fn is_own(&self) -> bool {
        self.script.as_ref().is_some_and(|script| script.is_own())
    }
}
