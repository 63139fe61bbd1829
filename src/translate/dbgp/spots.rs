//! Breakpoints: what the client wishes, and what the engine has.
//!
//! A spot is one breakpoint of the engine. Where an engine has no more than one on a line, several wishes share it, and
//! their conditions and counts are looked at here.

use std::collections::HashMap;

use serde_json::{Value as Json, json};

use super::Translator;
use super::values::{path_of, uri_of};
use super::xml::Element;

/// What the client wants.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wish {
    id: i64,
    place: Place,
    condition: Option<String>,
    hits: Option<u64>,
    /// Passes counted here.
    seen: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Line(String, i64),
    Function(String),
}

/// A breakpoint of the engine.
#[derive(Debug)]
struct Spot {
    wishes: Vec<Wish>,
    /// The engine looks at the condition and counts.
    native: bool,
    engine: Result<String, String>,
    resolved: bool,
    line: Option<i64>,
}

#[derive(Debug)]
pub(super) struct Spots {
    simple: bool,
    spots: Vec<Spot>,
    next: i64,
    /// Engine's breakpoints on exceptions, and whether each is for whatever is thrown.
    exceptions: Vec<(String, bool)>,
    /// The engine's breakpoints that it has found a place for, and the line.
    resolved: HashMap<String, i64>,
}

impl Spots {
    pub fn new(simple: bool) -> Self {
        Self { simple, spots: Vec::new(), next: 1, exceptions: Vec::new(), resolved: HashMap::new() }
    }

    /// Whether a breakpoint stops at whatever is thrown, caught or not.
    pub fn is_raised(&self, id: &str) -> bool {
        self.exceptions.iter().any(|(known, raised)| known == id && *raised)
    }

    /// A wish that is like one before stays the same one.
    fn wish(&mut self, old: &mut Vec<Wish>, place: Place, asked: &Json) -> Wish {
        let text = |name: &str| asked.get(name).and_then(Json::as_str).map(str::trim).filter(|text| !text.is_empty());
        let condition = text("condition").map(Into::into);
        let hits = text("hitCondition").and_then(|text| text.trim_start_matches(['>', '=', ' ']).parse().ok());
        let same = |wish: &Wish| wish.place == place && wish.condition == condition && wish.hits == hits;
        if let Some(at) = old.iter().position(same) {
            return old.swap_remove(at);
        }
        let id = self.next;
        self.next += 1;
        Wish { id, place, condition, hits, seen: 0 }
    }
}

impl Translator<'_> {
    pub(super) fn set_lines(&mut self, arguments: &Json) -> Result<Json, String> {
        let file = arguments.pointer("/source/path").and_then(Json::as_str).unwrap_or_default().to_string();
        let is_here = |place: &Place| matches!(place, Place::Line(known, _) if *known == file);
        let place = |asked: &Json| Place::Line(file.clone(), asked.get("line").and_then(Json::as_i64).unwrap_or(0));
        self.set(arguments, is_here, place)
    }

    pub(super) fn set_functions(&mut self, arguments: &Json) -> Result<Json, String> {
        let is_here = |place: &Place| matches!(place, Place::Function(_));
        let place =
            |asked: &Json| Place::Function(asked.get("name").and_then(Json::as_str).unwrap_or_default().to_string());
        self.set(arguments, is_here, place)
    }

    fn set(
        &mut self,
        arguments: &Json,
        is_here: impl Fn(&Place) -> bool,
        place: impl Fn(&Json) -> Place,
    ) -> Result<Json, String> {
        let here = |spot: &Spot| spot.wishes.first().is_some_and(|wish| is_here(&wish.place));
        let (mut before, others): (Vec<Spot>, Vec<Spot>) = self.spots.spots.drain(..).partition(here);
        self.spots.spots = others;
        let mut old: Vec<Wish> = before.iter().flat_map(|spot| spot.wishes.clone()).collect();
        let mut wishes: Vec<Wish> = Vec::new();
        for asked in arguments.get("breakpoints").and_then(Json::as_array).into_iter().flatten() {
            let wish = self.spots.wish(&mut old, place(asked), asked);
            wishes.push(wish);
        }
        let mut groups: Vec<Vec<Wish>> = Vec::new();
        for wish in &wishes {
            match groups.iter_mut().find(|group| self.spots.simple && group[0].place == wish.place) {
                Some(group) => group.push(wish.clone()),
                None => groups.push(vec![wish.clone()]),
            }
        }
        let mut kept = Vec::new();
        let mut new = Vec::new();
        for group in groups {
            let native = self.is_native(&group);
            // A shared spot has no condition of its own: it stays whoever shares it.
            let same = |spot: &Spot| {
                spot.native == native
                    && spot.wishes[0].place == group[0].place
                    && (!native || spot.wishes[0].id == group[0].id)
            };
            match before.iter().position(same) {
                Some(at) => {
                    let spot = before.swap_remove(at);
                    kept.push(Spot { wishes: group, ..spot });
                }
                None => new.push((group, native)),
            }
        }
        for spot in before {
            if let Ok(id) = &spot.engine {
                let _ = self.ask("breakpoint_remove", &[('d', id)], None)?;
            }
        }
        self.spots.spots.extend(kept);
        for (group, native) in new {
            let spot = self.make(&group, native)?;
            self.spots.spots.push(spot);
        }
        let told: Vec<Json> = wishes.iter().map(|wish| self.told(wish.id)).collect();
        Ok(json!({ "breakpoints": told }))
    }

    fn is_native(&self, group: &[Wish]) -> bool {
        let called = matches!(group[0].place, Place::Function(_));
        !self.spots.simple || (group.len() == 1 && !(called && group[0].condition.is_some()))
    }

    fn make(&mut self, wishes: &[Wish], native: bool) -> Result<Spot, String> {
        let wish = &wishes[0];
        let condition = wish.condition.as_deref().filter(|_| native).map(self.dialect.condition);
        let hits = wish.hits.filter(|_| native).map(|hits| hits.to_string());
        let mut options = Vec::new();
        let (first, second) = match &wish.place {
            Place::Line(file, line) => (uri_of(file), line.to_string()),
            Place::Function(name) => (name.clone(), String::new()),
        };
        match &wish.place {
            Place::Line(..) => {
                options.push(('t', if condition.is_some() { "conditional" } else { "line" }));
                options.extend([('f', first.as_str()), ('n', second.as_str())]);
            }
            Place::Function(_) => options.extend([('t', "call"), ('m', first.as_str())]),
        }
        if let Some(hits) = &hits {
            options.extend([('h', hits.as_str()), ('o', ">=")]);
        }
        let answer = self.ask("breakpoint_set", &options, condition.as_deref())?;
        let mut spot =
            Spot { wishes: wishes.to_vec(), native, engine: Err(String::new()), resolved: false, line: None };
        match (answer.attribute("id"), answer.first("error")) {
            (Some(id), None) => {
                spot.line = answer.number("lineno").or_else(|| self.spots.resolved.get(id).copied());
                spot.resolved = answer.attribute("resolved") != Some("unresolved");
                spot.engine = Ok(id.to_string());
            }
            (_, error) => {
                let message = error.and_then(|error| error.first("message")).map(Element::content);
                spot.engine = Err(message.unwrap_or_else(|| "it could not be set".into()));
            }
        }
        if let (Place::Function(name), Some(code)) = (&wishes[0].place, self.dialect.is_function) {
            let known = self.demand("eval", &[], Some(&code(name)));
            spot.resolved =
                known.is_ok_and(|known| known.first("property").is_some_and(|value| value.content() == "1"));
        }
        Ok(spot)
    }

    fn told(&self, id: i64) -> Json {
        let Some(spot) = self.spots.spots.iter().find(|spot| spot.wishes.iter().any(|wish| wish.id == id)) else {
            return json!({ "id": id, "verified": false });
        };
        let mut told = json!({ "id": id, "verified": spot.engine.is_ok() && spot.resolved });
        let asked = spot.wishes.iter().find(|wish| wish.id == id).map(|wish| wish.place.clone());
        match (&spot.engine, asked) {
            (Err(why), _) => told["message"] = json!(why),
            (Ok(_), Some(Place::Line(file, asked))) if spot.resolved => {
                told["line"] = json!(spot.line.unwrap_or(asked));
                told["source"] = json!({ "path": file });
            }
            (Ok(_), Some(Place::Line(..))) => {
                told["message"] = json!("no code there yet: its file is not loaded, or the line has none");
            }
            (Ok(_), _) if !spot.resolved => told["message"] = json!("no function of that name is defined yet"),
            _ => {}
        }
        told
    }

    /// The engine has found the place of a breakpoint.
    pub(super) fn notified(&mut self, element: &Element) {
        if element.attribute("name") != Some("breakpoint_resolved") {
            return;
        }
        for breakpoint in element.all("breakpoint") {
            let Some(id) = breakpoint.attribute("id") else { continue };
            let line = breakpoint.number("lineno");
            if let Some(line) = line {
                self.spots.resolved.insert(id.to_string(), line);
            }
            let found = self.spots.spots.iter_mut().find(|spot| spot.engine.as_deref() == Ok(id));
            let Some(spot) = found else { continue };
            (spot.resolved, spot.line) = (true, line.or(spot.line));
            let ids: Vec<i64> = spot.wishes.iter().map(|wish| wish.id).collect();
            for id in ids {
                let told = self.told(id);
                self.client.event("breakpoint", json!({ "reason": "changed", "breakpoint": told }));
            }
        }
    }

    /// The wishes that a stop at these breakpoints of the engine fulfils.
    pub(super) fn hit(&mut self, engine: &[String]) -> Vec<i64> {
        let is_hit = |spot: &Spot| spot.engine.as_ref().is_ok_and(|id| engine.contains(id));
        let mut ids = Vec::new();
        let mut shared: Vec<Wish> = Vec::new();
        for spot in self.spots.spots.iter_mut().filter(|spot| is_hit(spot)) {
            if spot.native {
                ids.extend(spot.wishes.iter().map(|wish| wish.id));
            } else {
                shared.extend(spot.wishes.iter().cloned());
            }
        }
        for wish in shared {
            let holds = match &wish.condition {
                Some(condition) => {
                    let code = format!("(bool) ({})", (self.dialect.condition)(condition));
                    let value = self.demand("eval", &[], Some(&code));
                    value.ok().and_then(|value| value.first("property").map(Element::content)).is_none_or(|v| v != "0")
                }
                None => true,
            };
            let mut wishes = self.spots.spots.iter_mut().flat_map(|spot| spot.wishes.iter_mut());
            if let Some(known) = wishes.find(|known| holds && known.id == wish.id) {
                known.seen += 1;
                if known.hits.is_none_or(|hits| known.seen >= hits) {
                    ids.push(known.id);
                }
            }
        }
        ids
    }

    pub(super) fn set_exceptions(&mut self, arguments: &Json) -> Result<Json, String> {
        for (id, _) in std::mem::take(&mut self.spots.exceptions) {
            let _ = self.ask("breakpoint_remove", &[('d', &id)], None)?;
        }
        let filters: Vec<&str> =
            arguments.get("filters").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect();
        // The name stands last in the path; the client's own groups before it.
        let mut wanted: Vec<(String, bool)> = Vec::new();
        for option in arguments.get("exceptionOptions").and_then(Json::as_array).into_iter().flatten() {
            let path = option.get("path").and_then(Json::as_array).and_then(|path| path.last());
            let names = path.and_then(|last| last.get("names")).and_then(Json::as_array);
            for name in names.into_iter().flatten().filter_map(Json::as_str) {
                wanted.push((name.to_string(), true));
            }
        }
        if filters.contains(&"raised") {
            wanted.push(("*".into(), true));
        } else if filters.contains(&"uncaught") {
            wanted.push(("*".into(), false));
        }
        for (name, raised) in wanted {
            let state = if raised { "raised" } else { "uncaught" };
            let mut options = vec![('t', "exception"), ('x', name.as_str())];
            if self.dialect.agent.is_some() {
                options.push(('s', state));
            }
            let answer = self.demand("breakpoint_set", &options, None)?;
            let id = answer.attribute("id").unwrap_or_default().to_string();
            self.spots.exceptions.push((id, raised));
        }
        Ok(json!({}))
    }

    /// The file of a frame, as breakpoints name it.
    pub(super) fn file_of(frame: &Element) -> Option<String> {
        frame.attribute("filename").map(path_of)
    }
}
