//! Ending every process a server consists of.
//!
//! The process we start is often only a launcher (`npx`, `sh`), and servers
//! start helpers of their own. Two nets catch them: each server gets a process
//! group, and each server's environment carries a cookie. The group catches
//! the ordinary cases; the cookie, looked up in `/proc` on Linux, also catches
//! what moved to another session or forked twice. Where nothing of ours is left
//! at all, the system says so, and nobody has to look.
//!
//! All of it is synchronous, so that a panic hook or the exit path can call
//! [`kill_all`] without a runtime.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

/// The variable that marks every descendant of a server.
pub(crate) const COOKIE_VARIABLE: &str = "MCPTEST_SESSION";

/// Processes can fork while we look; a few rounds settle it.
const MAX_ROUNDS: usize = 20;

/// Every server of this process that may still have something alive, by the
/// number in its cookie. `None` once its group is known to be empty: the system
/// may hand the number to somebody else then.
static LIVE: Mutex<BTreeMap<u64, Option<Pid>>> = Mutex::new(BTreeMap::new());

/// The mark of one server. The text is unique on the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cookie(u64);

pub(crate) fn new_cookie() -> Cookie {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Cookie(NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Cookie {
    fn text(self) -> String {
        format!("{}-{}", session(), self.0)
    }

    /// The value for the environment: the cookies we run under ourselves come
    /// first, so that an outer mcptest still finds the servers of an inner one.
    pub(crate) fn chained(self) -> String {
        match std::env::var(COOKIE_VARIABLE) {
            Ok(outer) if !outer.is_empty() => format!("{outer},{}", self.text()),
            _ => self.text(),
        }
    }
}

/// What all cookies of this process begin with.
fn session() -> &'static str {
    static SESSION: OnceLock<String> = OnceLock::new();
    SESSION.get_or_init(|| {
        let nanos = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_nanos());
        format!("{}-{nanos}", std::process::id())
    })
}

/// All processes of one server. Dropping it kills what is left of them.
#[derive(Debug)]
pub(crate) struct Tree {
    cookie: Cookie,
    /// Everything was killed already, so dropping has nothing left to do.
    settled: AtomicBool,
}

impl Tree {
    pub(crate) fn register(cookie: Cookie, leader: u32) -> Self {
        let group = i32::try_from(leader).ok().and_then(Pid::from_raw);
        lock().insert(cookie.0, group);
        Self {
            cookie,
            settled: AtomicBool::new(false),
        }
    }

    /// A handle for the task that waits for the leader.
    pub(crate) fn cookie(&self) -> Cookie {
        self.cookie
    }

    /// Whether the server's process group still has a member. Its leader must have been waited for.
    pub(crate) fn group_exists(&self) -> bool {
        group_of(self.cookie).is_some_and(|group| {
            bury(group);
            test_kill_process_group(group).is_ok()
        })
    }

    /// Asks the group to end.
    pub(crate) fn terminate(&self) {
        if let Some(group) = group_of(self.cookie) {
            // A group that is gone already is what we want.
            let _ = kill_process_group(group, Signal::TERM);
        }
    }

    /// Kills the group and every straggler that carries the cookie.
    pub(crate) fn kill(&self) {
        self.settled.store(true, Ordering::Relaxed);
        if is_childless() {
            return;
        }
        if let Some(group) = group_of(self.cookie) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let cookie = self.cookie.text();
        kill_marked(|mark| mark == cookie);
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !*self.settled.get_mut() {
            self.kill();
        }
        lock().remove(&self.cookie.0);
    }
}

/// To be called once the leader has been waited for: from then on its number is
/// only ours as long as the group has other members.
pub(crate) fn leader_gone(cookie: Cookie) {
    let mut live = lock();
    if let Some(slot) = live.get_mut(&cookie.0)
        && slot.is_some_and(|group| {
            bury(group);
            test_kill_process_group(group).is_err()
        })
    {
        *slot = None;
    }
}

/// Kills every server started by this process that is still alive, with all its
/// descendants. For panic hooks, signal paths and the end of `main`: it is
/// synchronous, needs no runtime and never blocks for long.
pub fn kill_all() {
    let Some(groups) = try_lock().map(|live| live.values().copied().collect::<Vec<_>>()) else {
        return;
    };
    if groups.is_empty() {
        return;
    }
    for group in groups.into_iter().flatten() {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let prefix = format!("{}-", session());
    kill_marked(|mark| mark.starts_with(&prefix));
}

fn group_of(cookie: Cookie) -> Option<Pid> {
    lock().get(&cookie.0).copied().flatten()
}

fn lock() -> MutexGuard<'static, BTreeMap<u64, Option<Pid>>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives up after a while: a panic hook may run on the thread that holds it.
fn try_lock() -> Option<MutexGuard<'static, BTreeMap<u64, Option<Pid>>>> {
    for _ in 0..50 {
        match LIVE.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
    None
}

fn kill_marked(matches: impl Fn(&str) -> bool) {
    for _ in 0..MAX_ROUNDS {
        let Marked { found, unclear } = marked(&matches);
        if found.is_empty() && !unclear {
            return;
        }
        for pid in found {
            let _ = kill_process(pid, Signal::KILL);
        }
        // A killed process shows its environment for a moment longer, and one that becomes another
        // program shows none for a moment.
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What a look at all processes found.
#[derive(Default)]
struct Marked {
    /// Those whose cookie matches.
    found: Vec<Pid>,
    /// Whether one of them could not be told yet.
    unclear: bool,
}

/// Has the system hand us whatever a server leaves behind, instead of the first process of the
/// machine. Then having no children means that nothing is left, and nobody needs to look at all
/// processes to know it.
#[cfg(target_os = "linux")]
pub(crate) fn adopt_orphans() {
    ADOPTING.get_or_init(|| {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok()
    });
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn adopt_orphans() {}

/// Whether orphans come to us. Set before the first server is started.
#[cfg(target_os = "linux")]
static ADOPTING: OnceLock<bool> = OnceLock::new();

/// Whether nothing that we started, and nothing that it started, is left.
#[cfg(target_os = "linux")]
fn is_childless() -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};

    // Only a look: whoever ended is left for the one that waits for it.
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    ADOPTING.get() == Some(&true)
        && waitid(WaitId::All, look).is_err_and(|error| error == rustix::io::Errno::CHILD)
}

#[cfg(not(target_os = "linux"))]
fn is_childless() -> bool {
    false
}

/// Takes note of the ends of a group's members that came to us as orphans: until then they count as
/// members. Its leader must have been waited for.
#[cfg(target_os = "linux")]
fn bury(group: Pid) {
    use rustix::process::{WaitId, WaitIdOptions, waitid};

    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    while let Ok(Some(_)) = waitid(WaitId::Pgid(Some(group)), ended) {}
}

#[cfg(not(target_os = "linux"))]
fn bury(_: Pid) {}

/// Our user's processes whose cookie matches, ourselves excluded.
#[cfg(target_os = "linux")]
fn marked(matches: &impl Fn(&str) -> bool) -> Marked {
    use std::os::unix::fs::MetadataExt;

    let mut marked = Marked::default();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return marked;
    };
    let user = rustix::process::geteuid().as_raw();
    let ourselves = rustix::process::getpid();
    let needle = format!("{COOKIE_VARIABLE}=");
    for entry in entries.flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(pid) = pid.and_then(Pid::from_raw).filter(|pid| *pid != ourselves) else {
            continue;
        };
        if entry
            .metadata()
            .map_or(true, |metadata| metadata.uid() != user)
        {
            continue;
        }
        let Ok(environment) = std::fs::read(entry.path().join("environ")) else {
            continue;
        };
        if environment.is_empty() {
            marked.unclear |= is_becoming(&entry.path());
            continue;
        }
        let value = environment
            .split(|byte| *byte == 0)
            .find_map(|variable| variable.strip_prefix(needle.as_bytes()))
            .and_then(|value| std::str::from_utf8(value).ok());
        if value.is_some_and(|value| value.split(',').any(matches)) {
            marked.found.push(pid);
        }
    }
    marked
}

/// Whether a process that shows no environment is in the middle of becoming another program
/// (`exec`): it is neither a thread of the kernel nor a process that has ended, and does not know
/// its arguments yet either.
#[cfg(target_os = "linux")]
fn is_becoming(process: &std::path::Path) -> bool {
    const KERNEL_THREAD: u64 = 0x0020_0000;

    let status = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    // The name in parentheses may hold anything; the fields after it are state, parent, group,
    // session, terminal, its group, flags.
    let Some((_, fields)) = status.rsplit_once(')') else {
        return false;
    };
    let mut fields = fields.split_whitespace();
    let state = fields.next().unwrap_or("X");
    let flags: u64 = fields
        .nth(5)
        .and_then(|flags| flags.parse().ok())
        .unwrap_or(KERNEL_THREAD);
    let is_program = !matches!(state, "Z" | "X" | "x") && flags & KERNEL_THREAD == 0;
    is_program && std::fs::read(process.join("cmdline")).is_ok_and(|words| words.is_empty())
}

/// Elsewhere the process group is the only net.
#[cfg(not(target_os = "linux"))]
fn marked(_matches: &impl Fn(&str) -> bool) -> Marked {
    Marked::default()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_process_with_an_empty_environment_is_not_taken_for_one_in_exec() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .env_clear()
            .spawn()
            .unwrap();
        let path = format!("/proc/{}", child.id());
        let path = Path::new(&path);
        // It has become `sleep` when it knows its arguments.
        while std::fs::read(path.join("cmdline")).unwrap().is_empty() {
            std::thread::yield_now();
        }
        assert!(std::fs::read(path.join("environ")).unwrap().is_empty());
        assert!(!is_becoming(path));
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        // It has ended and nobody has waited for it: still no program.
        while !std::fs::read_to_string(path.join("stat"))
            .unwrap()
            .contains(") Z ")
        {
            std::thread::yield_now();
        }
        assert!(!is_becoming(path));
        child.wait().unwrap();
        assert!(!is_becoming(path));
    }

    #[test]
    fn threads_of_the_kernel_are_no_programs() {
        // Seen only where the machine shows them.
        let kernel = Path::new("/proc/2");
        if std::fs::read_to_string(kernel.join("comm")).is_ok_and(|name| name.trim() == "kthreadd")
        {
            assert!(!is_becoming(kernel));
        }
        assert!(!is_becoming(Path::new("/proc/self")));
    }
}
