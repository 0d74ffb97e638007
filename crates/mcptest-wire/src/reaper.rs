//! Killing every process of a server.
//!
//! The process that we start is often only a launcher (`npx`, `sh`), and servers start helpers of
//! their own. Two mechanisms find them: each server has a process group, and each server's
//! environment contains a cookie. The group covers the ordinary cases; the cookie, read from
//! `/proc` on Linux, also covers processes that moved to another session or forked twice. If we
//! have no child process at all, nothing is left and the scan is skipped.
//!
//! An agent under test also has its own folder ([`crate::process_table`]): agents give the
//! servers that they start an environment without the cookie, but its HOME is in that folder.
//!
//! Everything is synchronous, so that a panic hook or the exit path can call [`kill_all`] without a
//! runtime.

#[cfg(target_os = "linux")]
use std::collections::HashSet;
use std::collections::{BTreeMap, BTreeSet};
#[cfg(target_os = "linux")]
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

pub(crate) use crate::process_table::COOKIE_VARIABLE;
#[cfg(target_os = "linux")]
use crate::process_table::cookies;
use crate::process_table::{self, Among, ProcessId, Survivors, survivors};

/// Scans until no marked process is found; processes can fork during a scan.
const MAX_SCANS: usize = 20;

/// The longest wait at the end for the scan for leftovers, which takes milliseconds.
#[cfg(target_os = "linux")]
const MAX_LEFTOVER_WAIT: Duration = Duration::from_millis(500);

/// All servers and agents that may still have live processes, by the number in their cookie.
static LIVE: Mutex<BTreeMap<u64, Live>> = Mutex::new(BTreeMap::new());

/// A server or an agent that may still have live processes.
#[derive(Debug, Clone)]
struct Live {
    /// `None` if the group is known to be empty: the system may reuse its number then.
    group: Option<Pid>,
    /// The folder of an agent's run.
    folder: Option<PathBuf>,
}

impl Live {
    /// The number of its own process, and of its group.
    fn leader(&self) -> Option<i32> {
        self.group.map(|group| group.as_raw_nonzero().get())
    }
}

/// The mark of one server. Its string form is unique on the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cookie(u64);

pub(crate) fn new_cookie() -> Cookie {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Cookie(NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Cookie {
    pub(crate) fn value(self) -> String {
        format!("{}-{}", session(), self.0)
    }

    /// The value for the environment. It begins with the cookies of our own environment, so that an
    /// outer mcptest finds the servers of an inner one.
    pub(crate) fn chained(self) -> String {
        match std::env::var(COOKIE_VARIABLE) {
            Ok(outer) if !outer.is_empty() => format!("{outer},{}", self.value()),
            _ => self.value(),
        }
    }
}

/// The prefix of all cookies of this process: its number, the time of its start, and the time.
fn session() -> &'static str {
    static SESSION: OnceLock<String> = OnceLock::new();
    SESSION.get_or_init(|| {
        let nanos = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_nanos());
        let pid = std::process::id();
        format!("{pid}-{}-{nanos}", process_table::start_of(pid))
    })
}

/// All processes of one server. Dropping it kills those that are left.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    cookie: Cookie,
    /// The folder of an agent's run: every process that refers to it belongs to the run.
    folder: Option<PathBuf>,
    /// Processes of the run that were found so far. One whose parent has exited, and that does not
    /// refer to the folder, is known only from here.
    known: Mutex<BTreeSet<ProcessId>>,
    /// Everything was killed already, so dropping has nothing to do.
    killed: AtomicBool,
}

impl ProcessTree {
    pub(crate) fn register(cookie: Cookie, leader: u32) -> Self {
        Self::register_in(cookie, leader, None)
    }

    /// Registers an agent with the folder of its run.
    pub(crate) fn register_in(cookie: Cookie, leader: u32, folder: Option<PathBuf>) -> Self {
        let group = i32::try_from(leader).ok().and_then(Pid::from_raw);
        let live = Live {
            group,
            folder: folder.clone(),
        };
        lock().insert(cookie.0, live);
        Self {
            cookie,
            folder,
            known: Mutex::default(),
            killed: AtomicBool::new(false),
        }
    }

    /// The cookie, for the task that waits for the leader.
    pub(crate) fn cookie(&self) -> Cookie {
        self.cookie
    }

    /// Returns true if the process group has a member. Its leader must have been waited for.
    pub(crate) fn group_exists(&self) -> bool {
        group_of(self.cookie).is_some_and(|group| {
            reap_group(group);
            test_kill_process_group(group).is_ok()
        })
    }

    /// Sends SIGTERM to the group.
    pub(crate) fn terminate(&self) {
        if let Some(group) = group_of(self.cookie) {
            // Fails if the group is gone already, which is fine.
            let _ = kill_process_group(group, Signal::TERM);
        }
    }

    /// Kills the group and every other process with the cookie, or of the run.
    pub(crate) fn kill(&self) {
        self.killed.store(true, Ordering::Relaxed);
        if has_no_children() {
            return;
        }
        if let Some(group) = group_of(self.cookie) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        if self.folder.is_some() {
            for _ in 0..MAX_SCANS {
                let found = self.survivors();
                if found.is_empty() {
                    return;
                }
                for process in &found.processes {
                    process.signal(Signal::KILL);
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            return;
        }
        let cookie = self.cookie.value();
        kill_marked(self.among(), |mark| mark == cookie);
    }

    /// The processes among which those of this server are.
    fn among(&self) -> Among {
        if !is_subreaper() {
            return Among::Everything;
        }
        let live = lock();
        // Without a group, its own process was waited for.
        match live.get(&self.cookie.0) {
            Some(Live { group: Some(_), .. }) => Among::Descendants,
            _ => Among::Orphans(live.values().filter_map(Live::leader).collect()),
        }
    }

    /// The processes of the run that are alive.
    pub(crate) fn survivors(&self) -> Survivors {
        let Some(folder) = self.folder.as_ref().filter(|_| !has_no_children()) else {
            return Survivors::default();
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = survivors(folder, &self.cookie.value(), &known, &self.among());
        known.extend(found.processes.iter().copied());
        // Orphans became our children. The leaders are left to the tasks that wait for them.
        let leaders: BTreeSet<i32> = lock().values().filter_map(Live::leader).collect();
        for pid in &found.exited {
            if !leaders.contains(&pid.as_raw_nonzero().get()) {
                reap_process(*pid);
            }
        }
        found
    }

    /// Sends SIGTERM to every process of the run.
    pub(crate) fn terminate_all(&self) {
        self.terminate();
        for process in self.survivors().processes {
            process.signal(Signal::TERM);
        }
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if !*self.killed.get_mut() {
            self.kill();
        }
        let is_last = {
            let mut live = lock();
            live.remove(&self.cookie.0);
            live.is_empty()
        };
        if is_last {
            wait_for_leftovers();
        }
    }
}

/// Records that the leader was waited for: from then on the group's number is only ours as long as
/// the group has other members.
pub(crate) fn leader_exited(cookie: Cookie) {
    let mut live = lock();
    if let Some(slot) = live.get_mut(&cookie.0)
        && slot.group.is_some_and(|group| {
            reap_group(group);
            test_kill_process_group(group).is_err()
        })
    {
        slot.group = None;
    }
}

/// Kills every server that this process started and that is still alive, with all its descendants.
///
/// It is for panic hooks, signal handling and the end of `main`: it is synchronous, needs no
/// runtime and never blocks for long.
pub fn kill_all() {
    kill_live();
    kill_orphans();
}

/// Kills what is left below this process: descendants of servers in sessions of their own and
/// without our marks, whose parents have exited.
#[cfg(target_os = "linux")]
fn kill_orphans() {
    for _ in 0..MAX_SCANS {
        if !is_subreaper() || has_no_children() {
            return;
        }
        let orphans = process_table::live_descendants(Path::new("/proc"));
        if orphans.is_empty() {
            return;
        }
        for orphan in orphans {
            orphan.signal(Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(not(target_os = "linux"))]
fn kill_orphans() {}

/// Kills all servers and agents that are registered.
fn kill_live() {
    let Some(all) = try_lock().map(|live| live.values().cloned().collect::<Vec<_>>()) else {
        return;
    };
    if all.is_empty() {
        return;
    }
    // Before their parents are killed, so that descendants are known as such.
    let mut found = Vec::new();
    for folder in all.iter().filter_map(|live| live.folder.as_ref()) {
        found.extend(survivors(folder, "", &BTreeSet::new(), &descendants()).processes);
    }
    for group in all.iter().filter_map(|live| live.group) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    for process in found {
        process.signal(Signal::KILL);
    }
    let prefix = format!("{}-", session());
    kill_marked(descendants(), |mark| mark.starts_with(&prefix));
}

/// Our descendants; everything where orphans do not become our children.
fn descendants() -> Among {
    if is_subreaper() {
        Among::Descendants
    } else {
        Among::Everything
    }
}

fn group_of(cookie: Cookie) -> Option<Pid> {
    lock().get(&cookie.0).and_then(|live| live.group)
}

fn lock() -> MutexGuard<'static, BTreeMap<u64, Live>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives up after 100 ms: a panic hook may run on the thread that holds the lock.
fn try_lock() -> Option<MutexGuard<'static, BTreeMap<u64, Live>>> {
    for _ in 0..50 {
        match LIVE.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
    None
}

/// Kills every process whose cookie matches, until a scan finds none and leaves none unclear.
///
/// One scan is not enough: a process shows no environment while it executes another program, so a
/// single look can miss it.
fn kill_marked(among: Among, matches: impl Fn(&str) -> bool) {
    let mut scan = Scan::new(among);
    for _ in 0..MAX_SCANS {
        let Found { marked, unclear } = scan.run(&matches);
        if marked.is_empty() && !unclear {
            return;
        }
        for pid in marked {
            let _ = kill_process(pid, Signal::KILL);
        }
        // A killed process shows its environment a moment longer.
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills what an mcptest that was itself killed has left behind: processes of our user whose last
/// cookie names a process that no longer exists. Killing an inner mcptest makes its servers such
/// processes, so the scan is repeated.
#[cfg(target_os = "linux")]
fn kill_leftovers() {
    for _ in 0..MAX_SCANS {
        let leftovers = process_table::leftovers(Path::new("/proc"), COOKIE_VARIABLE);
        if leftovers.is_empty() {
            return;
        }
        for process in leftovers {
            process.signal(Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The result of one scan of all processes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// The processes whose cookie matches.
    marked: Vec<Pid>,
    /// A process may be executing another program, so its cookie is not known yet.
    unclear: bool,
}

/// Makes orphaned descendants of servers our children, instead of children of the machine's first
/// process. Then having no children means that nothing is left, and no scan is needed.
#[cfg(target_os = "linux")]
pub(crate) fn become_subreaper() {
    IS_SUBREAPER.get_or_init(|| {
        // The servers of this process do not depend on it. The end of the last one waits for it.
        std::thread::spawn(|| {
            kill_leftovers();
            LEFTOVERS_KILLED.store(true, Ordering::Release);
        });
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok()
    });
}

/// True if nothing is left of an mcptest that was killed.
#[cfg(target_os = "linux")]
static LEFTOVERS_KILLED: AtomicBool = AtomicBool::new(false);

/// Waits a moment until what a killed mcptest left behind is killed: a server may end, and this
/// process with it, before the scan for leftovers does.
#[cfg(target_os = "linux")]
fn wait_for_leftovers() {
    if !is_subreaper() {
        return;
    }
    let began = std::time::Instant::now();
    while !LEFTOVERS_KILLED.load(Ordering::Acquire) && began.elapsed() < MAX_LEFTOVER_WAIT {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(not(target_os = "linux"))]
fn wait_for_leftovers() {}

#[cfg(not(target_os = "linux"))]
pub(crate) fn become_subreaper() {}

/// True if orphans become our children. Set before the first server is started.
#[cfg(target_os = "linux")]
static IS_SUBREAPER: OnceLock<bool> = OnceLock::new();

/// Returns true if orphaned descendants become our children.
#[cfg(target_os = "linux")]
fn is_subreaper() -> bool {
    IS_SUBREAPER.get() == Some(&true)
}

#[cfg(not(target_os = "linux"))]
fn is_subreaper() -> bool {
    false
}

/// Returns true if no process that we started, and no descendant of one, is left.
#[cfg(target_os = "linux")]
fn has_no_children() -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};

    // NOWAIT: exited processes stay for the task that waits for them.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    is_subreaper()
        && waitid(WaitId::All, options).is_err_and(|error| error == rustix::io::Errno::CHILD)
}

#[cfg(not(target_os = "linux"))]
fn has_no_children() -> bool {
    false
}

/// Reaps exited members of a group that became our children as orphans: until then they count as
/// members. The group's leader must have been waited for.
#[cfg(target_os = "linux")]
fn reap_group(group: Pid) {
    use rustix::process::{WaitId, WaitIdOptions, waitid};

    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    while let Ok(Some(_)) = waitid(WaitId::Pgid(Some(group)), options) {}
}

#[cfg(not(target_os = "linux"))]
fn reap_group(_: Pid) {}

/// Waits for a child that has exited.
#[cfg(target_os = "linux")]
fn reap_process(pid: Pid) {
    use rustix::process::{WaitId, WaitIdOptions, waitid};

    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    // Fails if it is gone already, which is fine.
    let _ = waitid(WaitId::Pid(pid), options);
}

#[cfg(not(target_os = "linux"))]
fn reap_process(_: Pid) {}

/// Scans of the processes of our user, ourselves excluded.
#[cfg(target_os = "linux")]
struct Scan {
    /// `/proc`, or a stand-in for it in tests.
    root: PathBuf,
    among: Among,
    /// Programs that had an empty environment in the previous scan.
    empty: HashSet<Pid>,
}

#[cfg(target_os = "linux")]
impl Scan {
    fn new(among: Among) -> Self {
        Self {
            root: PathBuf::from("/proc"),
            among,
            empty: HashSet::new(),
        }
    }

    fn run(&mut self, matches: &impl Fn(&str) -> bool) -> Found {
        use std::os::unix::fs::MetadataExt;

        let mut found = Found::default();
        let mut empty = HashSet::new();
        let user = rustix::process::geteuid().as_raw();
        let ourselves = rustix::process::getpid();
        for number in process_table::numbers(&self.root, &self.among) {
            let Some(pid) = Pid::from_raw(number).filter(|pid| *pid != ourselves) else {
                continue;
            };
            let process = self.root.join(number.to_string());
            if std::fs::metadata(&process).map_or(true, |metadata| metadata.uid() != user) {
                continue;
            }
            let Ok(environment) = std::fs::read(process.join("environ")) else {
                continue;
            };
            if !environment.is_empty() {
                if cookies(&environment).any(matches) {
                    found.marked.push(pid);
                }
            } else if is_program(&process) {
                // The kernel fills in the arguments of a new program before its environment. So
                // only a program that has arguments, and has had no environment since the previous
                // scan, really has none.
                let has_arguments = std::fs::read(process.join("cmdline"))
                    .is_ok_and(|arguments| !arguments.is_empty());
                found.unclear |= !has_arguments || !self.empty.contains(&pid);
                empty.insert(pid);
            }
        }
        self.empty = empty;
        found
    }
}

/// Returns true if a process is neither a kernel thread nor a process that has exited.
#[cfg(target_os = "linux")]
fn is_program(process: &Path) -> bool {
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
    !matches!(state, "Z" | "X" | "x") && flags & KERNEL_THREAD == 0
}

/// Other systems have process groups only.
#[cfg(not(target_os = "linux"))]
struct Scan;

#[cfg(not(target_os = "linux"))]
impl Scan {
    fn new(_among: Among) -> Self {
        Self
    }

    fn run(&mut self, _matches: &impl Fn(&str) -> bool) -> Found {
        Found::default()
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    /// A stand-in for `/proc` with one process.
    struct FakeProc(tempfile::TempDir);

    impl FakeProc {
        fn new() -> Self {
            let proc = Self(tempfile::tempdir().unwrap());
            std::fs::create_dir(proc.0.path().join("4711")).unwrap();
            proc.write("stat", "4711 (a) b) R 1 4711 4711 0 -1 4194304 0");
            proc.write("environ", "");
            proc.write("cmdline", "");
            proc
        }

        fn write(&self, file: &str, content: &str) {
            std::fs::write(self.0.path().join("4711").join(file), content).unwrap();
        }

        fn scan(&self) -> Scan {
            Scan {
                root: self.0.path().to_owned(),
                ..Scan::new(Among::Everything)
            }
        }
    }

    const NOTHING: Found = Found {
        marked: Vec::new(),
        unclear: false,
    };
    const UNCLEAR: Found = Found {
        marked: Vec::new(),
        unclear: true,
    };

    #[test]
    fn a_process_in_the_middle_of_exec_is_scanned_again() {
        let proc = FakeProc::new();
        let mut scan = proc.scan();
        let is_ours = |cookie: &str| cookie == "ours";
        // No arguments yet: unclear as often as we look.
        assert_eq!(scan.run(&is_ours), UNCLEAR);
        assert_eq!(scan.run(&is_ours), UNCLEAR);
        // With arguments, one empty environment proves nothing: it may be filled in next.
        let mut scan = proc.scan();
        proc.write("cmdline", "sleep\0");
        assert_eq!(scan.run(&is_ours), UNCLEAR);
        proc.write("environ", "A=1\0MCPTEST_SESSION=outer,ours\0");
        let marked = vec![Pid::from_raw(4711).unwrap()];
        let unclear = false;
        assert_eq!(scan.run(&is_ours), Found { marked, unclear });
        assert_eq!(scan.run(&|cookie| cookie == "other"), NOTHING);
    }

    #[test]
    fn an_environment_that_stays_empty_is_empty() {
        let proc = FakeProc::new();
        proc.write("cmdline", "sleep\0");
        let mut scan = proc.scan();
        assert_eq!(scan.run(&|_| true), UNCLEAR);
        assert_eq!(scan.run(&|_| true), NOTHING);
        assert_eq!(scan.run(&|_| true), NOTHING);
    }

    #[test]
    fn kernel_threads_and_exited_processes_are_ignored() {
        let proc = FakeProc::new();
        for stat in [
            "4711 (kthreadd) S 0 0 0 0 -1 2129984 0",
            "4711 (sh) Z 1 1 1 0 -1 4194304 0",
        ] {
            proc.write("stat", stat);
            assert_eq!(proc.scan().run(&|_| true), NOTHING, "{stat}");
        }
    }

    #[test]
    fn a_real_process_with_an_empty_environment_is_not_waited_for() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .env_clear()
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        let path = PathBuf::from(format!("/proc/{}", child.id()));
        // It has become `sleep` when it has arguments.
        while std::fs::read(path.join("cmdline")).unwrap().is_empty() {
            std::thread::yield_now();
        }
        assert!(std::fs::read(path.join("environ")).unwrap().is_empty());
        assert!(is_program(&path));
        let mut scan = Scan::new(Among::Everything);
        scan.run(&|_| false);
        assert!(scan.empty.contains(&pid));
        kill_process(pid, Signal::KILL).unwrap();
        // It has exited and nobody has waited for it: no longer a program.
        while !std::fs::read_to_string(path.join("stat"))
            .unwrap()
            .contains(") Z ")
        {
            std::thread::yield_now();
        }
        assert!(!is_program(&path));
        child.wait().unwrap();
        assert!(!is_program(&path));
    }

    #[test]
    fn kernel_threads_are_not_programs() {
        // Visible only where the machine shows them.
        let kernel = Path::new("/proc/2");
        if std::fs::read_to_string(kernel.join("comm")).is_ok_and(|name| name.trim() == "kthreadd")
        {
            assert!(!is_program(kernel));
        }
        assert!(is_program(Path::new("/proc/self")));
    }
}
