//! The extension module of the Python package `mcptest`.
//!
//! This crate converts between Python and the library crates; it judges nothing itself. The Python
//! sources in `python/mcptest` wrap it: they check arguments, and make plain objects and tables of
//! reports. Work on traces runs without the interpreter's lock, and a panic becomes an exception
//! (`call`).

mod call;
mod errors;
mod gates;
mod scoring;
mod suite;
mod traces;

use pyo3::prelude::*;

/// The extension module of `mcptest`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::gates::gates;
    #[pymodule_export]
    use super::scoring::{merge, score, score_partial};
    #[pymodule_export]
    use super::suite::Suite;

    use super::{Bound, PyModule, PyModuleMethods as _, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("VERSION", env!("CARGO_PKG_VERSION"))
    }
}
