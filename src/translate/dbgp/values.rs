//! Frames, scopes and values, from an engine's properties to the protocol's variables.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::Translator;
use super::xml::Element;

/// Children of a value that an engine gives at once.
const PAGE: usize = 100;

/// What a reference stands for until the program moves.
#[derive(Debug)]
pub(super) enum Kept {
    Scope {
        thread: i64,
        level: i64,
        context: &'static str,
    },
    /// A value that the engine finds by its name.
    Named {
        thread: i64,
        level: i64,
        name: String,
    },
    /// A value that the engine has no name for, as far as it was told.
    Loose(Element),
}

impl Translator<'_> {
    fn at(thread: i64, level: i64) -> (String, String) {
        (thread.to_string(), level.to_string())
    }

    fn must_stand(&self) -> Result<(), String> {
        if self.run.is_some() { Err("the program is running".into()) } else { Ok(()) }
    }

    pub(super) fn threads(&mut self) -> Result<Json, String> {
        if !self.dialect.threads || self.commands.is_none() {
            return Ok(json!({ "threads": [{ "id": 1, "name": "main" }] }));
        }
        let answer = self.demand("x_threads", &[], None)?;
        let threads: Vec<Json> = answer
            .all("thread")
            .map(|thread| json!({ "id": thread.number("id"), "name": thread.attribute("name") }))
            .collect();
        Ok(json!({ "threads": threads }))
    }

    /// The files that the program is made of.
    pub(super) fn modules(&mut self) -> Result<Json, String> {
        let pairs: Vec<(String, String)> = match self.dialect.files {
            Some(code) => {
                let _ = self.ask("feature_set", &[('n', "max_data"), ('v', "1000000")], None)?;
                let answer = self.demand("eval", &[], Some(code));
                let _ = self.ask("feature_set", &[('n', "max_data"), ('v', super::LONGEST_TEXT)], None)?;
                let text = answer?.first("property").map(Element::content).unwrap_or_default();
                let named = |path: &str| (path.rsplit('/').next().unwrap_or(path).to_string(), path.to_string());
                text.lines().map(named).collect()
            }
            None => {
                let answer = self.demand("x_modules", &[], None)?;
                let part = |module: &Element, name: &str| module.attribute(name).unwrap_or_default().to_string();
                answer.all("module").map(|module| (part(module, "name"), part(module, "path"))).collect()
            }
        };
        let told = |(name, path): (String, String)| json!({ "id": path, "name": name, "path": path });
        let modules: Vec<Json> = pairs.into_iter().map(told).collect();
        Ok(json!({ "totalModules": modules.len(), "modules": modules }))
    }

    pub(super) fn stack(&mut self, arguments: &Json) -> Result<Json, String> {
        self.must_stand()?;
        let number = |name: &str| arguments.get(name).and_then(Json::as_i64);
        let thread = number("threadId").unwrap_or(1);
        let from = usize::try_from(number("startFrame").unwrap_or(0)).unwrap_or(0);
        let levels = usize::try_from(number("levels").unwrap_or(0)).ok().filter(|levels| *levels > 0);
        let (wanted, _) = Self::at(thread, 0);
        let options: &[(char, &str)] = if self.dialect.threads { &[('t', &wanted)] } else { &[] };
        let answer = self.demand("stack_get", options, None)?;
        let all: Vec<&Element> = answer.all("stack").collect();
        let mut frames = Vec::new();
        for (index, frame) in all.iter().enumerate().skip(from).take(levels.unwrap_or(usize::MAX)) {
            let level = frame.number("level").or_else(|| i64::try_from(index).ok()).unwrap_or(0);
            let known = self.frames.iter().position(|known| *known == (thread, level));
            let id = known.unwrap_or_else(|| {
                self.frames.push((thread, level));
                self.frames.len() - 1
            });
            let file = Self::file_of(frame).unwrap_or_default();
            let mut told = json!({
                "id": id + 1,
                "name": frame.attribute("where").unwrap_or_default(),
                "line": frame.number("lineno").unwrap_or(0),
                "column": 1,
            });
            // A function of the interpreter itself has no variables to look at.
            if frame.attribute("native") == Some("1") {
                told["presentationHint"] = json!("subtle");
            }
            if file.starts_with('/') {
                told["source"] = json!({ "path": file, "name": file.rsplit('/').next() });
            } else if !file.is_empty() {
                told["source"] = json!({ "name": file });
            }
            frames.push(told);
        }
        Ok(json!({ "stackFrames": frames, "totalFrames": all.len() }))
    }

    /// Thread and level of a frame that was told.
    fn frame(&self, arguments: &Json) -> Result<(i64, i64), String> {
        let Some(id) = arguments.get("frameId").and_then(Json::as_i64) else { return Ok((self.thread, 0)) };
        let known = usize::try_from(id - 1).ok().and_then(|at| self.frames.get(at).copied());
        known.ok_or_else(|| "there is no such frame any more".into())
    }

    fn keep(&mut self, kept: Kept) -> usize {
        self.kept.push(kept);
        self.kept.len()
    }

    pub(super) fn scopes(&mut self, arguments: &Json) -> Result<Json, String> {
        self.must_stand()?;
        let (thread, level) = self.frame(arguments)?;
        let scopes: Vec<Json> = self
            .dialect
            .scopes
            .iter()
            .map(|(name, hint, context)| {
                let reference = self.keep(Kept::Scope { thread, level, context });
                json!({ "name": name, "presentationHint": hint, "variablesReference": reference, "expensive": *context != "0" })
            })
            .collect();
        Ok(json!({ "scopes": scopes }))
    }

    pub(super) fn variables(&mut self, arguments: &Json) -> Result<Json, String> {
        self.must_stand()?;
        let number = |name: &str| arguments.get(name).and_then(Json::as_u64).and_then(|n| usize::try_from(n).ok());
        let reference = number("variablesReference").unwrap_or(0);
        let start = number("start").unwrap_or(0);
        let count = number("count").filter(|count| *count > 0).unwrap_or(usize::MAX);
        let kept = reference.checked_sub(1).and_then(|at| self.kept.get(at)).ok_or("that value is gone")?;
        let (thread, level, properties) = match kept {
            Kept::Scope { thread, level, context } => {
                let (thread, level, context) = (*thread, *level, *context);
                let (in_thread, depth) = Self::at(thread, level);
                let options = [('d', depth.as_str()), ('c', context), ('t', in_thread.as_str())];
                let options = if self.dialect.threads { &options[..] } else { &options[..2] };
                let answer = self.demand("context_get", options, None)?;
                (thread, level, answer.children)
            }
            Kept::Named { thread, level, name } => {
                let (thread, level, name) = (*thread, *level, name.clone());
                (thread, level, self.pages(thread, level, &name, start, count)?)
            }
            Kept::Loose(element) => (self.thread, 0, element.properties().skip(start).take(count).cloned().collect()),
        };
        let variables: Vec<Json> = properties
            .iter()
            .filter(|property| property.name == "property")
            .map(|p| self.variable(p, thread, level))
            .collect();
        Ok(json!({ "variables": variables }))
    }

    /// So many children of a value, from its pages.
    fn pages(
        &mut self,
        thread: i64,
        level: i64,
        name: &str,
        start: usize,
        count: usize,
    ) -> Result<Vec<Element>, String> {
        let mut children = Vec::new();
        let mut page = start / PAGE;
        let skip = start % PAGE;
        loop {
            let value = self.property(name, thread, level, page)?;
            let total = value.number("numchildren").and_then(|total| usize::try_from(total).ok()).unwrap_or(0);
            let before = children.len();
            children.extend(value.properties().cloned());
            let got = children.len() - before;
            page += 1;
            if got == 0 || page * PAGE >= total || children.len() >= skip.saturating_add(count) {
                break;
            }
        }
        Ok(children.into_iter().skip(skip).take(count).collect())
    }

    fn property(&mut self, name: &str, thread: i64, level: i64, page: usize) -> Result<Element, String> {
        let (in_thread, depth) = Self::at(thread, level);
        let page = page.to_string();
        let options = [('n', name), ('d', depth.as_str()), ('p', page.as_str()), ('t', in_thread.as_str())];
        let options = if self.dialect.threads { &options[..] } else { &options[..3] };
        let answer = self.demand("property_get", options, None)?;
        answer.first("property").cloned().ok_or_else(|| "it has no value".into())
    }

    fn variable(&mut self, property: &Element, thread: i64, level: i64) -> Json {
        let mut told = self.value(property, thread, level);
        told["name"] = json!(property.part("name").unwrap_or_default());
        told["value"] = told["result"].take();
        told
    }

    /// A value as `evaluate` tells it.
    fn value(&mut self, property: &Element, thread: i64, level: i64) -> Json {
        let kind = property.attribute("classname").or_else(|| property.attribute("type")).unwrap_or_default();
        let children = property.number("numchildren").unwrap_or(0);
        let mut told = json!({ "result": (self.dialect.text)(property), "type": kind, "variablesReference": 0 });
        if children > 0 {
            let kept = match property.part("fullname") {
                Some(name) => Kept::Named { thread, level, name },
                None => Kept::Loose(property.clone()),
            };
            told["variablesReference"] = json!(self.keep(kept));
            told["indexedVariables"] = json!(children);
        }
        told
    }

    pub(super) fn evaluate(&mut self, arguments: &Json) -> Result<Json, String> {
        self.must_stand()?;
        let expression = arguments.get("expression").and_then(Json::as_str).unwrap_or_default();
        let (thread, level) = self.frame(arguments)?;
        self.evaluated(expression, thread, level)
    }

    fn evaluated(&mut self, expression: &str, thread: i64, level: i64) -> Result<Json, String> {
        let expression = expression.trim();
        if (self.dialect.is_path)(expression) {
            match self.property(expression, thread, level, 0) {
                Ok(value) => return Ok(self.value(&value, thread, level)),
                Err(_) if expression.contains(['-', '[']) => {}
                Err(_) => return Err(format!("there is no {expression} here")),
            }
        }
        let value = self.computed(expression, thread, level)?;
        if let Some(failure) = (self.dialect.failure)(&value) {
            return Err(failure);
        }
        Ok(self.value(&value, thread, level))
    }

    fn computed(&mut self, expression: &str, thread: i64, level: i64) -> Result<Element, String> {
        let code = (self.dialect.code)(expression);
        let (in_thread, depth) = Self::at(thread, level);
        let answer = if self.dialect.threads {
            self.demand("eval", &[('d', &depth), ('t', &in_thread)], Some(&code))?
        } else if level == 0 || self.evaluates_anywhere() {
            self.demand("eval", &[('d', &depth)], Some(&code))?
        } else {
            // An assignment looks at its frame in every version; what it assigns is read from there.
            let _ = self.demand("property_set", &[('d', &depth), ('n', "$GLOBALS[\"bugeye\"]")], Some(&code))?;
            let taken =
                "(function () { $value = $GLOBALS['bugeye'] ?? null; unset($GLOBALS['bugeye']); return $value; })()";
            self.demand("eval", &[], Some(taken))?
        };
        Ok(answer.first("property").cloned().unwrap_or_default())
    }

    /// An engine that looks at the frame refuses one that is not there.
    fn evaluates_anywhere(&mut self) -> bool {
        if self.dialect.agent.is_some() {
            return true;
        }
        if self.evaluates_anywhere.is_none() {
            let depth = i32::MAX.to_string();
            self.evaluates_anywhere = Some(self.demand("eval", &[('d', &depth)], Some("1")).is_err());
        }
        self.evaluates_anywhere.unwrap_or(false)
    }

    pub(super) fn set_expression(&mut self, arguments: &Json) -> Result<Json, String> {
        self.must_stand()?;
        let text = |name: &str| arguments.get(name).and_then(Json::as_str).unwrap_or_default();
        let (thread, level) = self.frame(arguments)?;
        self.evaluated(&format!("{} = {}", text("expression"), text("value")), thread, level)
    }
}

/// `file:///a%20b` → `/a b`.
pub(super) fn path_of(uri: &str) -> String {
    let Some(coded) = uri.strip_prefix("file://") else { return uri.to_string() };
    let mut bytes = Vec::with_capacity(coded.len());
    let mut rest = coded.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(super) fn uri_of(path: &str) -> String {
    let mut uri = String::from("file://");
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_survives_as_an_address() {
        for path in ["/a/b.php", "/a b/c%20.rb", "/ä/é.pl", "/x#y?z"] {
            assert_eq!(path_of(&uri_of(path)), path);
        }
        assert_eq!(path_of("dbgp://1"), "dbgp://1");
        assert_eq!(path_of("file:///a%"), "/a%");
    }
}
