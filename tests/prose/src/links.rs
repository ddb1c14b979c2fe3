//! Finds the links of a page, and the anchors that others may link to.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Returns the lines and the targets of the links and pictures of a page.
pub fn links(page: &str) -> Vec<(usize, String)> {
    let line = |at: usize| 1 + page[..at].matches('\n').count();
    let parser = Parser::new_ext(page, Options::ENABLE_TABLES).into_offset_iter();
    let target = |(event, range): (Event, std::ops::Range<usize>)| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            Some((line(range.start), dest_url.into_string()))
        }
        _ => None,
    };
    parser.filter_map(target).collect()
}

/// Returns the anchors of a page's headings, as GitHub makes them.
///
/// They are in lower case, without punctuation, and with hyphens for blanks. An anchor that is taken
/// gets a number.
pub fn anchors(page: &str) -> Vec<String> {
    let mut anchors = Vec::<String>::new();
    let mut heading = None::<String>;
    for event in Parser::new_ext(page, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    *heading += &text;
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let name: String = heading
                    .take()
                    .unwrap_or_default()
                    .to_lowercase()
                    .chars()
                    .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                    .map(|c| if c == ' ' { '-' } else { c })
                    .collect();
                let taken = (1..).map(|number| format!("{name}-{number}"));
                let free = std::iter::once(name.clone()).chain(taken);
                anchors.extend(
                    free.filter(|name| !anchors.contains(name))
                        .take(1)
                        .collect::<Vec<_>>(),
                );
            }
            _ => {}
        }
    }
    anchors
}
