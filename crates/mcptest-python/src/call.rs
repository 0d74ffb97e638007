//! Calls from Python into the library.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;

use crate::errors::Failure;

/// Does work without the interpreter's lock. A panic becomes `mcptest.InternalError`.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    // What the work has changed is dropped with it, or is not used again.
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    match done {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(failure)) => Err(failure.into_exception(py)),
        Err(panic) => {
            let message = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned());
            Err(Failure::Panic(message.unwrap_or_default()).into_exception(py))
        }
    }
}
