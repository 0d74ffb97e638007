//! A check of the modules of every crate: no two of them import each other.
//!
//! A parent and its children belong together; for all others, an import counts between the two
//! siblings that the modules are in. `use` declarations and paths in code count, tests do not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::workspace;

/// The path of a module in its crate.
type Module = Vec<String>;

/// Fails if two modules of a crate import each other.
pub fn run() -> Result<()> {
    let mut found = Vec::new();
    for folder in crates()? {
        let name = folder.rsplit('/').next().unwrap_or_default().to_owned();
        let sources = sources(&workspace::root().join(&folder).join("src"))?;
        for (one, other) in mutual(&sources) {
            found.push((name.clone(), one.join("::"), other.join("::")));
        }
    }
    let lines: Vec<String> = found
        .iter()
        .map(|(name, one, other)| format!("{name}: `{one}` and `{other}` import each other"))
        .collect();
    ensure!(lines.is_empty(), "{}", lines.join("\n"));
    println!("no two modules import each other");
    Ok(())
}

/// The folders of all crates, from the root of the workspace.
fn crates() -> Result<Vec<String>> {
    let mut folders = vec!["xtask".to_owned()];
    let all = std::fs::read_dir(workspace::root().join("crates")).context("crates")?;
    for entry in all {
        folders.push(format!("crates/{}", entry?.file_name().to_string_lossy()));
    }
    folders.sort();
    Ok(folders)
}

/// The text of every module below a folder, without tests and comments.
fn sources(folder: &Path) -> Result<BTreeMap<Module, String>> {
    let mut sources = BTreeMap::new();
    for file in workspace::files(folder, "rs")? {
        let place = file.strip_prefix(folder)?.with_extension("");
        let mut module: Module = place
            .iter()
            .map(|part| part.to_string_lossy().into_owned())
            .collect();
        let is_root = |name: &String| ["lib", "main", "mod"].contains(&name.as_str());
        if module.last().is_some_and(is_root) {
            module.pop();
        }
        if module
            .iter()
            .any(|part| part == "tests" || part == "testing")
        {
            continue;
        }
        let text = std::fs::read_to_string(&file)?;
        let code = text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        let lines = code
            .lines()
            .map(|line| line.split("//").next().unwrap_or_default());
        sources.insert(module, lines.collect::<Vec<_>>().join("\n"));
    }
    Ok(sources)
}

/// The pairs of siblings that import each other, each once.
fn mutual(sources: &BTreeMap<Module, String>) -> Vec<(Module, Module)> {
    let mut imports = BTreeSet::new();
    for (module, text) in sources {
        for path in paths(text) {
            let Some(target) = resolve(module, &path, sources) else {
                continue;
            };
            let shared = module
                .iter()
                .zip(&target)
                .take_while(|(a, b)| a == b)
                .count();
            // A module and its parent.
            if shared < module.len().min(target.len()) {
                imports.insert((module[..=shared].to_vec(), target[..=shared].to_vec()));
            }
        }
    }
    let is_mutual = |(one, other): &&(Module, Module)| {
        one < other && imports.contains(&(other.clone(), one.clone()))
    };
    imports.iter().filter(is_mutual).cloned().collect()
}

/// The paths in source code that begin with `crate`, `super` or `self`, with braces expanded.
fn paths(text: &str) -> Vec<Module> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in text.match_indices(start) {
            let before = &text[..at];
            // The middle of a path, or of another name.
            if !before.ends_with(is_name) && !before.ends_with("::") {
                expand(&text[at..], &mut Vec::new(), &mut found);
            }
        }
    }
    found
}

/// Adds the paths at the start of source code, and returns the rest.
fn expand<'t>(text: &'t str, prefix: &mut Module, found: &mut Vec<Module>) -> &'t str {
    let mut rest = text.trim_start();
    let depth = prefix.len();
    loop {
        if let Some(inner) = rest.strip_prefix('{') {
            rest = inner.trim_start();
            while !rest.is_empty() && !rest.starts_with('}') {
                let next = expand(rest, prefix, found).trim_start();
                let next = next.strip_prefix(',').unwrap_or(next).trim_start();
                // Not a list of paths.
                if next.len() == rest.len() {
                    break;
                }
                rest = next;
            }
            rest = rest.strip_prefix('}').unwrap_or(rest);
            break;
        }
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        prefix.push(rest[..end].to_owned());
        rest = &rest[end..];
        match rest.strip_prefix("::") {
            Some(next) => rest = next,
            None => {
                found.push(prefix.clone());
                let renamed = rest.trim_start().strip_prefix("as ");
                if let Some(name) = renamed {
                    rest = name.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
                }
                break;
            }
        }
    }
    prefix.truncate(depth);
    rest
}

/// The module that a path in a module leads to.
fn resolve(module: &Module, path: &Module, sources: &BTreeMap<Module, String>) -> Option<Module> {
    let mut parts = path.iter().peekable();
    let mut target = match parts.peek()?.as_str() {
        "crate" => Vec::new(),
        _ => module.clone(),
    };
    while let Some(part) = parts.peek().map(|part| part.as_str()) {
        match part {
            "crate" | "self" => {}
            "super" => {
                target.pop()?;
            }
            _ => break,
        }
        parts.next();
    }
    for part in parts {
        target.push(part.clone());
        if !sources.contains_key(&target) {
            target.pop();
            break;
        }
    }
    Some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_modules_import_each_other() {
        run().unwrap();
    }

    fn pairs(files: &[(&str, &str)]) -> Vec<String> {
        let module = |name: &str| -> Module {
            name.split("::")
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let sources = files
            .iter()
            .map(|(name, text)| (module(name), (*text).to_owned()))
            .collect();
        let names =
            |(one, other): (Module, Module)| format!("{} {}", one.join("::"), other.join("::"));
        mutual(&sources).into_iter().map(names).collect()
    }

    #[test]
    fn imports_are_found_in_every_form() {
        for text in [
            "use crate::b::X;",
            "use crate::{c::Y, b::{self, X as Z}};",
            "fn f(x: crate::b::X) {}",
            "use super::b;",
        ] {
            let files = [("a", text), ("b", "use crate::a::A;"), ("c", "")];
            assert_eq!(pairs(&files), ["a b"], "{text}");
        }
        let one_way = [("a", "use crate::b::X;"), ("b", "use other_crate::a::A;")];
        assert!(pairs(&one_way).is_empty());
    }

    #[test]
    fn parents_and_children_may_import_each_other_and_children_count_as_parents() {
        let family = [("a", "use self::x::X;"), ("a::x", "use super::A;")];
        assert!(pairs(&family).is_empty());
        let cousins = [
            ("a", ""),
            ("a::x", "use crate::b::B;"),
            ("b", ""),
            ("b::y", "use crate::a::x::X;"),
        ];
        assert_eq!(pairs(&cousins), ["a b"]);
        let siblings = [
            ("a", ""),
            ("a::x", "use super::y::Y;"),
            ("a::y", "use super::x::X;"),
        ];
        assert_eq!(pairs(&siblings), ["a::x a::y"]);
    }
}
