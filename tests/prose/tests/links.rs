//! Each link of a page leads to a file of the tree and, with an anchor, to a heading in it.

use std::{fs, path::Path};

use prose::links::{anchors, links};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Returns the links of a page in the folder `folder` that lead nowhere.
fn dead(folder: &Path, page: &str) -> Vec<String> {
    let leads_nowhere = |target: &str| {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = folder.join(file);
        let is_there = file.is_empty() || path.exists();
        let known = match path.extension() {
            _ if file.is_empty() => anchors(page),
            Some(extension) if extension == "md" && is_there => {
                anchors(&fs::read_to_string(path).expect("a page can be read"))
            }
            _ => return !is_there,
        };
        !is_there || !(anchor.is_empty() || known.iter().any(|known| known == anchor))
    };
    let all = links(page).into_iter();
    let inside = all.filter(|(_, target)| !target.contains("://"));
    inside
        .filter(|(_, target)| leads_nowhere(target))
        .map(|(line, target)| format!("{line}: {target}"))
        .collect()
}

#[test]
fn no_link_of_the_tree_is_dead() {
    let mut failed = Vec::new();
    for path in prose::files(ROOT) {
        if path.ends_with(".md") {
            let page = Path::new(ROOT).join(&path);
            let content = fs::read_to_string(&page).expect("a page can be read");
            let folder = page.parent().expect("a file is in a folder");
            failed.extend(
                dead(folder, &content)
                    .into_iter()
                    .map(|link| format!("{path}:{link}")),
            );
        }
    }
    assert!(failed.is_empty(), "links that lead nowhere: {failed:#?}");
}

#[test]
fn dead_links_are_found() {
    let page = "# Two `words`, one-anchor\n# Two words one-anchor\n[a](#two-words-one-anchor)\n\
        [b](#two-words-one-anchor-1) [c](#two) [d](none.md) [e](src/lib.rs) [f](https://none.md)\n\
        ![g](none.svg) `[h](none.md)`\n";
    let expected = ["4: #two", "4: none.md", "5: none.svg"];
    assert_eq!(dead(Path::new("."), page), expected);
}
