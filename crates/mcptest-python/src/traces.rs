//! Traces that Python code has in memory, as a stream of JSON Lines.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyString, PyTuple};

/// The number of bytes that are taken from Python in one step.
const CHUNK: usize = 1 << 20;

/// A reader of the rows that a Python iterator gives, one line for each.
///
/// An item is a row (`str` or `bytes`), or the buffers of an Arrow array of strings. A line end in
/// a row becomes a space, which JSON treats alike, so that line N is row N. A missing row becomes
/// an empty one, which is counted as broken.
///
/// The lock of the interpreter is taken once for each megabyte.
pub(crate) struct Rows {
    iterator: Option<Py<PyIterator>>,
    buffer: Vec<u8>,
    place: usize,
    raised: Raised,
}

/// The exception that ended the rows.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// Takes the exception.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, error: PyErr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

impl Rows {
    /// The rows of an iterator.
    pub fn new(iterator: Py<PyIterator>) -> Self {
        Self {
            iterator: Some(iterator),
            buffer: Vec::new(),
            place: 0,
            raised: Raised::default(),
        }
    }

    /// The exception that ends the rows, if there will be one.
    pub fn raised(&self) -> Raised {
        self.raised.clone()
    }

    /// Takes the next rows from Python.
    fn fill(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(iterator) = &self.iterator else {
            return Ok(());
        };
        // Ctrl-C ends a long job.
        py.check_signals()?;
        let mut rows = iterator.bind(py).clone();
        while self.buffer.len() < CHUNK {
            match rows.next().transpose()? {
                Some(item) => push_item(&item, &mut self.buffer)?,
                None => {
                    self.iterator = None;
                    break;
                }
            }
        }
        Ok(())
    }
}

impl Read for Rows {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.place == self.buffer.len() {
            self.buffer.clear();
            self.place = 0;
            if let Err(error) = Python::attach(|py| self.fill(py)) {
                self.iterator = None;
                self.raised.set(error);
                return Err(io::Error::other(
                    "the iterator of traces raised an exception",
                ));
            }
        }
        let left = &self.buffer[self.place..];
        let length = left.len().min(out.len());
        out[..length].copy_from_slice(&left[..length]);
        self.place += length;
        Ok(length)
    }
}

fn push_item(item: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<()> {
    if let Ok(text) = item.cast::<PyString>() {
        push_row(text.to_str()?.as_bytes(), out);
    } else if let Ok(bytes) = item.cast::<PyBytes>() {
        push_row(bytes.as_bytes(), out);
    } else if let Ok(array) = item.cast::<PyTuple>() {
        push_array(array, out)?;
    } else {
        let kind = item.get_type().name()?;
        let message = format!("a trace is a dict, str or bytes, not {kind}");
        return Err(PyTypeError::new_err(message));
    }
    Ok(())
}

/// Appends a row as one line.
fn push_row(row: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(row);
    for end in memchr::memchr_iter(b'\n', row) {
        out[start + end] = b' ';
    }
    out.push(b'\n');
}

/// Appends the strings of an Arrow array: `(data, offsets, width, validity, shift, length)`.
/// `offsets` are little-endian integers of `width` bytes, of which the first one is the start of
/// `data`; the bits of `validity` begin at `shift`.
fn push_array(array: &Bound<'_, PyTuple>, out: &mut Vec<u8>) -> PyResult<()> {
    type Buffers<'py> = (
        Bound<'py, PyBytes>,
        Bound<'py, PyBytes>,
        usize,
        Option<Bound<'py, PyBytes>>,
        usize,
        usize,
    );
    let (data, offsets, width, validity, shift, length): Buffers<'_> = array.extract()?;
    let array = StringArray {
        data: data.as_bytes(),
        offsets: offsets.as_bytes(),
        width,
        validity: validity.as_ref().map(|bits| bits.as_bytes()),
        shift,
    };
    for place in 0..length {
        let row = array.row(place).ok_or_else(|| {
            PyTypeError::new_err("the buffers of the Arrow array do not fit together")
        })?;
        push_row(row, out);
    }
    Ok(())
}

struct StringArray<'a> {
    data: &'a [u8],
    offsets: &'a [u8],
    width: usize,
    validity: Option<&'a [u8]>,
    shift: usize,
}

impl<'a> StringArray<'a> {
    /// A row; an empty one if it is missing.
    fn row(&self, place: usize) -> Option<&'a [u8]> {
        if let Some(bits) = self.validity {
            let bit = self.shift.checked_add(place)?;
            if (bits.get(bit / 8)? >> (bit % 8)) & 1 == 0 {
                return Some(&[]);
            }
        }
        let start = self.offset(0)?;
        let from = self.offset(place)?.checked_sub(start)?;
        let to = self.offset(place + 1)?.checked_sub(start)?;
        self.data.get(from..to)
    }

    fn offset(&self, place: usize) -> Option<usize> {
        let at = place.checked_mul(self.width)?;
        let bytes = self.offsets.get(at..at.checked_add(self.width)?)?;
        match self.width {
            4 => usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok(),
            8 => usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok(),
            _ => None,
        }
    }
}
