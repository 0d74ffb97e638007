//! The processes of an agent's run, found in the table of all processes.
//!
//! A process belongs to the run if it refers to the run's folder (in its environment, its arguments
//! or its working directory), has the run's cookie, was known before, or has such a process among
//! its ancestors. Agents start shells and servers in their own groups, with their own
//! environments: no single mark finds them all.

#[cfg(target_os = "linux")]
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// The environment variable that marks every descendant of a server or an agent.
pub(crate) const COOKIE_VARIABLE: &str = "MCPTEST_SESSION";

/// The cookies in an environment, the outermost first.
#[cfg(target_os = "linux")]
pub(crate) fn cookies(environment: &[u8]) -> impl Iterator<Item = &str> {
    environment
        .split(|byte| *byte == 0)
        .filter_map(|variable| variable.strip_prefix(COOKIE_VARIABLE.as_bytes()))
        .find_map(|rest| rest.strip_prefix(b"="))
        .and_then(|value| std::str::from_utf8(value).ok())
        .into_iter()
        .flat_map(|value| value.split(','))
}

/// A process: its number and the time of its start, because numbers are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessId {
    pid: i32,
    started: u64,
}

impl ProcessId {
    /// Sends a signal, if it is still the same process.
    pub(crate) fn signal(self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return;
        };
        #[cfg(target_os = "linux")]
        if stat(Path::new("/proc"), self.pid).is_none_or(|stat| stat.started != self.started) {
            return;
        }
        // Fails if it is gone already, which is fine.
        let _ = kill_process(pid, signal);
    }
}

/// The processes of a run that are alive.
#[derive(Debug, Default)]
pub(crate) struct Survivors {
    pub(crate) processes: Vec<ProcessId>,
    /// A process may be executing another program, so its marks are not known yet.
    pub(crate) unclear: bool,
    /// Known processes that have exited as our children, and were not waited for.
    pub(crate) exited: Vec<Pid>,
}

impl Survivors {
    pub(crate) fn is_empty(&self) -> bool {
        self.processes.is_empty() && !self.unclear
    }
}

/// The processes that are inspected.
#[derive(Debug, Clone)]
pub(crate) enum Among {
    /// All of the machine.
    Everything,
    /// Our descendants. Orphans are among them, if we are a subreaper.
    Descendants,
    /// Our descendants without these children and theirs. What is left of a server whose own
    /// process was waited for is among them, if these are the processes of other servers: its
    /// orphans are our children.
    Orphans(BTreeSet<i32>),
}

/// Other systems have process groups only.
#[cfg(not(target_os = "linux"))]
pub(crate) fn survivors(
    _folder: &Path,
    _cookie: &str,
    _known: &BTreeSet<ProcessId>,
    _among: &Among,
) -> Survivors {
    Survivors::default()
}

/// The live processes of a run, ourselves excluded.
#[cfg(target_os = "linux")]
pub(crate) fn survivors(
    folder: &Path,
    cookie: &str,
    known: &BTreeSet<ProcessId>,
    among: &Among,
) -> Survivors {
    find(Path::new("/proc"), folder, cookie, known, among)
}

#[cfg(target_os = "linux")]
fn find(
    root: &Path,
    folder: &Path,
    cookie: &str,
    known: &BTreeSet<ProcessId>,
    among: &Among,
) -> Survivors {
    let ourselves = rustix::process::getpid().as_raw_nonzero().get();
    let ours_only = !matches!(among, Among::Everything);
    let table = table_among(root, ourselves, among);
    let mut found = Survivors::default();
    let mut members = BTreeSet::new();
    for (pid, stat) in &table {
        if *pid == ourselves || (ours_only && !may_descend_from(&table, *pid, ourselves)) {
            continue;
        }
        if stat.exited {
            if stat.parent == ourselves && known.contains(&stat.id(*pid)) {
                found.exited.extend(Pid::from_raw(*pid));
            }
            continue;
        }
        match refers(&root.join(pid.to_string()), folder, cookie) {
            Some(true) => {
                members.insert(*pid);
            }
            Some(false) if known.contains(&stat.id(*pid)) => {
                members.insert(*pid);
            }
            Some(false) => {}
            None => found.unclear |= ours_only,
        }
    }
    for (pid, stat) in &table {
        let is_member = members.contains(pid)
            || (*pid != ourselves
                && !stat.exited
                && has_ancestor(&table, *pid, |it| members.contains(&it)));
        if is_member {
            found.processes.push(stat.id(*pid));
        }
    }
    found
}

/// The numbers of the processes to inspect.
#[cfg(target_os = "linux")]
pub(crate) fn numbers(root: &Path, among: &Among) -> BTreeSet<i32> {
    let ourselves = rustix::process::getpid().as_raw_nonzero().get();
    if matches!(among, Among::Everything) {
        return pids(root).collect();
    }
    let table = table_among(root, ourselves, among);
    let is_ours = |pid: &i32| may_descend_from(&table, *pid, ourselves);
    table.keys().copied().filter(is_ours).collect()
}

/// The scans of [`orphans`] that may see our children change before it gives up.
#[cfg(target_os = "linux")]
const MAX_CHANGES: usize = 4;

/// The table of our descendants, without these children and theirs. It reads the kernel's lists of
/// children, so that its cost is that of the processes it finds, not of all on the machine.
/// `None` where the kernel has no such lists, or if our children keep changing.
#[cfg(target_os = "linux")]
fn orphans(root: &Path, ourselves: i32, others: &BTreeSet<i32>) -> Option<BTreeMap<i32, Stat>> {
    let mut before = children(root, ourselves)?;
    for _ in 0..MAX_CHANGES {
        let mut found = BTreeMap::new();
        let mut open: Vec<i32> = before.difference(others).copied().collect();
        while let Some(pid) = open.pop() {
            if let Some(stat) = stat(root, pid)
                && found.insert(pid, stat).is_none()
            {
                open.extend(children(root, pid).unwrap_or_default());
            }
        }
        // The children of a process that exited meanwhile became ours, and a list that is read
        // while a child is waited for may lack another one.
        let after = children(root, ourselves)?;
        if after == before {
            return Some(found);
        }
        before = after;
    }
    None
}

/// The children of a process, which its threads share.
#[cfg(target_os = "linux")]
fn children(root: &Path, pid: i32) -> Option<BTreeSet<i32>> {
    let threads = std::fs::read_dir(root.join(pid.to_string()).join("task")).ok()?;
    let lists = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .map(|list| -> BTreeSet<i32> {
            let numbers = list.split_ascii_whitespace();
            numbers.filter_map(|number| number.parse().ok()).collect()
        })
        .reduce(|mut all, list| {
            all.extend(list);
            all
        })
}

/// Our descendants that are alive, as far as their ancestors are known.
#[cfg(target_os = "linux")]
pub(crate) fn live_descendants(root: &Path) -> Vec<ProcessId> {
    let ourselves = rustix::process::getpid().as_raw_nonzero().get();
    let table = table_of_all(root);
    let ours = table.iter().filter(|(pid, stat)| {
        !stat.exited && has_ancestor(&table, **pid, |ancestor| ancestor == ourselves)
    });
    ours.map(|(pid, stat)| stat.id(*pid)).collect()
}

/// Returns true if a process descends from another one, or if one of its ancestors has exited while
/// the table was read: then its new parent is not known.
#[cfg(target_os = "linux")]
fn may_descend_from(table: &BTreeMap<i32, Stat>, pid: i32, ancestor: i32) -> bool {
    let is_gone = |it: i32| it != 1 && !table.contains_key(&it);
    has_ancestor(table, pid, |it| it == ancestor || is_gone(it))
}

/// The time of the start of a process, in the system's units; 0 where it is not known.
#[cfg(target_os = "linux")]
pub(crate) fn start_of(pid: u32) -> u64 {
    let pid = i32::try_from(pid).ok();
    pid.and_then(|pid| stat(Path::new("/proc"), pid))
        .map_or(0, |stat| stat.started)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn start_of(_pid: u32) -> u64 {
    0
}

/// The live processes of our user whose last cookie names a process that is gone.
///
/// Numbers of processes mean nothing across namespaces: a process in a container may have been
/// started by an mcptest that lives there under another number. So only processes of our own
/// namespace are taken.
#[cfg(target_os = "linux")]
pub(crate) fn leftovers(root: &Path, variable: &str) -> Vec<ProcessId> {
    use std::os::unix::fs::MetadataExt as _;

    let user = rustix::process::geteuid().as_raw();
    let namespace = |process: &Path| std::fs::read_link(process.join("ns/pid")).ok();
    let ours = namespace(&root.join("self"));
    let is_ours = |process: &Path| {
        std::fs::metadata(process).is_ok_and(|found| found.uid() == user)
            && ours.is_some()
            && namespace(process) == ours
    };
    let mut buffer = Vec::new();
    let mut maker = |process: &Path| {
        let environment = read_into(&process.join("environ"), &mut buffer)?;
        maker_in(environment, variable)
    };
    let leftover = |pid: i32| {
        let process = root.join(pid.to_string());
        // Hardly any process has a cookie, so this comes first: the scan reads one file of each.
        maker(&process)?;
        let about = stat(root, pid).filter(|stat| !stat.exited)?;
        // Again, in case the number belongs to another process by now.
        let maker = maker(&process).filter(|_| is_ours(&process))?;
        let is_gone =
            stat(root, maker.pid).is_none_or(|stat| stat.exited || stat.started != maker.started);
        is_gone.then(|| about.id(pid))
    };
    pids(root).filter_map(leftover).collect()
}

/// The process that made the last cookie in an environment.
#[cfg(target_os = "linux")]
fn maker_in(environment: &[u8], variable: &str) -> Option<ProcessId> {
    memchr::memmem::find(environment, variable.as_bytes())?;
    let cookies = environment.split(|byte| *byte == 0).find_map(|entry| {
        let value = entry
            .strip_prefix(variable.as_bytes())?
            .strip_prefix(b"=")?;
        std::str::from_utf8(value).ok()
    })?;
    maker_of(cookies.rsplit(',').next()?)
}

/// Reads a file whose size is not known, with as few calls as possible, into a buffer that is used
/// again. `None` if it cannot be read.
#[cfg(target_os = "linux")]
fn read_into<'b>(path: &Path, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
    use std::io::{ErrorKind, Read as _};

    const FIRST: usize = 16 * 1024;
    let mut file = std::fs::File::open(path).ok()?;
    let mut length = 0;
    loop {
        if length == buffer.len() {
            buffer.resize(FIRST.max(2 * length), 0);
        }
        match file.read(&mut buffer[length..]) {
            Ok(0) => return Some(&buffer[..length]),
            Ok(read) => length += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// The process that made a cookie, `NUMBER-START-TIME-COUNT`.
#[cfg(target_os = "linux")]
fn maker_of(cookie: &str) -> Option<ProcessId> {
    let mut parts = cookie.split('-');
    let (pid, started) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    // A cookie of an older version has one part less, and names no start.
    (parts.count() == 2 && started > 0).then_some(ProcessId { pid, started })
}

/// Returns true if a process refers to the folder or has the cookie, and nothing if it shows no
/// environment and no arguments yet.
#[cfg(target_os = "linux")]
fn refers(process: &Path, folder: &Path, cookie: &str) -> Option<bool> {
    use std::os::unix::ffi::OsStrExt as _;

    let path = folder.as_os_str().as_bytes();
    if std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder)) {
        return Some(true);
    }
    let arguments = std::fs::read(process.join("cmdline")).unwrap_or_default();
    let environment = std::fs::read(process.join("environ")).unwrap_or_default();
    if contains_path(&arguments, path) || contains_path(&environment, path) {
        return Some(true);
    }
    // As a whole: the cookie of the first run is a prefix of that of the tenth.
    if cookies(&environment).any(|it| it == cookie) {
        return Some(true);
    }
    (!arguments.is_empty()).then_some(false)
}

/// Returns true if a path is in the bytes, not only as the beginning of another name.
#[cfg(target_os = "linux")]
fn contains_path(bytes: &[u8], path: &[u8]) -> bool {
    let continues = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    !path.is_empty()
        && bytes.windows(path.len()).enumerate().any(|(at, window)| {
            window == path && !bytes.get(at + path.len()).is_some_and(continues)
        })
}

/// Returns true if an ancestor matches. Kernel threads and the first process have none.
#[cfg(target_os = "linux")]
fn has_ancestor(table: &BTreeMap<i32, Stat>, pid: i32, matches: impl Fn(i32) -> bool) -> bool {
    let mut pid = pid;
    // A table that changed while it was read may have a loop.
    for _ in 0..1000 {
        match table.get(&pid) {
            Some(stat) if stat.parent > 0 && stat.parent != pid => pid = stat.parent,
            _ => return false,
        }
        if matches(pid) {
            return true;
        }
    }
    false
}

/// The entry of a process in the table.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Stat {
    parent: i32,
    started: u64,
    exited: bool,
}

#[cfg(target_os = "linux")]
impl Stat {
    fn id(&self, pid: i32) -> ProcessId {
        ProcessId {
            pid,
            started: self.started,
        }
    }
}

/// The table with the processes to inspect, and perhaps others.
#[cfg(target_os = "linux")]
fn table_among(root: &Path, ourselves: i32, among: &Among) -> BTreeMap<i32, Stat> {
    let found = match among {
        Among::Orphans(others) => orphans(root, ourselves, others),
        Among::Everything | Among::Descendants => None,
    };
    found.unwrap_or_else(|| table_of_all(root))
}

#[cfg(target_os = "linux")]
fn table_of_all(root: &Path) -> BTreeMap<i32, Stat> {
    pids(root)
        .filter_map(|pid| Some((pid, stat(root, pid)?)))
        .collect()
}

/// The numbers of all processes.
#[cfg(target_os = "linux")]
fn pids(root: &Path) -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(target_os = "linux")]
fn stat(root: &Path, pid: i32) -> Option<Stat> {
    use std::io::Read as _;

    // The kernel gives the whole file in one read: every scan reads it of every process.
    let mut bytes = [0; MAX_STAT_BYTES];
    let mut file = std::fs::File::open(root.join(pid.to_string()).join("stat")).ok()?;
    let read = file.read(&mut bytes).ok()?;
    // The name in parentheses may hold anything; the fields after it are state, parent, …, and the
    // time of the start as the twentieth.
    let end = bytes[..read].iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(&bytes[end + 1..read]).ok()?;
    let mut fields = fields.split_ascii_whitespace();
    Some(Stat {
        exited: matches!(fields.next()?, "Z" | "X" | "x"),
        parent: fields.next()?.parse().ok()?,
        started: fields.nth(17)?.parse().ok()?,
    })
}

/// More than the longest entry of a process: a name of at most 64 bytes and 51 numbers.
#[cfg(target_os = "linux")]
const MAX_STAT_BYTES: usize = 2048;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    /// A stand-in for `/proc`.
    struct FakeProc(tempfile::TempDir);

    impl FakeProc {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn process(&self, pid: i32, parent: i32, state: &str, arguments: &str, environment: &str) {
            let folder = self.0.path().join(pid.to_string());
            std::fs::create_dir_all(&folder).unwrap();
            let zeros = "0 ".repeat(17);
            let stat = format!("{pid} (a) b) {state} {parent} {zeros}{} 0 0", pid + 1000);
            std::fs::write(folder.join("stat"), stat).unwrap();
            std::fs::write(folder.join("cmdline"), arguments).unwrap();
            std::fs::write(folder.join("environ"), environment).unwrap();
        }

        fn find(&self, known: &[i32]) -> (Vec<i32>, bool) {
            let known = known
                .iter()
                .map(|pid| ProcessId {
                    pid: *pid,
                    started: u64::try_from(pid + 1000).unwrap(),
                })
                .collect();
            self.find_among(&known, &Among::Descendants)
        }

        fn find_among(&self, known: &BTreeSet<ProcessId>, among: &Among) -> (Vec<i32>, bool) {
            let found = find(self.0.path(), Path::new("/tmp/room1"), "c-1", known, among);
            let pids = found.processes.iter().map(|id| id.pid).collect();
            (pids, found.unclear)
        }

        /// The list of the children of a thread.
        fn children(&self, pid: i32, thread: i32, children: &[i32]) {
            let folder = self.0.path().join(format!("{pid}/task/{thread}"));
            std::fs::create_dir_all(&folder).unwrap();
            let list: Vec<String> = children.iter().map(|child| format!("{child} ")).collect();
            std::fs::write(folder.join("children"), list.concat()).unwrap();
        }
    }

    #[test]
    fn marks_ancestors_and_earlier_scans_find_processes() {
        let ourselves = rustix::process::getpid().as_raw_nonzero().get();
        let base = ourselves + 10;
        let proc = FakeProc::new();
        proc.process(ourselves, 1, "S", "mcptest", "HOME=/tmp/room1/home");
        proc.process(
            base,
            ourselves,
            "S",
            "server\0",
            "HOME=/tmp/room1/home\0A=b",
        );
        proc.process(base + 1, base, "S", "helper\0", "A=b");
        proc.process(base + 2, base + 1, "S", "grandchild\0", "A=b");
        proc.process(base + 3, ourselves, "S", "sh\0/tmp/room1/tmp/x\0", "");
        proc.process(
            base + 4,
            ourselves,
            "S",
            "cookie\0",
            "MCPTEST_SESSION=o-1,c-1",
        );
        proc.process(base + 5, ourselves, "S", "other\0", "HOME=/tmp/room2/home");
        proc.process(base + 6, ourselves, "Z", "", "");
        proc.process(
            base + 8,
            ourselves,
            "S",
            "later\0",
            "HOME=/tmp/room11/home\0MCPTEST_SESSION=o-1,c-11",
        );
        proc.process(base + 7, 1, "S", "x\0/tmp/room1\0", "");
        let expected: Vec<i32> = (0..5).map(|n| base + n).collect();
        assert_eq!(proc.find(&[]), (expected, false));
        let with_known = proc.find(&[base + 5]).0;
        assert!(with_known.contains(&(base + 5)));
    }

    #[test]
    fn an_orphan_without_a_new_parent_yet_may_be_ours() {
        let ourselves = rustix::process::getpid().as_raw_nonzero().get();
        let proc = FakeProc::new();
        proc.process(1, 0, "S", "init\0", "");
        proc.process(ourselves, 1, "S", "mcptest\0", "");
        proc.process(ourselves + 10, ourselves + 9, "S", "orphan\0", "");
        proc.process(ourselves + 11, ourselves + 10, "S", "child\0", "");
        proc.process(ourselves + 12, 1, "S", "foreign\0", "");
        let ours = numbers(proc.0.path(), &Among::Descendants);
        assert_eq!(ours, [ourselves + 10, ourselves + 11].into());
        assert_eq!(numbers(proc.0.path(), &Among::Everything).len(), 5);
        // To be killed, it must be ours beyond doubt.
        assert_eq!(live_descendants(proc.0.path()), []);
    }

    #[test]
    fn orphans_are_found_without_the_processes_of_others() {
        let ourselves = rustix::process::getpid().as_raw_nonzero().get();
        let base = ourselves + 10;
        let proc = FakeProc::new();
        let marked = "HOME=/tmp/room1/home";
        proc.process(ourselves, 1, "S", "mcptest\0", "");
        for (pid, parent) in [
            (base, ourselves),
            (base + 1, base),
            (base + 2, ourselves),
            (base + 3, base + 2),
        ] {
            proc.process(pid, parent, "S", "x\0", marked);
        }
        let others = Among::Orphans([base].into());
        // No lists of children: everything is inspected.
        assert_eq!(proc.find_among(&BTreeSet::new(), &others).0.len(), 4);
        proc.children(ourselves, ourselves, &[base]);
        proc.children(ourselves, ourselves + 1, &[base + 2]);
        proc.children(base, base, &[base + 1]);
        proc.children(base + 2, base + 2, &[base + 3]);
        let ours = proc.find_among(&BTreeSet::new(), &others);
        assert_eq!(ours, (vec![base + 2, base + 3], false));
        assert_eq!(numbers(proc.0.path(), &others), [base + 2, base + 3].into());
        let all = Among::Orphans([base, base + 2].into());
        assert_eq!(proc.find_among(&BTreeSet::new(), &all), (vec![], false));
    }

    #[test]
    fn the_system_lists_a_child_of_ours() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let ourselves = rustix::process::getpid().as_raw_nonzero().get();
        let listed = children(Path::new("/proc"), ourselves);
        child.kill().unwrap();
        child.wait().unwrap();
        // Some kernels are built without these lists.
        assert!(listed.is_none_or(|listed| listed.contains(&pid)));
    }

    #[test]
    fn only_processes_whose_maker_is_gone_are_leftovers() {
        let proc = FakeProc::new();
        for pid in [10, 11, 12, 13, 14, 15, 16, 17] {
            std::fs::create_dir_all(proc.0.path().join(format!("{pid}/ns"))).unwrap();
            let namespace = if pid == 15 { "pid:[2]" } else { "pid:[1]" };
            let link = proc.0.path().join(format!("{pid}/ns/pid"));
            std::os::unix::fs::symlink(namespace, link).unwrap();
        }
        std::fs::create_dir_all(proc.0.path().join("self/ns")).unwrap();
        std::os::unix::fs::symlink("pid:[1]", proc.0.path().join("self/ns/pid")).unwrap();
        let long = format!("PADDING={}\0", "x".repeat(40_000));
        let marked = |cookie: &str| format!("{long}A=b\0MCPTEST_SESSION={cookie}\0C=d\0");
        proc.process(10, 1, "S", "mcptest\0", &long);
        // Made by a live process, by one that is gone, by one whose number was used again.
        proc.process(11, 10, "S", "a\0", &marked("10-1010-5-1"));
        proc.process(12, 1, "S", "b\0", &marked("99-1099-5-1"));
        proc.process(13, 1, "S", "c\0", &marked("10-1010-5-1,10-7-5-1"));
        proc.process(14, 1, "Z", "", &marked("99-1099-5-1"));
        proc.process(15, 1, "S", "d\0", &marked("99-1099-5-1"));
        proc.process(16, 1, "S", "e\0", "A=MCPTEST_SESSION=99-1099-5-1\0");
        proc.process(17, 1, "S", "f\0", &marked("99-1"));
        let found = leftovers(proc.0.path(), COOKIE_VARIABLE);
        let mut pids: Vec<i32> = found.iter().map(|id| id.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [12, 13]);
    }

    #[test]
    fn a_process_in_the_middle_of_exec_is_unclear() {
        let ourselves = rustix::process::getpid().as_raw_nonzero().get();
        let proc = FakeProc::new();
        proc.process(ourselves, 1, "S", "mcptest", "");
        proc.process(ourselves + 10, ourselves, "R", "", "");
        assert_eq!(proc.find(&[]), (Vec::new(), true));
    }
}
