//! `mcptest init` on a terminal: a pseudo-terminal, and a person who types.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::init::NOTES;
use crate::support::{folder, mcptest, run};

/// Far above what a question takes.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// A program on a terminal.
struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    fn start(dir: &Path, args: &[&str]) -> Self {
        let master: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let open = || {
            let mut options = File::options();
            options.read(true).write(true);
            options.open(name.to_str().unwrap()).unwrap()
        };
        let child = mcptest(dir)
            .env_remove("CI")
            .env("NO_COLOR", "1")
            .env("HOME", dir)
            .arg("init")
            .args(args)
            .stdin(open())
            .stderr(open())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let keyboard = File::from(master);
        let mut reader = keyboard.try_clone().unwrap();
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The end of the other side is an error here.
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            keyboard,
            screen,
            seen: String::new(),
        }
    }

    /// Waits for words on the screen, after those that were seen before.
    fn sees(&mut self, words: &str) -> &mut Self {
        let began = Instant::now();
        loop {
            if let Some(at) = self.seen.find(words) {
                self.seen.drain(..at + words.len());
                return self;
            }
            let left = MAX_WAIT.saturating_sub(began.elapsed());
            match self.screen.recv_timeout(left) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("`{words}` did not come: {}", self.seen),
            }
        }
    }

    fn types(&mut self, line: &str) -> &mut Self {
        self.keyboard.write_all(line.as_bytes()).unwrap();
        self
    }

    /// The exit code and the standard output.
    fn ends(mut self) -> (i32, String) {
        let mut out = String::new();
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .unwrap();
        (self.child.wait().unwrap().code().unwrap_or(-1), out)
    }
}

const CONFIG: &str = r#"{"mcpServers": {
    "notes": {"command": "mcptest", "args": ["mock", "--tools-from", "server.yml"]},
    "tidy": {"command": "mcptest", "args": ["mock", "--preset", "tidy"]},
    "keyed": {"command": "sh", "args": ["-c", "echo 'SOME_KEY is missing' >&2; exit 1"]}
}}"#;

#[test]
fn a_person_is_led_to_a_suite_that_passes() {
    let dir = folder(&[("server.yml", NOTES), (".mcp.json", CONFIG)]);
    let mut terminal = Terminal::start(dir.path(), &[]);
    terminal
        .sees("What should be tested?")
        .sees("  1  .mcp.json (mcp.json, 3 servers)")
        .sees("A number, a command, an address or a file [1]: ")
        .types("\n")
        .sees("Servers of")
        .sees("  3  keyed")
        .sees("Which ones? Numbers or names, separated by spaces [all]: ")
        .types("7\n")
        .sees("write numbers of the list")
        .types("1 keyed\n")
        .sees("Call the tools that only read, to see what they answer? [Y/n] ")
        .types("maybe\n")
        .sees("answer y or n")
        .types("\n")
        .sees("CI file (github, gitlab, none) [github]: ")
        .types("no\n")
        .sees("Add attacks: hostile text in tool results? [y/N] ")
        .types("y\n")
        .sees("SOME_KEY is missing")
        .sees("Continue with the others? [Y/n] ")
        .types("\n");
    let (code, out) = terminal.ends();
    assert_eq!(code, 0, "{out}");
    assert!(out.starts_with("notes: 1 tool answered"), "{out}");
    assert!(!dir.path().join(".github").exists());
    assert!(dir.path().join("attacks/starter.yml").is_file());
    let played = run(dir.path(), &["run", "--no-history"]);
    assert_eq!(played.code, 0, "{}", played.stdout);
}

#[test]
fn a_command_can_be_typed_and_a_suite_kept() {
    let dir = folder(&[("server.yml", NOTES)]);
    let mut terminal = Terminal::start(
        dir.path(),
        &["--ci", "none", "--attacks", "--call", "read-only"],
    );
    terminal
        .sees("A command, an address or a file: ")
        .types("\n")
        .sees("A command, an address or a file: ")
        .types("mcptest mock --tools-from server.yml\n");
    let (code, out) = terminal.ends();
    assert_eq!(code, 0, "{out}");
    let before = std::fs::read_to_string(dir.path().join("mcptest.yml")).unwrap();
    let mut again = Terminal::start(dir.path(), &["--", "mcptest", "mock", "--preset", "tidy"]);
    again
        .sees("mcptest.yml exists. Replace it? [y/N] ")
        .types("n\n")
        .sees("nothing was written");
    assert_eq!(again.ends().0, 2);
    let after = std::fs::read_to_string(dir.path().join("mcptest.yml")).unwrap();
    assert_eq!(before, after);
}

#[test]
fn the_end_of_the_input_is_no_answer() {
    let dir = folder(&[("server.yml", NOTES)]);
    let mut terminal = Terminal::start(dir.path(), &[]);
    // Ctrl-D.
    terminal
        .sees("an address or a file: ")
        .types("\u{4}")
        .sees("nothing was written");
    assert_eq!(terminal.ends().0, 2);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}
