//! Children that end with their parent.

use std::process::Command;

/// Makes a child process end by SIGKILL when the thread that starts it ends, however that happens.
/// Linux only; elsewhere it does nothing.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "code that runs between fork and exec; see the comment below"
)]
pub fn end_with_parent(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;

    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

    let parent = getpid();
    let in_child = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before the signal was set.
        if getppid() == Some(parent) {
            Ok(())
        } else {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
    };
    // SAFETY: the closure makes two system calls, and neither allocates nor locks anything.
    unsafe {
        command.pre_exec(in_child);
    }
}

/// Does nothing: only Linux has such a signal.
#[cfg(not(target_os = "linux"))]
pub fn end_with_parent(_: &mut Command) {}
