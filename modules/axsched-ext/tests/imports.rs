//! No two files import each other, directly or by way of others: who reads a file has to
//! read those that it imports, and those should come to an end.
//!
//! The rule, for the Rust files in `modules/`, `apps/` and `tools/`:
//!
//!  1. A file imports another if it names, in a `use` or in a path, something that is
//!     defined there. In macros only paths that begin with `crate` or `super` are seen.
//!  2. A re-export is no import, and who imports through it imports from where the item is
//!     defined: so a module may show what is in its children, and they may use each other
//!     through it. A module that also uses a child's item itself does import it.
//!  3. What is there for tests only (`#[cfg(test)]`) does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::Visit;

/// A module's index in [`Tree::modules`].
type Id = usize;

#[derive(Default)]
struct Module {
    file: PathBuf,
    parent: Option<Id>,
    children: BTreeMap<String, Id>,
    items: BTreeSet<String>,
    /// What names mean that `use` brings in.
    names: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    /// The paths that its code names, and its imports that are no re-exports.
    paths: Vec<Vec<String>>,
}

#[derive(Default)]
struct Tree {
    modules: Vec<Module>,
    /// The roots of libraries, by the name that others import them by.
    libraries: BTreeMap<String, Id>,
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else {
            return false;
        };
        let of = list.tokens.to_string();
        list.path.is_ident("cfg") && (of == "test" || of.starts_with("all (test"))
    })
}

fn attributes_of(item: &syn::Item) -> &[syn::Attribute] {
    use syn::Item::*;
    match item {
        Const(i) => &i.attrs,
        Enum(i) => &i.attrs,
        ExternCrate(i) => &i.attrs,
        Fn(i) => &i.attrs,
        ForeignMod(i) => &i.attrs,
        Impl(i) => &i.attrs,
        Macro(i) => &i.attrs,
        Mod(i) => &i.attrs,
        Static(i) => &i.attrs,
        Struct(i) => &i.attrs,
        Trait(i) => &i.attrs,
        TraitAlias(i) => &i.attrs,
        Type(i) => &i.attrs,
        Union(i) => &i.attrs,
        Use(i) => &i.attrs,
        _ => &[],
    }
}

fn name_of(item: &syn::Item) -> Option<String> {
    use syn::Item::*;
    let ident = match item {
        Const(i) => &i.ident,
        Enum(i) => &i.ident,
        Fn(i) => &i.sig.ident,
        Macro(i) => i.ident.as_ref()?,
        Static(i) => &i.ident,
        Struct(i) => &i.ident,
        Trait(i) => &i.ident,
        Type(i) => &i.ident,
        Union(i) => &i.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// The file of a `#[path = "…"]`, or of one that depends on the configuration.
fn path_of(attribute: &syn::Attribute) -> Option<String> {
    let text = match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(path),
                ..
            }) => return Some(path.value()),
            _ => return None,
        },
        syn::Meta::List(list) if list.path.is_ident("cfg_attr") => list.tokens.to_string(),
        _ => return None,
    };
    let (_, path) = text.split_once("path = \"")?;
    path.split_once('"').map(|(path, _)| path.to_string())
}

/// Calls `f` with each path of a `use` and the name that it brings in; `*` is a glob.
fn for_each_use(tree: &syn::UseTree, path: &mut Vec<String>, f: &mut impl FnMut(&[String], &str)) {
    match tree {
        syn::UseTree::Path(part) => {
            path.push(part.ident.to_string());
            for_each_use(&part.tree, path, f);
            path.pop();
        }
        syn::UseTree::Name(name) if name.ident == "self" => {
            let last = path.last().cloned().unwrap_or_default();
            f(path, &last);
        }
        syn::UseTree::Name(name) => {
            path.push(name.ident.to_string());
            f(path, &name.ident.to_string());
            path.pop();
        }
        syn::UseTree::Rename(renamed) => {
            path.push(renamed.ident.to_string());
            f(path, &renamed.rename.to_string());
            path.pop();
        }
        syn::UseTree::Glob(_) => f(path, "*"),
        syn::UseTree::Group(group) => {
            group
                .items
                .iter()
                .for_each(|tree| for_each_use(tree, path, f));
        }
    }
}

/// Finds the paths in an item, and modules and imports inside functions.
struct Paths<'a>(&'a mut Vec<Vec<String>>);

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter().map(|part| part.ident.to_string());
        self.0.push(segments.collect());
        syn::visit::visit_path(self, path);
    }

    /// Who may see an item is no import.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        for_each_use(&item.tree, &mut Vec::new(), &mut |path, _| {
            self.0.push(path.to_vec());
        });
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.0.push(
            item.path
                .segments
                .iter()
                .map(|s| s.ident.to_string())
                .collect(),
        );
        let text = item.tokens.to_string();
        for start in ["crate :: ", "super :: "] {
            for (at, _) in text.match_indices(start) {
                let mut path = Vec::new();
                for part in text[at..].split(" :: ") {
                    let end = part.find(|c: char| c != '_' && !c.is_alphanumeric());
                    path.push(part[..end.unwrap_or(part.len())].to_string());
                    if end.is_some() {
                        break;
                    }
                }
                self.0.push(path);
            }
        }
        syn::visit::visit_macro(self, item);
    }

    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_for_tests(attributes_of(item)) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes = match item {
            syn::ImplItem::Const(i) => &i.attrs[..],
            syn::ImplItem::Fn(i) => &i.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            syn::visit::visit_impl_item(self, item);
        }
    }
}

impl Tree {
    fn add_file(&mut self, file: &Path, parent: Option<Id>, is_mod_rs: bool) -> Id {
        let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let folder = file.parent().expect("a file is in a folder");
        let below = match file.file_stem() {
            Some(stem) if !is_mod_rs => folder.join(stem),
            _ => folder.to_path_buf(),
        };
        let id = self.add_module(file, parent);
        self.add_items(id, &parsed.items, folder, &below);
        id
    }

    fn add_module(&mut self, file: &Path, parent: Option<Id>) -> Id {
        self.modules.push(Module {
            file: file.to_path_buf(),
            parent,
            ..Module::default()
        });
        self.modules.len() - 1
    }

    fn add_items(&mut self, id: Id, items: &[syn::Item], folder: &Path, below: &Path) {
        for item in items
            .iter()
            .filter(|item| !is_for_tests(attributes_of(item)))
        {
            self.modules[id].items.extend(name_of(item));
            match item {
                syn::Item::Mod(module) => self.add_child(id, module, folder, below),
                syn::Item::Use(item) => {
                    let is_private = matches!(item.vis, syn::Visibility::Inherited);
                    let module = &mut self.modules[id];
                    for_each_use(&item.tree, &mut Vec::new(), &mut |path, name| {
                        if is_private {
                            module.paths.push(path.to_vec());
                        }
                        if name == "*" {
                            module.globs.push(path.to_vec());
                        } else {
                            module.names.insert(name.into(), path.to_vec());
                        }
                    });
                }
                item => Paths(&mut self.modules[id].paths).visit_item(item),
            }
        }
    }

    fn add_child(&mut self, id: Id, module: &syn::ItemMod, folder: &Path, below: &Path) {
        let name = module.ident.to_string();
        let child = if let Some((_, items)) = &module.content {
            let child = self.add_module(&self.modules[id].file.clone(), Some(id));
            self.add_items(child, items, folder, &below.join(&name));
            child
        } else {
            let paths: Vec<_> = module.attrs.iter().filter_map(path_of).collect();
            let flat = below.join(format!("{name}.rs"));
            // Of several, by target or feature, the name means the last.
            let files = paths.iter().map(|path| folder.join(path));
            match files
                .map(|file| self.add_file(&file, Some(id), true))
                .last()
            {
                Some(child) => child,
                None if flat.exists() => self.add_file(&flat, Some(id), false),
                None => self.add_file(&below.join(&name).join("mod.rs"), Some(id), true),
            }
        };
        self.modules[id].children.insert(name, child);
    }

    /// The module that defines what `path` names in `from`; none if that is in no file here.
    fn defines(&self, from: Id, path: &[String], depth: usize) -> Option<Id> {
        let (first, rest) = path.split_first()?;
        if depth > 16 {
            return None; // a name that stands for itself
        }
        let here = &self.modules[from];
        match first.as_str() {
            "crate" => {
                let mut root = from;
                while let Some(parent) = self.modules[root].parent {
                    root = parent;
                }
                self.within(root, rest, depth)
            }
            "self" => self.within(from, rest, depth),
            "super" => self.defines_or_is(here.parent?, rest, depth),
            name if here.children.contains_key(name) || here.names.contains_key(name) => {
                self.within(from, path, depth)
            }
            name => self.within(*self.libraries.get(name)?, rest, depth),
        }
    }

    /// After a `super`: another one, or a name in that module.
    fn defines_or_is(&self, at: Id, rest: &[String], depth: usize) -> Option<Id> {
        match rest.first().map(String::as_str) {
            Some("super") => self.defines(at, rest, depth),
            _ => self.within(at, rest, depth),
        }
    }

    fn within(&self, at: Id, path: &[String], depth: usize) -> Option<Id> {
        let Some((first, rest)) = path.split_first() else {
            return Some(at);
        };
        let module = &self.modules[at];
        if let Some(&child) = module.children.get(first) {
            return self.within(child, rest, depth);
        }
        if let Some(target) = module.names.get(first) {
            let whole: Vec<_> = target.iter().chain(rest).cloned().collect();
            return self.defines(at, &whole, depth + 1);
        }
        if module.items.contains(first) {
            return Some(at);
        }
        let through_glob = module.globs.iter().find_map(|glob| {
            let target = self.defines(at, glob, depth + 1)?;
            let known = &self.modules[target];
            let has = known.items.contains(first) || known.names.contains_key(first);
            has.then(|| self.within(target, path, depth + 1)).flatten()
        });
        Some(through_glob.unwrap_or(at))
    }

    /// Which file imports which.
    fn imports(&self) -> BTreeMap<&Path, BTreeSet<&Path>> {
        let mut imports: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
        for (id, module) in self.modules.iter().enumerate() {
            let of_file = imports.entry(&module.file).or_default();
            let found = module
                .paths
                .iter()
                .filter_map(|path| self.defines(id, path, 0));
            let files = found.map(|id| self.modules[id].file.as_path());
            of_file.extend(files.filter(|&file| file != module.file));
        }
        imports
    }
}

/// The files of a circle, if there is one, in the order in which they import each other.
fn circle<'a>(imports: &BTreeMap<&'a Path, BTreeSet<&'a Path>>) -> Option<Vec<&'a Path>> {
    fn walk<'a>(
        at: &'a Path,
        imports: &BTreeMap<&'a Path, BTreeSet<&'a Path>>,
        way: &mut Vec<&'a Path>,
        done: &mut BTreeSet<&'a Path>,
    ) -> Option<Vec<&'a Path>> {
        if let Some(start) = way.iter().position(|&file| file == at) {
            return Some(way[start..].to_vec());
        }
        if done.contains(at) {
            return None;
        }
        way.push(at);
        let found =
            (imports.get(at).into_iter().flatten()).find_map(|next| walk(next, imports, way, done));
        way.pop();
        done.insert(at);
        found
    }
    let mut done = BTreeSet::new();
    imports
        .keys()
        .find_map(|&file| walk(file, imports, &mut Vec::new(), &mut done))
}

/// Adds every crate below `folder`: its library, its programs and its tests.
fn add_crates(tree: &mut Tree, folder: &Path) {
    if let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) {
        let name = manifest.lines().find_map(|line| {
            let name = line.strip_prefix("name = \"")?.strip_suffix('"')?;
            Some(name.replace('-', "_"))
        });
        let library = folder.join("src/lib.rs");
        if let (Some(name), true) = (name, library.exists()) {
            let root = tree.add_file(&library, None, true);
            tree.libraries.insert(name, root);
        }
        let main = folder.join("src/main.rs");
        if main.exists() {
            tree.add_file(&main, None, true);
        }
        for root in rust_files(&folder.join("tests")) {
            tree.add_file(&root, None, true);
        }
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir()
            && !["target", "src", "tests"]
                .iter()
                .any(|skipped| path.ends_with(skipped))
        {
            add_crates(tree, &path);
        }
    }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "rs"))
        .collect();
    files.sort();
    files
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut tree = Tree::default();
    for folder in ["modules", "apps", "tools"] {
        add_crates(&mut tree, &root.join(folder));
    }
    let imports = tree.imports();
    assert!(
        imports.len() > 100 && imports.values().any(|files| files.len() > 5),
        "the files are not found"
    );
    let found = circle(&imports).unwrap_or_default();
    let names: Vec<_> = found
        .iter()
        .map(|file| file.strip_prefix(&root).unwrap_or(file).to_string_lossy())
        .collect();
    assert!(names.is_empty(), "an import circle: {}", names.join(" -> "));
}
