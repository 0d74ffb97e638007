"""Scoring traces with a suite."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Union

from . import _native
from ._native import Suite
from ._report import Report

SuiteLike = Union[Suite, "os.PathLike[str]", str, Mapping[str, Any]]
"""A suite, its path, its YAML text (a string with a line break), or its keys as a dict."""

TraceLike = Union[Mapping[str, Any], str, bytes, "os.PathLike[str]"]
"""A trace as a dict or JSON text, or the path of a file of traces."""

Traces = Union[str, bytes, "os.PathLike[str]", Iterable[TraceLike]]
"""A path (file, folder or pattern), the bytes of a file, or an iterable of traces and paths.

A string is a path where it is the whole argument, and JSON text where it is an item of an
iterable; so data can never name a file. An Arrow array of strings is an iterable too, and is read
without making Python objects of its rows."""

NAME = "traces"
"""The name of rows in messages: `traces:3` is the third row."""


def to_suite(suite: SuiteLike) -> Suite:
    """Loads a suite, if it is not one already."""
    if isinstance(suite, Suite):
        return suite
    if isinstance(suite, Mapping):
        return Suite.parse(json.dumps(suite, indent=2), name="suite.json")
    if isinstance(suite, str) and "\n" in suite:
        return Suite.parse(suite)
    return Suite.load(os.fspath(suite))


def score(
    suite: SuiteLike,
    traces: Traces,
    *,
    test: str | None = None,
    runs: bool = False,
    strict: bool = False,
    threads: int | None = None,
) -> Report:
    """Applies a suite's expectations and gates to traces.

    `test` names the test that all traces belong to; otherwise the `test` field of each trace
    does. With `runs=True` the report has every run with its trace, like `mcptest score`; without
    it is a summary, like `mcptest score --summary`, whose size does not depend on the number of
    traces. With `strict=True` a broken trace raises `TraceError`; without, it is counted in the
    report. `threads` defaults to the number of cores; the report does not depend on it.

    Raises `SuiteError` if the suite is not valid, and `TraceError` if the traces cannot be read
    or belong to no test.
    """
    return Report(
        _native.score(
            to_suite(suite),
            _sources(traces),
            name=NAME,
            test=test,
            summary=not runs,
            strict=strict,
            threads=threads,
        )
    )


def score_partial(
    suite: SuiteLike,
    traces: Traces,
    *,
    part: tuple[int, int] | None = None,
    name: str = NAME,
    test: str | None = None,
    strict: bool = False,
    threads: int | None = None,
) -> bytes:
    """Scores a part of the traces, for `merge`.

    Parts can be scored and merged in any order, on any machine. The order of runs whose `run`
    numbers do not decide it is that of the parts: `part=(3, 8)` is the third of eight, and `merge`
    then wants all eight. Without it, the order is that of the names: of files, and of rows, which
    are called `name` (numbers count by value, so `part 2` is before `part 10`).

    The bytes are those of `mcptest score --partial`.
    """
    return _native.score_partial(
        to_suite(suite),
        _sources(traces),
        name=name,
        part=part,
        test=test,
        strict=strict,
        threads=threads,
    )


def merge(partials: Iterable[bytes]) -> Report:
    """Merges the partial results of all parts, in any order.

    The report is that of `score(suite, traces)` over all traces, byte for byte; partial results
    have the suite in them. Raises `PartialError` if one is damaged or of another version, and if
    they were made with different suites.
    """
    return Report(_native.merge(list(partials)))


def _sources(traces: Traces) -> list[Any]:
    """The traces as paths and iterators of rows, in order."""
    if isinstance(traces, (str, os.PathLike)):
        return [os.fspath(traces)]
    if isinstance(traces, bytes):
        return [traces]
    if isinstance(traces, Mapping):
        raise TypeError("traces is one dict; pass a list of traces")
    arrays = _arrow_arrays(traces)
    if arrays is not None:
        return [arrow_rows(arrays)]
    items = iter(traces)
    # Paths are usually alone or first: they are taken as long as they come.
    paths: list[Any] = []
    for item in items:
        if not isinstance(item, os.PathLike):
            return [*paths, _rows(chain([item], items))]
        paths.append(os.fspath(item))
    return paths or [iter(())]


def _rows(items: Iterable[Any]) -> Iterator[str | bytes]:
    """Traces as JSON text."""
    for item in items:
        if isinstance(item, (str, bytes)):
            yield item
        elif isinstance(item, Mapping):
            yield json.dumps(item, separators=(",", ":"), allow_nan=False)
        elif isinstance(item, os.PathLike):
            raise TypeError("a path is after a trace; pass paths first, or on their own")
        elif item is None:
            yield ""
        else:
            raise TypeError(f"a trace is a dict, str or bytes, not {type(item).__name__}")


def _arrow_arrays(traces: Any) -> Iterable[Any] | None:
    """The arrays of an Arrow column, without an import of pyarrow."""
    if type(traces).__module__.partition(".")[0] != "pyarrow":
        return None
    if hasattr(traces, "chunks"):
        return list(traces.chunks)
    return [traces] if hasattr(traces, "buffers") else None


# The bytes of an Arrow array that are handed over at once.
_CHUNK = 1 << 20

_WIDTHS = {"string": 4, "binary": 4, "large_string": 8, "large_binary": 8}


def arrow_rows(arrays: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """The strings of arrays as buffers, piece by piece."""
    for array in arrays:
        if str(array.type) not in _WIDTHS:
            import pyarrow

            # Views, dictionaries and extension types of strings.
            array = array.cast(pyarrow.large_string())
        rows = max(1, len(array) * _CHUNK // max(1, array.nbytes))
        for start in range(0, len(array), rows):
            yield _buffers(array.slice(start, rows))


def _buffers(array: Any) -> tuple[bytes, bytes, int, bytes | None, int, int]:
    """The parts of an array's buffers that belong to it."""
    width = _WIDTHS[str(array.type)]
    first, length = array.offset, len(array)
    validity, offsets, data = array.buffers()
    ends = offsets.slice(first * width, (length + 1) * width).to_pybytes()
    begin = int.from_bytes(ends[:width], "little")
    size = int.from_bytes(ends[-width:], "little") - begin
    text = data.slice(begin, size).to_pybytes() if size else b""
    if validity is None:
        return text, ends, width, None, 0, length
    bits = validity.slice(first // 8, (first % 8 + length + 7) // 8).to_pybytes()
    return text, ends, width, bits, first % 8, length
