//! Commands that are answered from a record, in this process: the daemon is only asked whether the session is live.

use std::path::Path;

use clap::{Arg, ArgMatches, Command};
use serde_json::Value;

use crate::client;
use crate::client::records::Known;
use crate::commands::past::over;
use crate::commands::{Entry, Past, past_of};
use crate::failure::{Failure, Kind};
use crate::paths::Paths;
use crate::render::quoted_lines;
use crate::store::named::named;
use crate::store::read::Head;
use crate::store::replay::{Moment, When};
use crate::wire::{Answer, Origin};

/// An identifier that no command's own argument will have.
const AT: &str = "moment of a record";

/// Adds `--at` to a command that a record may answer.
pub fn with_moment(command: Command, entry: &Entry) -> Command {
    if entry.past == Past::Apart {
        return command;
    }
    command.arg(argument())
}

/// `--at` itself.
pub fn argument() -> Arg {
    Arg::new(AT)
        .long("at")
        .value_name("MOMENT")
        .help("Answer from the record, at this moment: an event's number, stop:N, first, last or end")
}

/// The moment that was asked for.
pub fn moment(arguments: &ArgMatches, entry: &Entry) -> Result<Option<When>, Failure> {
    if entry.past == Past::Apart {
        return Ok(None);
    }
    arguments.get_one::<String>(AT).map(|text| text.parse()).transpose()
}

/// What is asked, and of whom.
#[derive(Debug)]
pub struct Asked<'a> {
    pub entry: &'static Entry,
    pub args: &'a Value,
    pub session: Option<&'a str>,
    pub when: Option<When>,
    pub paths: &'a Paths,
    pub cwd: &'a Path,
}

impl Asked<'_> {
    /// The answer of a record, where that is who is asked: a moment is named, or the record itself, whose session is over,
    /// or there is no daemon that could have the session.
    pub fn first(&self) -> Result<Option<Answer>, Failure> {
        if self.entry.past == Past::Apart || (self.when.is_none() && self.session.is_none()) {
            return Ok(None);
        }
        if self.when.is_none() && !self.session.is_some_and(is_id) {
            return Ok(if client::is_claimed(self.paths) { None } else { self.named() });
        }
        let known = Known::ask(self.paths, self.session, self.cwd);
        if self.when.is_none() && known.live {
            return Ok(None);
        }
        match known.chosen(self.paths, self.session, self.cwd) {
            Ok(head) => Ok(Some(self.answer(head))),
            Err(failure) if self.when.is_some() => Err(failure),
            Err(_) => Ok(None),
        }
    }

    /// The answer of a record that went by the name of a session that the daemon does not have.
    #[must_use]
    pub fn instead_of(&self, answer: Answer) -> Answer {
        let unknown = answer.error.as_ref().is_some_and(|error| error.kind == Kind::NotFound);
        // It is about a session if one was found.
        if !unknown || answer.session.is_some() || self.entry.past == Past::Apart {
            return answer;
        }
        self.named().unwrap_or(answer)
    }

    fn named(&self) -> Option<Answer> {
        let head = named(&self.paths.state, self.session?, self.cwd).ok()?;
        Some(self.answer(head))
    }

    fn answer(&self, head: Head) -> Answer {
        let when = self.when.unwrap_or(if self.entry.at_end { When::End } else { When::Last });
        // What would run or change the program is refused wherever it is asked.
        let past = (self.entry.past_of)(self.args.clone());
        if self.when.is_none() && matches!(past, Past::Changes | Past::Beside) {
            return Answer::new(Err(over(&head, self.entry.name)));
        }
        let moment = match Moment::load(head, when, past_of) {
            Ok(moment) => moment,
            Err(failure) => return Answer::new(Err(failure)),
        };
        let mut answer = Answer::new((self.entry.recall)(self.args.clone(), &moment));
        let stop = moment.stood.as_ref().map(|stood| stood.stop.number);
        answer.from = Some(Origin { record: moment.head.id.clone(), at: moment.seq, stop });
        answer.session = Some(moment.head.alias.clone()).filter(|alias| !alias.is_empty());
        answer.via = moment.via.or_else(|| Some(moment.head.adapter.clone()));
        answer
    }
}

/// Whether a name is a record's own: `20261115-214131-otter`.
fn is_id(name: &str) -> bool {
    let mut parts = name.splitn(3, '-');
    let digits = |part: Option<&str>, length| {
        part.is_some_and(|part| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    digits(parts.next(), 8) && digits(parts.next(), 6) && parts.next().is_some_and(|word| !word.is_empty())
}

/// Text that was made from a record. Whatever its writer put there, it acts on no terminal.
#[must_use]
pub fn harmless(text: &str, answer_is_recorded: bool) -> String {
    if answer_is_recorded { quoted_lines(text) } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    use super::is_id;

    #[test]
    fn a_record_is_told_from_a_session_by_its_name() {
        assert!(is_id("20261115-214131-otter") && is_id("20261115-214131-otter-2"));
        for name in ["s1", "otter", "20261115", "20261115-214131", "20261115-214131-", "2026111x-214131-otter", ""] {
            assert!(!is_id(name), "{name}");
        }
    }
}
