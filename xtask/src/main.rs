//! Developer tasks of the workspace: `cargo xtask COMMAND`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers, whose output is its result"
)]

mod agentdojo;
mod bench;
mod catalogs;
mod ci;
mod dist;
mod e2e;
mod format_page;
mod fuzz;
mod gate_pages;
mod generate;
mod generated;
mod kills;
mod lint_sample;
mod modules;
mod narrative;
mod page;
mod pictures;
mod poisoned;
mod properties;
mod public_traces;
mod python;
mod schema_table;
mod site;
mod statistics;
mod words;
mod workspace;

use std::process::ExitCode;

use bench::Options;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

Commands:
  generate [--check]        write schema/ and docs/reference/cli.md, or check that they are up to date
  words                     check the language of docs, help texts, messages and comments
  modules                   check that no two modules of a crate import each other
  kills [N]                 kill runs at 200 (or N) random moments, then show and resume them
  properties [--cases N] [--seed S]
                            all property tests with fresh random cases, 10000 of each; prints the seed, and
                            saves counterexamples in the proptest-regressions files of the tests
  fuzz [TARGET…] [--seconds N] [--jobs N] [--merge]
                            fuzz all parsers and protocols, or these, guided by coverage (a C++ compiler is needed);
                            --merge writes the minimised corpus (docs/fuzzing.md)
  fuzz [TARGET…] --smoke [--inputs N] [--seconds N] [--seed S]
                            the same targets with random changes of the inputs in the repository
  statistics [--pairs N] [--seed S]
                            compare the statistics of comparisons with scipy and statsmodels on 1000 (or N) random pairs
                            of reports (python3 is needed)
  e2e [TEXT]                end-to-end checks with real third-party servers and clients (npm and python3 are
                            needed); with a string, only the checks whose name contains it
  init-servers [NAME…]      `mcptest init` on 26 third-party servers, or on these: a table of the results (npm,
                            python3 and git are needed)
  site                      build the documentation in target/site, and check the links of its pages (mdbook is
                            used, or installed from PyPI)
  pictures                  images of the terminal for the documentation: docs/images/*.svg
  screenshots               the images of the html report in docs/images (npm and Chromium are needed)
  fixtures [NAME]           run agents and SDKs offline, check that their logs read as our proxy recorded them, and write
                            the fixtures of the readers; with a name, those of one producer
  python [PART] [--dev] [--traces N]
                            build the wheel of the Python package, install it, run its tests and a job of Apache
                            Spark with an executor that is killed; parts: wheel, tests, spark (python3 and npm are
                            needed, and Java for Spark); --dev builds without optimization, --traces sets the
                            size of the Spark job (20000)
  ci                        check the workflows, the GitHub Action and the GitLab template, and run their scripts
                            (npm and python3 are needed)
  dist [PART] [--target TRIPLE] [--program FILE] [--out DIR] [--repository ADDRESS]
                            the artefacts of a release in target/dist: archive, Debian package, npm packages,
                            Homebrew formula, SBOM, checksums; parts: platform, finish (docs/releasing.md); --program
                            takes a program that is already built
  public-traces FOLDER      checks on public recorded runs, which are not in this repository
  narrative [FOLDER] [--show]
                            the figures of the honesty gate on planted lies, harmless sentences and, with a folder,
                            recorded runs; --show lists what is wrong on the part that rules may be tuned on
  catalogs FOLDER           checks on catalogs of real servers, which are not in this repository, against a second
                            opinion (npm and python3 are needed)
  agentdojo                 the gate `injection:` on AgentDojo's published runs, from its source package on PyPI
  poisoned FOLDER           the SEC rules on catalogs of real servers and on poisoned tools, which are not in this
                            repository, and their time on a line of 1 MiB
  lint-sample FOLDER [dev|test|all] [SEED]
                            a random sample of 50 of the findings that `doctor` shows by default, from one half
                            (or all) of the catalogs in a folder, to be judged by a person
  bench startup [--strict]  cold start and peak memory of the release build; --strict exits 1 when over target
  bench growth [TEXT]       time over each dimension of each command's input; exits 1 above an exponent of 1.3;
                            only subjects whose names contain TEXT
  bench mock [PART]         the mock server beside servers on the official SDKs, FastMCP and a bare axum handler (npm
                            and python3 are needed); parts: stdio, http, memory
  bench tokens              pricing catalogs, beside OpenAI's tokenizer in Python (npm and python3 are needed)
  bench tools               two hundred direct tool tests beside the bare calls (npm is needed)
  bench agents [PART]       a thousand replayed agent tests, and a thousand runs with a slow provider (parts: replay,
                            live)
  bench reporters           every reporter on a report of ten thousand tests, beside parsing it
  bench score               scoring a long file of traces, beside parsing it with sonic-rs, a Python loop, BFCL,
                            agentevals and deepeval (python3 is needed; --quick leaves out the last three)
                            All of these: --strict exits 1 when a target is missed, --json prints JSON, --quick measures less
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["generate"] => generate::write().map(|()| true),
        ["generate", "--check"] => generate::check().map(|()| true),
        ["words"] => words::run(),
        ["modules"] => modules::run().map(|()| true),
        ["kills"] => kills::run(None),
        ["kills", number] => match number.parse() {
            Ok(number) => kills::run(Some(number)),
            Err(_) => return usage(),
        },
        ["properties", flags @ ..] => match properties::Options::parse(flags) {
            Some(options) => properties::run(&options),
            None => return usage(),
        },
        ["fuzz", arguments @ ..] => fuzz::run(arguments),
        ["e2e"] => e2e::run(None, python::dev_wheel),
        ["e2e", text] if !text.starts_with('-') => e2e::run(Some(text), python::dev_wheel),
        ["init-servers", names @ ..] => e2e::init_servers::run(names),
        ["site"] => site::run().map(|()| true),
        ["pictures"] => pictures::run().map(|()| true),
        ["screenshots"] => e2e::html::screenshots(),
        ["fixtures"] => e2e::producers::write_fixtures(None),
        ["fixtures", name] => e2e::producers::write_fixtures(Some(name)),
        ["python", flags @ ..] => match python::Options::parse(flags) {
            Some(options) => python::run(options),
            None => return usage(),
        },
        ["ci"] => ci::run(),
        ["dist", flags @ ..] => match dist::Options::parse(flags) {
            Some(options) => dist::run(&options),
            None => return usage(),
        },
        ["statistics", flags @ ..] => match statistics::Options::parse(flags) {
            Some(options) => statistics::run(&options),
            None => return usage(),
        },
        ["public-traces", folder] => public_traces::run(std::path::Path::new(folder)),
        ["narrative"] => narrative::run(None, false).map_err(Into::into),
        ["narrative", "--show"] => narrative::run(None, true).map_err(Into::into),
        ["narrative", folder] => narrative::run(Some(folder.as_ref()), false).map_err(Into::into),
        ["narrative", folder, "--show"] => {
            narrative::run(Some(folder.as_ref()), true).map_err(Into::into)
        }
        ["catalogs", folder] => catalogs::run(std::path::Path::new(folder)),
        ["agentdojo"] => agentdojo::run(),
        ["poisoned", folder] => poisoned::run(std::path::Path::new(folder)),
        ["lint-sample", folder, rest @ ..] => match rest {
            [] => lint_sample::run(std::path::Path::new(folder), "test", None),
            [half @ ("dev" | "test" | "all")] => {
                lint_sample::run(std::path::Path::new(folder), half, None)
            }
            [half @ ("dev" | "test" | "all"), seed] => match seed.parse() {
                Ok(seed) => lint_sample::run(std::path::Path::new(folder), half, Some(seed)),
                Err(_) => return usage(),
            },
            _ => return usage(),
        },
        ["bench", "startup"] => bench::startup::run().map(|_| true),
        ["bench", "startup", "--strict"] => bench::startup::run(),
        ["bench", "growth"] => bench::growth::run(""),
        ["bench", "growth", filter] => bench::growth::run(filter),
        ["bench", "mock", flags @ ..] => match Options::parse(flags, &bench::mock::PARTS) {
            Some(options) => bench::mock::run(options),
            None => return usage(),
        },
        ["bench", "tokens", flags @ ..] => match Options::parse(flags, &[]) {
            Some(options) => bench::tokens::run(options),
            None => return usage(),
        },
        ["bench", "tools", flags @ ..] => match Options::parse(flags, &[]) {
            Some(options) => bench::tools::run(options),
            None => return usage(),
        },
        ["bench", "agents", flags @ ..] => match Options::parse(flags, &bench::agents::PARTS) {
            Some(options) => bench::agents::run(options),
            None => return usage(),
        },
        ["bench", "reporters", flags @ ..] => match Options::parse(flags, &[]) {
            Some(options) => bench::reporters::run(options),
            None => return usage(),
        },
        ["bench", "score", flags @ ..] => match Options::parse(flags, &[]) {
            Some(options) => bench::score::run(options),
            None => return usage(),
        },
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(true)
        }
        _ => return usage(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprint!("{USAGE}");
    ExitCode::from(2)
}
