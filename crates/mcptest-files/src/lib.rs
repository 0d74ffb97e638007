//! Files that are replaced as a whole or not at all.
//!
//! A report, a snapshot, a cassette or a recorded trace is read by other programs, and mcptest may
//! be killed at any moment. [`AtomicFile`] writes into a temporary file in the same folder and
//! moves it over the old one when everything is written: a reader sees the old content or the new
//! one, never a part. File and folder are synced, so that this holds after a crash of the machine
//! too.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// Number of random characters in the name of a temporary file.
const RANDOM_CHARACTERS: usize = 6;
const SUFFIX: &str = ".tmp";

/// A file that is being written. Nothing is changed until [`commit`](Self::commit): a value that is
/// dropped before leaves the old file as it was.
///
/// A path that names a device, a pipe or a symbolic link is written in place: moving a file over
/// `/dev/stdout` would replace the link for every other program.
#[derive(Debug)]
pub struct AtomicFile(Kind);

#[derive(Debug)]
enum Kind {
    Replaced {
        path: PathBuf,
        temporary: BufWriter<NamedTempFile>,
    },
    InPlace(BufWriter<File>),
}

impl AtomicFile {
    /// Opens a file for writing. Its folder must exist.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        // An ordinary file has the permissions of one (the process's umask applies).
        Self::create_with(path, 0o666)
    }

    /// Opens a file for writing that only the user may read. Its folder must exist.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    pub fn create_private(path: &Path) -> io::Result<Self> {
        Self::create_with(path, 0o600)
    }

    #[cfg_attr(not(unix), expect(unused_variables, reason = "there are no modes"))]
    fn create_with(path: &Path, mode: u32) -> io::Result<Self> {
        if !is_replaceable(path) {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .open(path)?;
            return Ok(Self(Kind::InPlace(BufWriter::new(file))));
        }
        let mut builder = Builder::new();
        let prefix = prefix(path);
        builder
            .prefix(&prefix)
            .suffix(SUFFIX)
            .rand_bytes(RANDOM_CHARACTERS);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
        let temporary = loop {
            let temporary = builder.tempfile_in(folder_of(path))?;
            if is_locked(temporary.as_file())? {
                break temporary;
            }
        };
        Ok(Self(Kind::Replaced {
            path: path.to_owned(),
            temporary: BufWriter::new(temporary),
        }))
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// The file cannot be written to the end, synced or moved. The old file is then unchanged,
    /// unless the path is written in place.
    pub fn commit(self) -> io::Result<()> {
        match self.place(true)? {
            Some(path) => sync_folder(&path),
            None => Ok(()),
        }
    }

    /// Moves the file to its place and returns the path, unless it was written in place.
    fn place(self, is_synced: bool) -> io::Result<Option<PathBuf>> {
        match self.0 {
            Kind::InPlace(file) => {
                file.into_inner().map_err(io::Error::from)?;
                Ok(None)
            }
            Kind::Replaced { path, temporary } => {
                let temporary = temporary.into_inner().map_err(io::Error::from)?;
                if is_synced {
                    // The bytes must be on the disk before the name leads to them.
                    temporary.as_file().sync_all()?;
                }
                temporary.persist(&path).map_err(|error| error.error)?;
                Ok(Some(path))
            }
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Replaced { temporary, .. } => temporary.write(bytes),
            Kind::InPlace(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::Replaced { temporary, .. } => temporary.flush(),
            Kind::InPlace(file) => file.flush(),
        }
    }
}

/// Replaces the content of a file as [`AtomicFile`] does.
///
/// # Errors
/// The file cannot be written. The old one is then unchanged.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(content.as_ref())?;
    file.commit()
}

/// Replaces the content of one of very many files as [`AtomicFile`] does, without a sync, which
/// takes more time than everything else: after a crash of the machine, it may be empty.
///
/// # Errors
/// The file cannot be written. The old one is then unchanged.
pub fn write_unsynced(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(content.as_ref())?;
    file.place(false).map(drop)
}

/// Moves a finished file to its final name in the same folder, and syncs the folder. If the final
/// name is not that of an ordinary file, its content is written through, as [`AtomicFile`] does.
///
/// # Errors
/// The file cannot be moved.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    if is_replaceable(to) {
        fs::rename(from, to)?;
        return sync_folder(to);
    }
    let mut target = AtomicFile::create(to)?;
    io::copy(&mut File::open(from)?, &mut target)?;
    target.commit()?;
    fs::remove_file(from)
}

/// Returns true if another file may take the place of this one: it is an ordinary file, or there is
/// none. The path itself is checked, without following links.
fn is_replaceable(path: &Path) -> bool {
    fs::symlink_metadata(path).map_or(true, |found| found.is_file())
}

/// Removes the temporary files that a process which was killed left beside a file. Those of a
/// process that still writes are locked, and stay.
pub fn remove_leftovers(path: &Path) {
    let prefix = prefix(path);
    let entries = fs::read_dir(folder_of(path));
    for entry in entries.into_iter().flatten().flatten() {
        if is_leftover(&entry.file_name().to_string_lossy(), &prefix) {
            // The next attempt may succeed; until then the file only takes space.
            let _ = remove_unlocked(&entry.path());
        }
    }
}

/// Locks a new temporary file against [`remove_leftovers`] of another process; the lock ends with
/// the file or the process. Returns false if the other process was faster and removed the file.
#[cfg(unix)]
fn is_locked(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    // A file system without locks can still be written: no process can lock, and so remove, there.
    let _ = rustix::fs::flock(file, rustix::fs::FlockOperation::LockExclusive);
    Ok(file.metadata()?.nlink() > 0)
}

#[cfg(not(unix))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "the same signature as on systems with locks"
)]
fn is_locked(_: &File) -> io::Result<bool> {
    Ok(true)
}

/// Removes a file unless a process holds its lock.
#[cfg(unix)]
fn remove_unlocked(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
    fs::remove_file(path)
}

/// Removes nothing: without locks, the file may be that of a running process.
#[cfg(not(unix))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "the same signature as on systems with locks"
)]
fn remove_unlocked(_: &Path) -> io::Result<()> {
    Ok(())
}

fn is_leftover(name: &str, prefix: &str) -> bool {
    let random = name
        .strip_prefix(prefix)
        .and_then(|rest| rest.strip_suffix(SUFFIX));
    random.is_some_and(|random| {
        random.len() == RANDOM_CHARACTERS && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// The beginning of the temporary names of a file.
fn prefix(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!(".{name}.")
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Makes sure that the new name is on the disk.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

#[cfg(not(unix))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "the same signature as on systems that can sync folders"
)]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_write_replaces_the_file_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        write(&path, "one").unwrap();
        write(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(names(dir.path()), ["x.json"]);
    }

    #[test]
    fn a_file_that_is_not_committed_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        write(&path, "one").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half of it").unwrap();
        file.flush().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        assert_eq!(names(dir.path()).len(), 2);
        drop(file);
        assert_eq!(names(dir.path()), ["x.json"]);
    }

    #[test]
    fn a_folder_in_the_way_is_an_error_and_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("y.json")).unwrap();
        assert!(write(&dir.path().join("y.json"), "three").is_err());
        assert!(write(&dir.path().join("none/y.json"), "three").is_err());
        assert_eq!(names(dir.path()), ["y.json"]);
    }

    #[test]
    #[cfg(unix)]
    fn a_link_is_written_in_place_and_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        fs::write(&target, "a longer text").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write(&link, "short").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "short");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let finished = dir.path().join("finished");
        fs::write(&finished, "final").unwrap();
        rename(&finished, &link).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "final");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(!finished.exists());
        write(Path::new("/dev/null"), "anything").unwrap();
        assert!(!fs::symlink_metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    #[cfg(unix)]
    fn a_new_file_has_the_permissions_of_any_other() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let mode = |name: &str| {
            let found = fs::metadata(dir.path().join(name)).unwrap();
            found.permissions().mode() & 0o777
        };
        fs::write(dir.path().join("plain"), "").unwrap();
        write(&dir.path().join("atomic"), "").unwrap();
        assert_eq!(mode("atomic"), mode("plain"));
    }

    #[test]
    fn issue_10_a_file_that_is_being_written_is_not_a_leftover() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        remove_leftovers(&path);
        assert_eq!(names(dir.path()).len(), 1);
        file.write_all(b" and half").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "half and half");
        assert_eq!(names(dir.path()), ["x.json"]);
    }

    /// Writers and sweepers at the same time: no writer may fail.
    #[test]
    #[cfg(unix)]
    fn sweeps_and_writes_do_not_disturb_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..200).for_each(|_| write(&path, "all of it").unwrap()));
                scope.spawn(|| (0..400).for_each(|_| remove_leftovers(&path)));
            }
        });
        assert_eq!(names(dir.path()), ["x.json"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "all of it");
    }

    #[test]
    #[cfg(unix)]
    fn leftovers_of_one_file_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let kept = [".x.json.mine.tmp", ".xy.json.aB3d5F.tmp", "x.json"];
        for name in kept.iter().chain(&[".x.json.aB3d5F.tmp"]) {
            fs::write(dir.path().join(name), "").unwrap();
        }
        // What a killed process leaves has a name that is recognized.
        let path = dir.path().join("x.json");
        let Kind::Replaced { temporary, .. } = AtomicFile::create(&path).unwrap().0 else {
            panic!("an ordinary file is replaced");
        };
        temporary.into_inner().unwrap().keep().unwrap();
        remove_leftovers(&path);
        assert_eq!(names(dir.path()), kept);
        rename(&path, &dir.path().join("z.json")).unwrap();
        assert!(names(dir.path()).contains(&"z.json".to_owned()));
    }
}
