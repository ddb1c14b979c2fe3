//! From a struct to its line, and back.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// The subject of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A task in a phase.
    Task,
    /// A phase as a whole.
    Run,
    /// When a task had its CPU.
    Trace,
    /// The events on a CPU.
    Events,
    /// The fate of a profile.
    Pbg,
    /// The cost of a yield.
    Cost,
    /// The time that woken tasks wait.
    Wake,
    /// The cost of coroutines beside threads.
    Coop,
    /// The service of connections.
    Conn,
}

impl Kind {
    /// Lists all kinds.
    pub const ALL: [Self; 9] = [
        Self::Task,
        Self::Run,
        Self::Trace,
        Self::Events,
        Self::Pbg,
        Self::Cost,
        Self::Wake,
        Self::Coop,
        Self::Conn,
    ];

    /// Returns the word that the line begins with.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Task => "SCHED-TASK",
            Self::Run => "SCHED-RUN",
            Self::Trace => "SCHED-TRACE",
            Self::Events => "SCHED-EVENTS",
            Self::Pbg => "SCHED-PBG",
            Self::Cost => "SCHED-COST",
            Self::Wake => "SCHED-WAKE",
            Self::Coop => "SCHED-COOP",
            Self::Conn => "SCHED-CONN",
        }
    }

    /// Returns the kind of a line of the console and its JSON; `None` if it is no result line.
    pub fn split(line: &str) -> Option<(Self, &str)> {
        let (tag, json) = line.split_once(' ')?;
        let kind = Self::ALL.into_iter().find(|kind| kind.tag() == tag)?;
        Some((kind, json))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.tag())
    }
}

/// Why a line could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// It is none of this kind.
    OtherKind(Kind),
    /// Keys that every line of this kind has are not there.
    Missing {
        /// The line's kind.
        kind: Kind,
        /// The names of all of them, sorted.
        keys: Vec<String>,
    },
    /// It is no JSON object, or a value is not what its key allows.
    Malformed {
        /// The line's kind.
        kind: Kind,
        /// The error in the line.
        what: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherKind(kind) => write!(f, "no {kind} line"),
            Self::Missing { kind, keys } => write!(f, "{kind} lacks `{}`", keys.join("`, `")),
            Self::Malformed { kind, what } => write!(f, "{kind}: {what}"),
        }
    }
}

impl core::error::Error for ReadError {}

/// A result line. Its [`Default`] has the keys that every one has, and no others.
pub trait ResultLine: Default + Serialize + DeserializeOwned {
    /// The kind of the line.
    const KIND: Kind;

    /// Returns the line, without an end of line.
    fn to_line(&self) -> String {
        // Strings, integers and finite floats under fixed keys: nothing can fail.
        let json = serde_json::to_string(self).expect("a result line serialises");
        format!("{} {json}", Self::KIND)
    }

    /// Reads a line of the console.
    fn read(line: &str) -> Result<Self, ReadError> {
        match Kind::split(line) {
            Some((kind, json)) if kind == Self::KIND => Self::from_json(json),
            _ => Err(ReadError::OtherKind(Self::KIND)),
        }
    }

    /// Reads what [`Kind::split`] has left of a line.
    fn from_json(json: &str) -> Result<Self, ReadError> {
        read_json(Self::KIND, json)
    }
}

/// Reads one object; a failure names every key that is missing, where serde names the first.
pub(crate) fn read_json<T>(kind: Kind, json: &str) -> Result<T, ReadError>
where
    T: Default + Serialize + DeserializeOwned,
{
    serde_json::from_str(json).map_err(|error| {
        let found = match value_of(kind, json) {
            Ok(found) => found,
            Err(error) => return error,
        };
        let keys = missing(&T::default(), &found);
        if keys.is_empty() {
            malformed(kind, &error)
        } else {
            ReadError::Missing { kind, keys }
        }
    })
}

/// The keys of a line as they are.
pub(crate) fn value_of(kind: Kind, json: &str) -> Result<Map<String, Value>, ReadError> {
    serde_json::from_str(json).map_err(|error| malformed(kind, &error))
}

/// Returns the keys of the least line that the found one lacks.
fn missing(least: &impl Serialize, found: &Map<String, Value>) -> Vec<String> {
    let least = match serde_json::to_value(least) {
        Ok(Value::Object(least)) => least,
        _ => unreachable!("a result line is an object"),
    };
    least
        .into_iter()
        .map(|(key, _)| key)
        .filter(|key| !found.contains_key(key))
        .collect()
}

fn malformed(kind: Kind, error: &serde_json::Error) -> ReadError {
    // serde's place is within the JSON, which is always its line 1.
    let what = error.to_string();
    let what = what.split(" at line 1 ").next().unwrap_or(&what).into();
    ReadError::Malformed { kind, what }
}
