//! Finds the prose of a file.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use ra_ap_rustc_lexer::{LiteralKind, TokenKind, tokenize};

/// The place of a passage, which decides the rules that apply to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A paragraph or a list item of a page or of a comment.
    Paragraph,
    /// The first paragraph of an item's documentation.
    Doc,
    /// The first paragraph of a function's documentation.
    FunctionDoc,
    /// A heading, a cell of a table, a comment of a script: not always a sentence.
    Fragment,
    /// A string literal of at least four words.
    Message,
    /// The name of a function.
    Function,
    /// The name of a test.
    Test,
}

/// A stretch of prose without its mark-up. Inline code stands in it as `CODE`.
#[derive(Clone, Debug)]
pub struct Passage {
    /// The line on which it begins, from 1.
    pub line: usize,
    /// The place of the passage.
    pub kind: Kind,
    /// The words without their mark-up.
    pub text: String,
}

/// Stands for inline code, whose words are not English.
pub const CODE: &str = "CODE";

/// How the prose of a file is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Comments, literals and names of Rust.
    Rust,
    /// A page of Markdown.
    Markdown,
    /// Comments of a shell script, a makefile or a manifest.
    Script,
}

impl Form {
    /// Returns the form of the file of this name, or `None` if it has no prose.
    pub fn of(path: &str) -> Option<Self> {
        match path.rsplit(['.', '/']).next() {
            Some("rs") => Some(Self::Rust),
            Some("md") => Some(Self::Markdown),
            Some("sh" | "mk" | "toml" | "Makefile") => Some(Self::Script),
            _ => None,
        }
    }
}

/// Returns the passages of a file. Its name says which form it has.
pub fn passages(path: &str, content: &str) -> Vec<Passage> {
    match Form::of(path) {
        Some(Form::Rust) => of_rust(content),
        Some(Form::Markdown) => of_markdown(content, 1, Kind::Paragraph),
        Some(Form::Script) => of_script(content),
        None => Vec::new(),
    }
}

/// Returns the paragraphs, headings and cells of Markdown that begins on `first_line`; the kind
/// of the first paragraph is `first`.
fn of_markdown(content: &str, first_line: usize, first: Kind) -> Vec<Passage> {
    let mut passages = Vec::<Passage>::new();
    let mut kinds = Vec::new();
    let mut open: Option<Passage> = None;
    let mut in_code = false;
    let options = Options::ENABLE_TABLES;
    for (event, range) in Parser::new_ext(content, options).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Start(Tag::Heading { .. } | Tag::TableCell) => kinds.push(Kind::Fragment),
            Event::Start(Tag::Paragraph | Tag::Item) => {
                passages.extend(open.take());
                kinds.push(Kind::Paragraph);
            }
            Event::End(
                TagEnd::Heading(_) | TagEnd::TableCell | TagEnd::Paragraph | TagEnd::Item,
            ) => {
                passages.extend(open.take());
                kinds.pop();
            }
            Event::Text(_) | Event::Code(_) | Event::SoftBreak | Event::HardBreak if !in_code => {
                let words = match &event {
                    Event::Text(text) => &**text,
                    Event::Code(_) => CODE,
                    _ => " ",
                };
                let passage = open.get_or_insert_with(|| Passage {
                    line: first_line + content[..range.start].matches('\n').count(),
                    kind: kinds.last().copied().unwrap_or(Kind::Paragraph),
                    text: String::new(),
                });
                passage.text += words;
            }
            _ => {}
        }
    }
    passages.extend(open);
    if let Some(passage) = passages.first_mut()
        && passage.kind == Kind::Paragraph
    {
        passage.kind = first;
    }
    passages
}

/// Returns the comments of a script or a manifest.
fn of_script(content: &str) -> Vec<Passage> {
    let mut passages = Vec::<Passage>::new();
    let mut last = 0;
    for (line, text) in (1..).zip(content.lines()) {
        let Some(comment) = text.trim_start().strip_prefix('#') else {
            continue;
        };
        if comment.starts_with('!') {
            continue;
        }
        match passages.last_mut() {
            // An indented line belongs to a list.
            Some(passage) if last + 1 == line && !comment.starts_with("  ") => {
                passage.text += comment;
            }
            _ => passages.push(Passage {
                line,
                kind: Kind::Fragment,
                text: comment.to_owned(),
            }),
        }
        last = line;
    }
    passages
}

/// A comment whose lines follow one another.
struct Comment<'a> {
    mark: &'a str,
    line: usize,
    last: usize,
    text: String,
}

/// Returns comments, string literals and names of functions.
fn of_rust(content: &str) -> Vec<Passage> {
    let mut passages = Vec::new();
    let mut comment: Option<Comment> = None;
    // The comment whose item has not begun yet.
    let mut doc: Option<Comment> = None;
    let (mut before, mut in_test) = ("", false);
    let (mut at, mut line) = (0, 1);
    for token in tokenize(content) {
        let text = &content[at..at + token.len as usize];
        at += text.len();
        match token.kind {
            TokenKind::Whitespace => {}
            TokenKind::LineComment { .. } => {
                let mark = ["//!", "///", "//"]
                    .into_iter()
                    .find(|mark| text.starts_with(mark))
                    .unwrap_or("//");
                let words = &text[mark.len()..];
                match &mut comment {
                    Some(open) if open.mark == mark && open.last + 1 == line => {
                        open.last = line;
                        open.text.push('\n');
                        open.text += words.strip_prefix(' ').unwrap_or(words);
                    }
                    open => {
                        passages.extend(open.take().into_iter().flat_map(plain));
                        *open = Some(Comment {
                            mark,
                            line,
                            last: line,
                            text: words.strip_prefix(' ').unwrap_or(words).to_owned(),
                        });
                    }
                }
            }
            _ => {
                match comment.take() {
                    Some(open) if open.mark == "///" => {
                        passages.extend(doc.replace(open).into_iter().flat_map(plain));
                    }
                    open => passages.extend(open.into_iter().flat_map(plain)),
                }
                match token.kind {
                    TokenKind::Ident if before == "fn" => {
                        passages.extend(doc.take().into_iter().flat_map(of_function));
                        passages.push(Passage {
                            line,
                            kind: if in_test { Kind::Test } else { Kind::Function },
                            text: text.replace('_', " "),
                        });
                        in_test = false;
                    }
                    TokenKind::Ident => in_test |= text == "test" && before == "[",
                    TokenKind::Literal {
                        kind: LiteralKind::Str { .. } | LiteralKind::RawStr { .. },
                        ..
                    } => passages.extend(message(text, line)),
                    TokenKind::Semi | TokenKind::OpenBrace | TokenKind::Comma => {
                        passages.extend(doc.take().into_iter().flat_map(plain));
                    }
                    _ => {}
                }
                before = text;
            }
        }
        line += text.matches('\n').count();
    }
    for open in [comment, doc] {
        passages.extend(open.into_iter().flat_map(plain));
    }
    passages
}

/// Returns the passages of a function's documentation.
fn of_function(comment: Comment) -> Vec<Passage> {
    of_markdown(&comment.text, comment.line, Kind::FunctionDoc)
}

/// Returns the passages of a comment that documents no function.
fn plain(comment: Comment) -> Vec<Passage> {
    let first = if comment.mark == "//" {
        Kind::Paragraph
    } else {
        Kind::Doc
    };
    of_markdown(&comment.text, comment.line, first)
}

/// Returns a string literal of at least four words. `CODE` stands in it for a value.
fn message(literal: &str, line: usize) -> Option<Passage> {
    let text = literal
        .trim_start_matches('r')
        .trim_matches('#')
        .trim_matches('"');
    let mut words = String::new();
    let mut depth = 0;
    for part in text
        .replace("\\n", " ")
        .replace("\\t", " ")
        .replace("\\\n", " ")
        .split_inclusive(['{', '}', '`'])
    {
        let (inside, edge) = part.split_at(part.len() - part.ends_with(['{', '}', '`']) as usize);
        if depth == 0 {
            words += inside;
        }
        depth = match (edge, depth) {
            ("{", depth) => depth + 1,
            ("}", depth) if depth > 0 => depth - 1,
            ("`", 0) => 100,
            ("`", _) => 0,
            (_, depth) => depth,
        };
        if depth > 0 && words.chars().last().is_none_or(char::is_whitespace) {
            words += CODE;
        }
    }
    let is_prose = words
        .split_whitespace()
        .filter(|word| word.chars().all(char::is_alphabetic));
    (is_prose.count() >= 4 && !literal.contains("::") && !literal.contains("\":")).then_some(
        Passage {
            line,
            kind: Kind::Message,
            text: words,
        },
    )
}
