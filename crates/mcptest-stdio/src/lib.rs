//! Parts that need unsafe code: the state of standard output when the process started
//! ([`was_closed`]), and children that end with it ([`end_with_parent`]).
//!
//! Before `main`, Rust's runtime opens `/dev/null` in place of a closed standard descriptor, and
//! `std::io::stdout()` ignores the error of a descriptor that cannot be written. So a program that
//! was started with `>&-` seems to print its results, and they are lost. After `main` has begun,
//! nothing distinguishes this from `> /dev/null`, which is fine.
//!
//! This crate checks the descriptor before the runtime does, from the list of functions that the
//! system calls before `main`. Being in that list takes an unsafe attribute, and code between fork
//! and exec an unsafe call, so this is a separate crate.

mod parent_death;

pub use parent_death::end_with_parent;

use std::sync::atomic::{AtomicBool, Ordering};

static UNUSABLE: AtomicBool = AtomicBool::new(false);

/// Returns true if standard output was closed, or open only for reading, when the process started.
/// Always false on systems other than Linux and macOS.
#[must_use]
pub fn was_closed() -> bool {
    UNUSABLE.load(Ordering::Relaxed)
}

/// Runs before `main`, so it allocates nothing, starts no thread and cannot panic.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
extern "C" fn inspect() {
    use rustix::fs::{OFlags, fcntl_getfl};

    let usable = fcntl_getfl(rustix::stdio::stdout())
        .is_ok_and(|flags| flags & OFlags::RWMODE != OFlags::RDONLY);
    UNUSABLE.store(!usable, Ordering::Relaxed);
}

/// The entry in the list of functions.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
#[expect(
    unsafe_code,
    reason = "the section has pointers to functions of this type, which `inspect` is"
)]
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(
    target_vendor = "apple",
    unsafe(link_section = "__DATA,__mod_init_func")
)]
static INSPECT: extern "C" fn() = inspect;
