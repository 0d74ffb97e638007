//! The page of the `html` reporter in a browser: Debian's Chromium, driven by Playwright, with
//! axe-core for what people with other senses and devices need.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::Checks;
use super::parts;
use super::testbed::Testbed;
use crate::workspace;

/// The driver of the browser, and the rules of accessibility.
const PACKAGES: [&str; 2] = ["playwright-core@1.65.1", "axe-core@4.14.0"];
/// Every plot, two models, tags, flaky runs, a fault and distractors.
const SUITE: &str = "tests/e2e/reports/page.yml";
/// A run that lasts some seconds.
const SLOW_SUITE: &str = "tests/e2e/reports/slow.yml";

pub(super) fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    let mut pages = None;
    let mut browser = |testbed: &Testbed| -> Result<Browser> {
        if pages.is_none() {
            pages = Some(Browser::set_up(testbed)?);
        }
        pages.clone().context("no browser")
    };
    checks.check("html: everything works by keyboard, from disk", || {
        browser(testbed)?.drive("keyboard", &[])
    });
    checks.check("html: plots have the points of the JSON report", || {
        browser(testbed)?.drive("plots", &[])
    });
    checks.check("html: hostile text stays text", || {
        hostile(testbed, &browser(testbed)?)
    });
    checks.check(
        "html: 1,000 tests with 10 runs each open in two seconds",
        || large(testbed, &browser(testbed)?),
    );
    // It depends on the moments of a run, so it is checked by name only.
    if checks.only.is_some() {
        checks.check("html: a page follows a run to its end", || {
            live(testbed, &browser(testbed)?)
        });
    }
}

/// Makes the pictures of the documentation.
pub fn screenshots() -> Result<bool> {
    let testbed = Testbed::set_up()?;
    let browser = Browser::set_up(&testbed)?;
    browser.drive("screenshots", &["report", ""])?;
    let target = workspace::root().join("docs/images");
    std::fs::create_dir_all(&target)?;
    for name in ["report-1280-light", "report-390-light"] {
        let file = format!("{name}.png");
        std::fs::copy(browser.folder.join(&file), target.join(&file))
            .with_context(|| format!("cannot copy {file}"))?;
        println!("wrote docs/images/{file}");
    }
    testbed.clean_up();
    Ok(true)
}

#[derive(Clone)]
struct Browser {
    /// The folder of the npm packages, with the script.
    packages: PathBuf,
    program: PathBuf,
    /// The folder of the reports.
    folder: PathBuf,
}

impl Browser {
    fn set_up(testbed: &Testbed) -> Result<Self> {
        let packages = packages()?;
        let source = workspace::root().join("xtask/src/e2e/html_page.mjs");
        std::fs::copy(source, packages.join("html_page.mjs"))?;
        let folder = testbed.scratch("page")?;
        let file = |name: &str| folder.join(name).display().to_string();
        let finished = testbed.run(&[
            "run",
            SUITE,
            "--no-history",
            "--reporter",
            &format!("json={}", file("report.json")),
            "--reporter",
            &format!("html={}", file("report.html")),
        ])?;
        ensure!(
            finished.code == Some(1),
            "the suite of the page has tests that fail: {}",
            finished.stderr
        );
        Ok(Self {
            packages,
            program: chromium()?,
            folder,
        })
    }

    /// Runs a part of the script.
    fn drive(&self, mode: &str, arguments: &[&str]) -> Result<()> {
        let output = Command::new("node")
            .current_dir(&self.packages)
            .arg("html_page.mjs")
            .arg(mode)
            .arg(&self.folder)
            .args(arguments)
            .env("E2E_CHROMIUM", &self.program)
            .output()
            .context("cannot start node")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(
            output.status.success(),
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        if !text.trim().is_empty() {
            println!("     {}", text.trim());
        }
        Ok(())
    }

    /// Writes a JSON report as a page.
    fn render(&self, testbed: &Testbed, name: &str) -> Result<()> {
        let json = self.folder.join(format!("{name}.json"));
        let html = self.folder.join(format!("{name}.html"));
        let finished = testbed.run(&[
            "report",
            &json.display().to_string(),
            "--reporter",
            &format!("html={}", html.display()),
        ])?;
        ensure!(finished.code == Some(0), "{}", finished.stderr);
        Ok(())
    }
}

/// The folder of the npm packages that drive a browser.
pub(super) fn packages() -> Result<PathBuf> {
    let packages = workspace::target_directory()?.join("e2e/browser");
    parts::npm(&packages, &PACKAGES)?;
    Ok(packages)
}

/// The browser of the system; installed where that is possible.
pub(super) fn chromium() -> Result<PathBuf> {
    let known = ["/usr/bin/chromium", "/usr/bin/chromium-browser"];
    let find = || known.iter().map(PathBuf::from).find(|path| path.exists());
    if let Some(found) = find() {
        return Ok(found);
    }
    let installed = Command::new("apt-get")
        .args(["install", "-y", "-q", "chromium"])
        .output();
    match find() {
        Some(found) if installed.is_ok() => Ok(found),
        _ => bail!("there is no Chromium: install Debian's package `chromium`"),
    }
}

fn hostile(testbed: &Testbed, browser: &Browser) -> Result<()> {
    browser.drive("mangle", &[])?;
    browser.render(testbed, "hostile")?;
    browser.drive("hostile", &[])
}

/// A report of 1,000 tests with 10 runs each, made of the runs of a real one.
fn large(testbed: &Testbed, browser: &Browser) -> Result<()> {
    write_large(&browser.folder)?;
    browser.render(testbed, "large")?;
    browser.drive("large", &["2000"])
}

fn write_large(folder: &Path) -> Result<()> {
    let text = std::fs::read_to_string(folder.join("report.json"))?;
    let mut report: Value = serde_json::from_str(&text)?;
    let tests = report["tests"].as_array().context("no tests")?.clone();
    let sources: Vec<&Value> = tests
        .iter()
        .filter(|test| test["runs"].as_array().is_some_and(|runs| !runs.is_empty()))
        .collect();
    let copy = |at: usize| {
        let mut test = (*sources[at % sources.len()]).clone();
        test["name"] = format!("test {at} of a large suite").into();
        test["label"] = test["name"].clone();
        let runs = test["runs"].as_array().cloned().unwrap_or_default();
        let run = |number: usize| {
            let mut run = runs[number % runs.len()].clone();
            run["index"] = (number + 1).into();
            run["name"] = format!("test {at} of a large suite #{}", number + 1).into();
            run
        };
        test["runs"] = (0..10).map(run).collect();
        test
    };
    report["tests"] = (0..1000).map(copy).collect();
    report["tool_selection"] = json!([]);
    if let Some(report) = report.as_object_mut() {
        report.remove("timing");
        report.remove("distractors");
    }
    std::fs::write(folder.join("large.json"), report.to_string())?;
    Ok(())
}

/// A run with `--ui`, and a page that is open until its end and after it.
fn live(testbed: &Testbed, browser: &Browser) -> Result<()> {
    let folder = testbed.scratch("live")?;
    let stderr = folder.join("stderr.txt");
    let suite = workspace::root().join(SLOW_SUITE);
    // Its history stays in its own folder, and the address is on standard error.
    let mut running = testbed
        .mcptest(&["run", &suite.display().to_string(), "--ui"])?
        .current_dir(&folder)
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&stderr)?)
        .spawn()
        .context("cannot start mcptest")?;
    let driven = address(&stderr).and_then(|address| browser.drive("live", &[&address]));
    if driven.is_err() {
        // It has ended, or nobody needs it any more.
        let _ = running.kill();
    }
    let status = running.wait()?;
    driven?;
    ensure!(
        status.code() == Some(0),
        "{}",
        std::fs::read_to_string(&stderr)?
    );
    Ok(())
}

/// The address that the program prints, as soon as it does.
fn address(stderr: &Path) -> Result<String> {
    for _ in 0..500 {
        let text = std::fs::read_to_string(stderr)?;
        let mut words = text.split_whitespace();
        if let Some(word) = words.find(|word| word.starts_with("http://127.0.0.1:"))
            && text.contains('\n')
        {
            return Ok(word.to_owned());
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    bail!("no address: {}", std::fs::read_to_string(stderr)?)
}
