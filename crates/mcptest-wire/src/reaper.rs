//! Ending every process a server consists of.
//!
//! The process we start is often only a launcher (`npx`, `sh`), and servers
//! start helpers of their own. Two nets catch them: each server gets a process
//! group, and each server's environment carries a cookie. The group catches
//! the ordinary cases; the cookie, looked up in `/proc` on Linux, also catches
//! what moved to another session or forked twice.
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
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
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

    /// Whether the server's process group still has a member.
    pub(crate) fn group_exists(&self) -> bool {
        group_of(self.cookie).is_some_and(|group| test_kill_process_group(group).is_ok())
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
        && slot.is_some_and(|group| test_kill_process_group(group).is_err())
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
        let found = marked(&matches);
        if found.is_empty() {
            return;
        }
        for pid in found {
            let _ = kill_process(pid, Signal::KILL);
        }
        // A killed process shows its environment for a moment longer.
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Our user's processes whose cookie matches, ourselves excluded.
#[cfg(target_os = "linux")]
fn marked(matches: &impl Fn(&str) -> bool) -> Vec<Pid> {
    use std::os::unix::fs::MetadataExt;

    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let user = rustix::process::geteuid().as_raw();
    let ourselves = rustix::process::getpid();
    let needle = format!("{COOKIE_VARIABLE}=");
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let pid = Pid::from_raw(pid).filter(|pid| *pid != ourselves)?;
            if entry.metadata().ok()?.uid() != user {
                return None;
            }
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            let value = environment
                .split(|byte| *byte == 0)
                .find_map(|variable| variable.strip_prefix(needle.as_bytes()))?;
            let value = std::str::from_utf8(value).ok()?;
            value.split(',').any(matches).then_some(pid)
        })
        .collect()
}

/// Elsewhere the process group is the only net.
#[cfg(not(target_os = "linux"))]
fn marked(_matches: &impl Fn(&str) -> bool) -> Vec<Pid> {
    Vec::new()
}
