"""Errors: types, places, and what they say."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import mcptest
import pytest

from conftest import SUITE, trace


def test_all_problems_of_a_suite_have_places() -> None:
    text = "tests:\n  - name: a\n    golden_pth: {}\n  - nam: b\n"
    with pytest.raises(mcptest.SuiteError) as raised:
        mcptest.Suite.parse(text, name="shop.yml")
    error = raised.value
    assert isinstance(error, mcptest.Error)
    places = [(it.file, it.line, it.column, it.severity) for it in error.problems]
    assert ("shop.yml", 3, 5, "error") in places
    assert {line for _, line, _, _ in places} == {3, 4}
    assert (error.file, error.line) == ("shop.yml", 3)
    assert "golden_path" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert again.problems == error.problems and str(again) == str(error)


def test_a_suite_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(mcptest.SuiteError, match="no such file"):
        mcptest.score(tmp_path / "none.yml", [])


def test_a_broken_row_is_counted_or_raised() -> None:
    rows = [trace(1), '{"tool_calls": [', None, "", trace(2), b"\xff{}", "[1]", "7"]
    report = mcptest.score(SUITE, rows)  # type: ignore[list-item]
    assert report.exit_code != 0
    broken = report.broken_lines
    assert [(it.file, it.line) for it in broken.first] == [
        ("traces", line) for line in (2, 3, 4, 6, 7, 8)
    ]
    assert broken.count == 6
    with pytest.raises(mcptest.TraceError) as raised:
        mcptest.score(SUITE, rows, strict=True)  # type: ignore[list-item]
    assert (raised.value.file, raised.value.line) == ("traces", 2)
    again = pickle.loads(pickle.dumps(raised.value))
    assert (again.file, again.line, str(again)) == ("traces", 2, str(raised.value))


def test_a_trace_without_a_test(tmp_path: Path) -> None:
    with pytest.raises(mcptest.TraceError, match="names the test `other`"):
        mcptest.score(SUITE, [trace(1), trace(2, test="other")])
    with pytest.raises(mcptest.TraceError, match="no such file"):
        mcptest.score(SUITE, tmp_path / "none.jsonl")


def test_an_exception_of_the_caller_comes_back() -> None:
    class Mine(Exception):
        pass

    def rows() -> Any:
        yield trace(1)
        raise Mine("here")

    with pytest.raises(Mine, match="here"):
        mcptest.score(SUITE, rows())
    with pytest.raises(TypeError, match="not float"):
        mcptest.score(SUITE, [1.5])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="pass a list"):
        mcptest.score(SUITE, trace(1))
    with pytest.raises(ValueError, match="JSON compliant"):
        mcptest.score(SUITE, [{"tool_calls": [], "x": float("nan")}])


def test_a_string_in_data_is_never_a_path(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"tool_calls": []}')
    with pytest.raises(mcptest.TraceError) as raised:
        mcptest.score(SUITE, [str(secret)], strict=True)
    assert raised.value.line == 1
