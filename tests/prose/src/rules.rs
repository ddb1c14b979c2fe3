//! The rules of language that are a pattern or a count, by their numbers.
//!
//! Rules 6 and 10 ask for one term for each thing, and for messages that say what to do. They are left to a reader.

use std::{fmt, sync::LazyLock};

use regex::Regex;
use unicase::UniCase;

use crate::{
    Offence,
    text::{CODE, Kind, Passage},
};

/// A rule of language that a program can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// 0: a word is not one of the misspellings that `typos` knows.
    Spelling,
    /// 1: `who`, `whom`, `nobody` and `somebody` are people.
    People,
    /// 2: a sentence begins with its subject, not with `who`, `whose`, `what` or `of`.
    Subject,
    /// 3: a function's documentation begins with a verb.
    Verb,
    /// 4: a documentation comment is a full sentence.
    Sentence,
    /// 5: a sentence has at most [`MOST_WORDS`] words, and one colon or semicolon.
    Length,
    /// 7: `of` does not say ownership.
    Ownership,
    /// 8: the active voice says which part calls which.
    Active,
    /// 9: the name of a function is an imperative, that of a predicate begins with `is`, `has`
    /// or `can`.
    Imperative,
    /// 11: the name of a test states a behaviour.
    Behaviour,
    /// 12: the subject of a commit is `area: verb ...`, of at most 72 characters.
    Commit,
}

/// The most words of a sentence.
pub const MOST_WORDS: usize = 30;

impl Rule {
    /// Returns the number of the rule.
    pub fn number(self) -> u8 {
        self.entry().0
    }

    /// Returns the number and an example of the cure.
    fn entry(self) -> (u8, &'static str) {
        match self {
            Self::Spelling => (0, "a misspelling; the list is that of `typos`"),
            Self::People => (1, "`the task that waits`, `no CPU`; `who` only for people"),
            Self::Subject => (2, "begin with the subject: `The task that ...`"),
            Self::Verb => (3, "begin with a verb: `Returns ...`, `Returns true if ...`"),
            Self::Sentence => (4, "write a full sentence: `Holds the lock of the queue.`"),
            Self::Length => (5, "cut it: at most 30 words and one colon or semicolon"),
            Self::Ownership => (7, "`belongs to`, `per-CPU`, `the queue's`"),
            Self::Active => (8, "say which part does what, and the number"),
            Self::Imperative => (9, "`close`, `drain_inbox`; a predicate is `is_closed`"),
            Self::Behaviour => (
                11,
                "state the behaviour: `lost_ipi_is_recovered_by_next_tick`",
            ),
            Self::Commit => (12, "`area: verb ...`, at most 72 characters"),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, cure) = self.entry();
        write!(f, "rule {number}: {cure}")
    }
}

macro_rules! pattern {
    ($name:ident, $pattern:expr) => {
        static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($pattern).expect("a pattern that compiles"));
    };
}

pattern!(
    NOT_PEOPLE,
    r"(?i)(\S+)?\s*\b(who|whom|whoever|nobody|somebody)\b"
);
pattern!(
    PEOPLE,
    r"(?i)^(user|reader|engineer|author|person|people|developer|maintainer|newcomer|writer|reviewer|attacker|anyone|everyone|someone|those|one)s?,?$"
);
pattern!(BEGINS, r"^\W*(Who|Whom|Whose|What|Of)\b");
pattern!(
    OWNERSHIP,
    r"\b(?i:is|are|was|were) of (?:a|an|the|each|its|all|no|that|those|one)\b"
);
pattern!(
    PASSIVE,
    r"(?i)\bso many\b|\b(?:is|are|was|were) to be\b|\b(?:is|are|was|were) had\b|\bfor as long[,.;]"
);
pattern!(NO_VERB, r"^(Whether|How|The same)\b");
pattern!(WORD, r"[A-Za-z]+(?:'[a-z]+)?");
pattern!(ENDS, r#"[.!?]["')*_]*\s+"#);
/// Verbs in the third person, which no function's name begins with.
const VERBS: &str = "adds arrives becomes begins belongs closes comes continues decides drains enters exists \
    expects fails finds finishes follows forgets gets gives goes keeps knows leaves meets \
    opens preempts puts refers removes says sees sends serves settles tells unrefers";
/// Verbs that are plurals of nouns as well. Alone they may name what a getter returns.
const VERBS_OR_NOUNS: &str = "asks calls charges drops holds looks makes moves needs reads runs sets stays stops takes \
    tries waits wakes wants writes yields";

/// Returns the rules that a passage breaks.
pub fn broken_by(passage: &Passage) -> Vec<Offence> {
    let mut broken = Vec::new();
    let mut offend = |rule, found: &str| {
        broken.push(Offence {
            line: passage.line,
            rule,
            found: found.trim().to_owned(),
        });
    };
    for word in WORD.find_iter(&passage.text) {
        if is_misspelt(word.as_str()) {
            offend(Rule::Spelling, word.as_str());
        }
    }
    match passage.kind {
        Kind::Function => {
            if is_third_person(&passage.text) {
                offend(Rule::Imperative, &passage.text);
            }
            return broken;
        }
        Kind::Test => {
            if NOT_PEOPLE.is_match(&passage.text) || has_no_subject(&passage.text) {
                offend(Rule::Behaviour, &passage.text);
            }
            return broken;
        }
        _ => {}
    }
    for found in NOT_PEOPLE.captures_iter(&passage.text) {
        let before = found.get(1).map_or("", |word| word.as_str());
        if !PEOPLE.is_match(before) {
            offend(Rule::People, &found[0]);
        }
    }
    for (rule, pattern) in [(Rule::Ownership, &OWNERSHIP), (Rule::Active, &PASSIVE)] {
        for found in pattern.find_iter(&passage.text) {
            offend(rule, found.as_str());
        }
    }
    let sentences = sentences(&passage.text);
    for sentence in &sentences {
        if BEGINS.is_match(sentence) && !sentence.ends_with('?') {
            offend(Rule::Subject, first_words(sentence));
        }
        let is_text = !matches!(passage.kind, Kind::Fragment | Kind::Message);
        if is_text && is_too_long(sentence) {
            offend(Rule::Length, first_words(sentence));
        }
    }
    if matches!(passage.kind, Kind::Doc | Kind::FunctionDoc)
        && sentences.first().is_some_and(|first| words(first) < 3)
    {
        offend(Rule::Sentence, &passage.text);
    }
    if passage.kind == Kind::FunctionDoc && NO_VERB.is_match(&passage.text) {
        offend(Rule::Verb, first_words(&passage.text));
    }
    broken
}

/// Returns true if `typos` knows the word as a misspelling.
fn is_misspelt(word: &str) -> bool {
    typos_dict::WORD.find(&UniCase::new(word)).is_some()
}

/// Returns true if a function's name begins with a verb in the third person. Its words are separate.
fn is_third_person(name: &str) -> bool {
    let (first, is_alone) = name
        .split_once(' ')
        .map_or((name, true), |(first, _)| (first, false));
    let is_one_of = |verbs: &str| verbs.split(' ').any(|verb| verb == first);
    is_one_of(VERBS) || !is_alone && is_one_of(VERBS_OR_NOUNS)
}

/// Returns true if the name of a test begins with a relative pronoun or `of`.
fn has_no_subject(name: &str) -> bool {
    matches!(name.split(' ').next(), Some("what" | "whose" | "of"))
}

/// Returns the sentences of a passage, with their stops.
fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for end in ENDS.find_iter(text) {
        let next = text[end.end()..].trim_start_matches(|c: char| !c.is_alphanumeric());
        let is_next = next.starts_with(|c: char| c.is_uppercase() || c.is_numeric());
        let said = text[start..end.end()].trim();
        if is_next && !said.ends_with("e.g.") && !said.ends_with("i.e.") {
            sentences.push(said);
            start = end.end();
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        sentences.push(last);
    }
    sentences
}

fn is_too_long(sentence: &str) -> bool {
    words(sentence) > MOST_WORDS || stops(sentence) > 1
}

/// Counts colons and semicolons, but not those of a time or a ratio.
fn stops(sentence: &str) -> usize {
    let is_stop = |word: &&str| word.ends_with([':', ';']);
    sentence.split_whitespace().filter(is_stop).count()
}

fn words(sentence: &str) -> usize {
    let is_word = |word: &&str| *word == CODE || word.contains(char::is_alphanumeric);
    sentence.split_whitespace().filter(is_word).count()
}

/// Returns the first words of a sentence, by which it can be found.
fn first_words(sentence: &str) -> &str {
    let end = sentence
        .match_indices(' ')
        .nth(5)
        .map_or(sentence.len(), |(at, _)| at);
    &sentence[..end]
}
