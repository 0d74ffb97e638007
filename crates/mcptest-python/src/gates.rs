//! The registry of gates, for the functions of `mcptest.gates`.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Lists the gates: block, summary, and the targets with their units and descriptions.
#[pyfunction]
pub(crate) fn gates(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for gate in mcptest_gates::GATES {
        let targets = PyList::empty(py);
        for target in gate.targets {
            let entry = PyDict::new(py);
            entry.set_item("name", target.name)?;
            entry.set_item("unit", target.unit.describe())?;
            entry.set_item("doc", target.doc)?;
            targets.append(entry)?;
        }
        let entry = PyDict::new(py);
        entry.set_item("block", gate.block)?;
        entry.set_item("summary", gate.summary)?;
        entry.set_item("targets", targets)?;
        list.append(entry)?;
    }
    Ok(list)
}
