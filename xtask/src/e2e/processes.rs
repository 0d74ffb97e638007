//! Running a program to its end, and finding what it left behind.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// The variable that every descendant of a program under test inherits.
const MARK: &str = "MCPTEST_E2E_MARK";

/// Nothing here takes nearly as long on a slow machine.
const LIMIT: Duration = Duration::from_secs(300);

/// A killed process is still listed for a moment.
const GRACE: Duration = Duration::from_millis(500);

/// The output and the leftovers of a program that ran to its end.
pub struct Finished {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// A program under test, with everything it starts.
pub struct Running {
    child: Child,
    mark: String,
    /// The argument by which a descendant without our variable is recognized.
    argument: String,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
}

/// Runs a program to its end. That it leaves a process behind is an error.
pub fn run(command: &mut Command, argument: &str) -> Result<Finished> {
    start(command, argument)?.wait()
}

/// Starts a program. `argument` is a string that the arguments of nothing else on the machine
/// contain.
pub fn start(command: &mut Command, argument: &str) -> Result<Running> {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let mark = format!(
        "{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    let mut child = command
        .env(MARK, &mark)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let stdout = read(child.stdout.take());
    let stderr = read(child.stderr.take());
    Ok(Running {
        child,
        mark,
        argument: argument.to_owned(),
        stdout,
        stderr,
    })
}

impl Running {
    /// Sends a signal to the program alone, not to what it started.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.context("a process without a number")?, signal)
            .context("cannot send the signal")
    }

    /// Waits until a condition holds while the program runs.
    pub fn wait_until(&mut self, what: &str, condition: impl Fn() -> bool) -> Result<()> {
        let began = Instant::now();
        while !condition() {
            if let Some(status) = self.child.try_wait()? {
                bail!("the program ended ({status}) before {what}");
            }
            if began.elapsed() > LIMIT {
                self.kill();
                bail!("within {} s there was no sign of {what}", LIMIT.as_secs());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Waits for the end. That a process is left behind is an error.
    pub fn wait(mut self) -> Result<Finished> {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if began.elapsed() > LIMIT {
                self.kill();
                bail!("the program did not end within {} s", LIMIT.as_secs());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let ended = Instant::now();
        let mut left = self.descendants();
        if left.is_empty() {
            // A process that is just becoming another program shows no environment for a moment.
            std::thread::sleep(Duration::from_millis(100));
            left = self.descendants();
        }
        while !left.is_empty() && ended.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(20));
            left = self.descendants();
        }
        if !left.is_empty() {
            let names: Vec<String> = left
                .iter()
                .map(|(pid, name)| format!("{pid:?} {name}"))
                .collect();
            // They must not disturb the next check, nor hold our ends of the pipes.
            self.kill();
            bail!("processes were left behind: {}", names.join("; "));
        }
        Ok(Finished {
            code: status.code(),
            stdout: self.stdout.join().unwrap_or_default(),
            stderr: self.stderr.join().unwrap_or_default(),
        })
    }

    fn kill(&mut self) {
        // Whatever is gone already is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for (pid, _) in self.descendants() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// The program's descendants that are alive, with the words they were started with.
    pub fn descendants(&self) -> Vec<(Pid, String)> {
        let variable = format!("{MARK}={}", self.mark);
        let Ok(processes) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        processes
            .flatten()
            .filter_map(|entry| {
                let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
                if pid.as_raw_nonzero().get().unsigned_abs() == self.child.id() {
                    return None;
                }
                let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
                let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                let words = String::from_utf8_lossy(&words).replace('\0', " ");
                let is_ours = environment
                    .split(|byte| *byte == 0)
                    .any(|one| one == variable.as_bytes())
                    || words.contains(&self.argument);
                is_ours.then(|| (pid, words.trim().to_owned()))
            })
            .collect()
    }
}

impl Finished {
    /// Fails unless the program exited so.
    pub fn expect_code(&self, code: i32) -> Result<()> {
        ensure!(
            self.code == Some(code),
            "exit code {:?} instead of {code}\nstdout: {}\nstderr: {}",
            self.code,
            self.stdout,
            self.stderr
        );
        Ok(())
    }
}

fn read(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<Finished> {
        run(
            Command::new("sh").args(["-c", script]),
            "no such argument anywhere",
        )
    }

    #[test]
    fn a_program_that_cleans_up_is_read_to_its_end() {
        let finished = shell("echo out; echo err >&2; sleep 0.1 & wait; exit 7").unwrap();
        assert_eq!(
            (finished.stdout.as_str(), finished.stderr.as_str()),
            ("out\n", "err\n")
        );
        assert!(finished.expect_code(7).is_ok());
        assert!(finished.expect_code(0).is_err());
    }

    #[test]
    fn what_is_left_behind_is_found_and_ended() {
        let error = shell("sleep 61.25 & exit 0")
            .map(drop)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("processes were left behind: "), "{error}");
        assert!(error.contains("sleep 61.25"), "{error}");
        // Without our variable only the arguments identify it.
        let mut command = Command::new("sh");
        command.args(["-c", "env -i sleep 61.75 & exit 0"]);
        let error = run(&mut command, "61.75")
            .map(drop)
            .unwrap_err()
            .to_string();
        assert!(error.contains("sleep 61.75"), "{error}");
    }
}
