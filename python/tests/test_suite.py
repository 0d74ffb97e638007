"""Suites, and taking them elsewhere."""

from __future__ import annotations

import pickle
from pathlib import Path

import mcptest
import pytest

from conftest import SUITE


def test_a_suite_shows_its_tests() -> None:
    suite = mcptest.Suite.parse(SUITE)
    assert suite.name == "shop"
    assert suite.tests == ["orders", "refuses"]
    assert repr(suite) == '<mcptest.Suite "shop" with 2 agent tests>'


def test_a_pickled_suite_needs_neither_files_nor_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = tmp_path / "main.yml"
    main.write_text(
        "imports: [parts/more.yml]\n"
        "variables: { tool: '${WANTED_TOOL}' }\n"
        "tests:\n  - name: a\n    golden_path: { calls: ['${tool}'] }\n"
    )
    more = tmp_path / "parts" / "more.yml"
    more.parent.mkdir()
    more.write_text("tests:\n  - name: b\n    tool_edges: { restricted: ['${CONFIG_DIR}'] }\n")
    monkeypatch.setenv("WANTED_TOOL", "search")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abcdefghijklmnopqrstuvwxyz")
    monkeypatch.chdir(tmp_path)
    suite = mcptest.Suite.load("main.yml")
    traces = [{"test": "a", "tool_calls": [{"name": "search"}]}, {"test": "b", "tool_calls": []}]
    report = mcptest.score(suite, traces)

    pickled = pickle.dumps(suite)
    assert b"sk-abcdefghijklmnopqrstuvwxyz" not in pickled
    main.unlink()
    more.unlink()
    monkeypatch.delenv("WANTED_TOOL")
    monkeypatch.chdir("/")
    again: mcptest.Suite = pickle.loads(pickled)
    assert again.tests == suite.tests == ["b", "a"]
    assert mcptest.score(again, traces) == report
    # A partial result of one is a partial result of the other.
    assert mcptest.merge([mcptest.score_partial(again, traces)]) == report


def test_warnings_have_places() -> None:
    suite = mcptest.Suite.parse(
        "tests:\n  - name: a\n    golden_path: { calls: [search, order, search] }\n"
    )
    [warning] = suite.warnings
    assert (warning.severity, warning.line) == ("warning", 3)
