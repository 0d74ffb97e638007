//! A recording that is killed: every file on disk can be used, or is marked as partial.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use mcptest_numbers::random::SplitMix64;
use serde_json::Value;

use super::Checks;
use super::testbed::Testbed;

const KILLS: u32 = 200;

const SUITE: &str = r#"
servers:
  weather: { command: ["mcptest", "mock", "--tools-from", "tools.yml"] }
agents:
  - name: recorded
    model: builtin/lexical
    servers: [weather]
    prompt: What is the weather in Rome?
    runs: 40
    expect: [{ tool_names: { exact: [get_weather] } }]
"#;

const TOOLS: &str = r#"
mock_server:
  name: weather
  tools:
    - name: get_weather
      description: Get the weather of a city.
      input_schema: { type: object, properties: { city: { type: string } } }
      response: "Sunny in ${args.city}, 3f2504e0-4f89-41d3-9a0c-0305e82c3301."
"#;

pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    checks.check(
        "kill -9 at 200 random moments of a recording: every cassette on disk loads",
        || killed(testbed),
    );
}

fn killed(testbed: &Testbed) -> Result<()> {
    let folder = testbed.scratch("kills")?;
    std::fs::write(folder.join("s.yml"), SUITE)?;
    std::fs::write(folder.join("tools.yml"), TOOLS)?;
    let suite = folder.join("s.yml").display().to_string();
    let mut random = SplitMix64::new(5);
    // The kills are spread over a little more than the time that a recording takes here.
    let began = Instant::now();
    ended_well(testbed, &["run", &suite, "--record"])?;
    let longest = u64::try_from(began.elapsed().as_millis())? * 5 / 4;
    let (mut whole, mut partial) = (0, 0);
    for round in 0..KILLS {
        let mut command = testbed.mcptest(&["run", &suite, "--record"])?;
        let mut running = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        std::thread::sleep(Duration::from_millis(random.below(longest)));
        // Nothing can be done about this signal.
        running.kill()?;
        running.wait()?;
        for path in cassettes(&folder)? {
            let text = std::fs::read(&path)?;
            let value: Value = serde_json::from_slice(&text)
                .with_context(|| format!("after kill {round}: {}", path.display()))?;
            let (planned, runs) = (
                value["planned"].as_u64(),
                value["runs"].as_array().map(Vec::len),
            );
            if path.to_string_lossy().ends_with(".partial.json") {
                partial += 1;
            } else {
                whole += 1;
                ensure!(
                    planned == Some(40) && runs == Some(40),
                    "{} is not whole",
                    path.display()
                );
            }
            ended_well(testbed, &["cassette", "show", &path.display().to_string()])?;
        }
    }
    if partial == 0 || whole == 0 {
        bail!(
            "the kills came too early or too late: {whole} whole and {partial} partial cassettes were seen"
        );
    }
    ended_well(testbed, &["run", &suite, "--record"])?;
    ended_well(testbed, &["run", &suite, "--replay-only"])?;
    ended_well(testbed, &["cassette", "verify", "--suite", &suite])?;
    println!("     {whole} whole and {partial} partial cassettes were seen");
    Ok(())
}

/// Servers of killed runs may still be ending, so nothing is said here about processes that are
/// left.
fn ended_well(testbed: &Testbed, arguments: &[&str]) -> Result<()> {
    let output = testbed.mcptest(arguments)?.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "`mcptest {}` failed: {said}",
        arguments.join(" ")
    );
    Ok(())
}

fn cassettes(folder: &Path) -> Result<Vec<PathBuf>> {
    let folder = folder.join("cassettes/s.yml");
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            found.push(path);
        }
    }
    Ok(found)
}
