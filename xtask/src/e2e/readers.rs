//! The reports in third-party readers: parsers and schemas from PyPI and npm.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Checks;
use super::parts;
use super::testbed::Testbed;
use crate::workspace;

/// Readers of what the reporters write.
const READERS: [&str; 5] = [
    "junitparser==5.0.3",
    "markdown-it-py==4.3.0",
    "prometheus_client==0.26.0",
    "sarif-tools==3.0.5",
    "jsonschema==4.26.0",
];

/// The same on Node: the parser of node-tap, the schema of CTRF, Microsoft's validator of SARIF.
const NODE_READERS: [&str; 4] = [
    "tap-parser@18.3.4",
    "ctrf@0.3.0",
    "ajv@8.20.0",
    "@microsoft/sarif-multitool@5.7.0",
];

/// Allure 3.
const ALLURE: &str = "allure@3.18.0";

/// One test per outcome, with names that try to become markup.
const SUITE: &str = "tests/e2e/reports/hostile.yml";

pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    checks.check(
        "junit: a third-party parser reads every outcome and attempt",
        || junit(testbed),
    );
    checks.check(
        "markdown: hostile text stays text for a third-party parser",
        || markdown(testbed),
    );
    checks.check(
        "pr: hostile text stays text, and details are closed",
        || pr(testbed),
    );
    checks.check("tap: node-tap's parser reads every test point", || {
        tap(testbed)
    });
    checks.check("ctrf: the report satisfies the schema of CTRF", || {
        ctrf(testbed)
    });
    checks.check(
        "openmetrics: the parser of Prometheus reads every figure",
        || openmetrics(testbed),
    );
    checks.check("gitlab: every issue has what GitLab documents", || {
        gitlab(testbed)
    });
    checks.check("allure: Allure itself reads every result", || {
        allure(testbed)
    });
    checks.check("sarif: Microsoft's validator finds no error", || {
        sarif(testbed)
    });
    checks.check(
        "comparisons: the same parsers and schemas read them",
        || comparison(testbed),
    );
}

fn pr(testbed: &Testbed) -> Result<()> {
    let read = read(testbed, "pr")?;
    let html = read["html"].as_array().context("no list of markup")?;
    let own = [
        "<!-- mcptest: report -->",
        "<details><summary>",
        "</details>",
    ];
    ensure!(
        html.iter().all(|markup| {
            let markup = markup.as_str().unwrap_or_default();
            own.iter().any(|known| markup.starts_with(known))
        }),
        "markup came through: {read}"
    );
    for kind in ["link_open", "image", "s_open", "em_open"] {
        ensure!(
            read["kinds"].get(kind).is_none(),
            "{kind} came through: {read}"
        );
    }
    Ok(())
}

fn tap(testbed: &Testbed) -> Result<()> {
    let read = read(testbed, "tap")?;
    let wanted = [
        (true, false),
        (false, false),
        (false, false),
        (true, true),
        (false, false),
        (true, false),
    ];
    let points = read["points"].as_array().context("no points")?;
    let found: Vec<(bool, bool)> = points
        .iter()
        .map(|point| (point["ok"] == true, point["skip"] == true))
        .collect();
    ensure!(found == wanted, "{read}");
    ensure!(read["problems"] == json!([]), "not TAP: {read}");
    ensure!(read["ok"] == false && read["fail"] == 3, "{read}");
    Ok(())
}

fn ctrf(testbed: &Testbed) -> Result<()> {
    let read = read(testbed, "ctrf")?;
    ensure!(read["valid"] == true, "{read}");
    let summary = &read["summary"];
    ensure!(
        summary["tests"] == 6
            && summary["passed"] == 2
            && summary["failed"] == 3
            && summary["other"] == 1,
        "{read}"
    );
    Ok(())
}

fn openmetrics(testbed: &Testbed) -> Result<()> {
    let read = read(testbed, "openmetrics")?;
    ensure!(read["mcptest_exit_code"][0]["value"] == 2.0, "{read}");
    let tests = read["mcptest_test_passed"].as_array();
    ensure!(tests.is_some_and(|tests| tests.len() == 6), "{read}");
    Ok(())
}

fn gitlab(testbed: &Testbed) -> Result<()> {
    let read = read(testbed, "gitlab")?;
    let wanted = json!({"severities": ["major", "major", "minor", "critical"], "distinct": true});
    ensure!(read == wanted, "{read}");
    Ok(())
}

/// Has Allure 3 make its own report of the results, and reads the summary of that.
fn allure(testbed: &Testbed) -> Result<()> {
    let folder = testbed.scratch("allure")?;
    let (results, made) = (folder.join("results"), folder.join("made"));
    let target = format!("--reporter=allure={}", results.display());
    testbed.run(&["run", SUITE, &target])?.expect_code(2)?;
    let packages = workspace::target_directory()?.join("e2e/allure");
    let bin = parts::npm(&packages, &[ALLURE])?;
    let output = Command::new(bin.join("allure"))
        .arg("awesome")
        .arg(&results)
        .arg("--output")
        .arg(&made)
        .current_dir(&folder)
        .output()
        .context("cannot run allure")?;
    ensure!(
        output.status.success(),
        "allure failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let summary = std::fs::read_to_string(made.join("summary.json")).context("no summary")?;
    let summary: Value = serde_json::from_str(&summary)?;
    let wanted = json!({"passed": 2, "failed": 2, "broken": 1, "skipped": 1, "total": 6});
    let stats = &summary["stats"];
    let keys = ["passed", "failed", "broken", "skipped", "total"];
    ensure!(
        keys.iter().all(|key| stats[key] == wanted[key]),
        "{summary}"
    );
    Ok(())
}

fn sarif(testbed: &Testbed) -> Result<()> {
    let read = read(testbed, "sarif")?;
    ensure!(
        read["counts"] == json!({"error": 3, "warning": 1, "note": 0}),
        "{read}"
    );
    validate_sarif(
        &file_of(testbed, "readers", "sarif")?,
        &testbed.scratch("readers")?,
    )
}

/// Has Microsoft's validator judge a file.
fn validate_sarif(file: &Path, folder: &Path) -> Result<()> {
    let judged = folder.join("judged.sarif");
    let bin = parts::npm(&packages()?, &NODE_READERS)?;
    make_executable(&bin.join("../@microsoft/sarif-multitool-linux/Sarif.Multitool"))?;
    let output = Command::new(bin.join("sarif-multitool"))
        .arg("validate")
        .arg(file)
        .arg("--output")
        .arg(&judged)
        .args(["--log", "ForceOverwrite"])
        .output()
        .context("cannot run sarif-multitool")?;
    let text = std::fs::read_to_string(&judged).with_context(|| {
        format!(
            "the validator wrote nothing: {}",
            String::from_utf8_lossy(&output.stderr)
        )
    })?;
    let log: Value = serde_json::from_str(text.trim_start_matches('\u{feff}'))?;
    let results = log["runs"][0]["results"].as_array().cloned();
    let errors: Vec<Value> = results
        .unwrap_or_default()
        .into_iter()
        .filter(|result| result["level"] == "error")
        .collect();
    ensure!(errors.is_empty(), "{errors:#?}");
    Ok(())
}

/// Makes a program executable that a package has without that permission.
fn make_executable(program: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    let permissions = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(program, permissions)
        .with_context(|| format!("cannot change the mode of {}", program.display()))
}

/// The folder of the readers on Node.
fn packages() -> Result<PathBuf> {
    Ok(workspace::target_directory()?.join("e2e/node-readers"))
}

fn junit(testbed: &Testbed) -> Result<()> {
    let read = read(testbed, "junit")?;
    let wanted = json!({
        "suites": [{"tests": 6, "failures": 2, "errors": 1, "skipped": 1}],
        "cases": [
            {"name": "flaky </testcase><testcase name=\"fake\">", "result": [], "attempts": ["flakyFailure"]},
            {"name": "fails ![x](http://example.com/x.png) <script>alert(1)</script> [builtin/scripted]", "result": ["failure"], "attempts": ["rerunFailure", "rerunFailure"]},
            {"name": "fails ![x](http://example.com/x.png) <script>alert(1)</script> [builtin/lexical]", "result": ["failure"], "attempts": ["rerunFailure", "rerunFailure"]},
            {"name": "nothing expected *bold* _it_ ~~gone~~ $x^2$ [link](javascript:alert(1))", "result": ["skipped"], "attempts": []},
            {"name": "broken  \\u{7} \\u{202e}", "result": ["error"], "attempts": []},
            {"name": "fine @someone #1", "result": [], "attempts": []}
        ]
    });
    ensure!(read == wanted, "read:   {read}\nwanted: {wanted}");
    Ok(())
}

fn markdown(testbed: &Testbed) -> Result<()> {
    let read = read(testbed, "markdown")?;
    // Headings, lists, tables, code and emphasis of our own; `<br>` between the lines of a cell.
    let html = read["html"].as_array().context("no list of markup")?;
    ensure!(
        html.iter().all(|markup| markup == "<br>"),
        "markup came through: {read}"
    );
    for kind in ["link_open", "image", "s_open", "em_open", "html_block"] {
        ensure!(
            read["kinds"].get(kind).is_none(),
            "{kind} came through: {read}"
        );
    }
    ensure!(read["kinds"]["table_open"] == 2, "{read}");
    let rows = read["rows"].as_array().context("no rows")?;
    ensure!(
        rows.iter().all(|cells| *cells == 3 || *cells == 5),
        "a cell was broken: {read}"
    );
    Ok(())
}

/// Runs the suite with a reporter, and gives what the reader says about the file.
fn read(testbed: &Testbed, reporter: &str) -> Result<Value> {
    let file = file_of(testbed, "readers", reporter)?;
    let target = format!("--reporter={reporter}={}", file.display());
    // An error among the outcomes: could not run as asked.
    testbed.run(&["run", SUITE, &target])?.expect_code(2)?;
    parse(reporter, &file)
}

/// The file that a reporter writes. Tools of SARIF check its extension.
fn file_of(testbed: &Testbed, folder: &str, reporter: &str) -> Result<PathBuf> {
    let extension = if reporter == "sarif" { ".sarif" } else { "" };
    Ok(testbed
        .scratch(folder)?
        .join(format!("{reporter}{extension}")))
}

/// Gives what the reader says about a file.
fn parse(reporter: &str, file: &Path) -> Result<Value> {
    let output = match reporter {
        "tap" | "ctrf" => {
            parts::npm(&packages()?, &NODE_READERS)?;
            Command::new("node")
                .arg(workspace::root().join("xtask/src/e2e/readers.mjs"))
                .arg(packages()?)
                .arg(reporter)
                .arg(file)
                .output()
                .context("cannot run node")?
        }
        _ => {
            let folder = workspace::target_directory()?.join("e2e/readers");
            let python = parts::venv(&folder, &READERS)?.join("python");
            Command::new(&python)
                .arg(workspace::root().join("xtask/src/e2e/readers.py"))
                .arg(reporter)
                .arg(file)
                .output()
                .with_context(|| format!("cannot run {}", python.display()))?
        }
    };
    ensure!(
        output.status.success(),
        "the reader failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).context("the reader did not answer in JSON")
}

/// A comparison in which two tests fail that passed, one passes that failed, and one can no longer
/// be judged, in the form of each reporter.
fn comparison(testbed: &Testbed) -> Result<()> {
    let folder = testbed.scratch("compared")?;
    let (current, baseline) = (folder.join("current.json"), folder.join("baseline.json"));
    let target = format!("--reporter=json={}", current.display());
    testbed.run(&["run", SUITE, &target])?.expect_code(2)?;
    let mut before: Value = serde_json::from_slice(&std::fs::read(&current)?)?;
    let tests = before["tests"].as_array_mut().context("no tests")?;
    for test in tests {
        // Two failed, one without evidence, and one that passes; the other two stay.
        let name = test["name"].as_str().unwrap_or_default();
        let verdict = match name.split(' ').next() {
            Some("fails" | "nothing") => "pass",
            Some("fine") => "fail",
            _ => continue,
        };
        test["verdict"] = verdict.into();
        for run in test["runs"].as_array_mut().context("no runs")? {
            run["verdict"] = verdict.into();
        }
    }
    std::fs::write(&baseline, before.to_string())?;
    let (current, baseline) = (current.to_string_lossy(), baseline.to_string_lossy());
    let read = |reporter: &str| -> Result<Value> {
        let file = file_of(testbed, "compared", reporter)?;
        let target = format!("--reporter={reporter}={}", file.display());
        let words = ["report", &current, "--compare", &baseline, &target];
        testbed.run(&words)?.expect_code(1)?;
        parse(reporter, &file).with_context(|| reporter.to_owned())
    };
    let junit = read("junit")?;
    let suite = &junit["suites"][0];
    ensure!(suite["failures"] == 2 && suite["tests"] == 4, "{junit}");
    let tap = read("tap")?;
    ensure!(tap["problems"] == json!([]) && tap["fail"] == 2, "{tap}");
    let ctrf = read("ctrf")?;
    ensure!(ctrf["valid"] == true, "{ctrf}");
    ensure!(
        ctrf["summary"]["failed"] == 2 && ctrf["summary"]["other"] == 1,
        "{ctrf}"
    );
    let sarif = read("sarif")?;
    ensure!(
        sarif["counts"] == json!({"error": 2, "warning": 1, "note": 0}),
        "{sarif}"
    );
    let gitlab = read("gitlab")?;
    ensure!(gitlab["distinct"] == true, "{gitlab}");
    let metrics = read("openmetrics")?;
    ensure!(
        metrics.as_object().is_some_and(|all| all.len() > 2),
        "{metrics}"
    );
    for reporter in ["markdown", "pr"] {
        let read = read(reporter)?;
        for kind in ["link_open", "image", "s_open", "em_open"] {
            ensure!(read["kinds"].get(kind).is_none(), "{kind}: {read}");
        }
    }
    validate_sarif(&file_of(testbed, "compared", "sarif")?, &folder)
}
