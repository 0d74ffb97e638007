"""Scoring: every form of input gives the report of the program."""

from __future__ import annotations

import gzip
import json
import threading
from pathlib import Path
from typing import Any

import mcptest
import pyarrow
import pytest

from conftest import SUITE, mcptest as program, trace

Traces = list[dict[str, Any]]


def test_every_form_of_traces_gives_the_report_of_the_program(
    files: tuple[Path, Path], traces: Traces, expected: bytes
) -> None:
    suite, lines = files
    texts = [json.dumps(it) for it in traces]
    forms: dict[str, Any] = {
        "dicts": traces,
        "generator": (it for it in traces),
        "str": texts,
        "indented": [json.dumps(it, indent=2) for it in traces],
        "utf-8": [json.dumps(it, ensure_ascii=False) for it in traces],
        "bytes": [text.encode() for text in texts],
        "path": str(lines),
        "pathlib": lines,
        "paths": [lines],
        "content": lines.read_bytes(),
        "arrow": pyarrow.array(texts),
        "large arrow": pyarrow.array(texts, pyarrow.large_string()),
        "arrow of bytes": pyarrow.array([text.encode() for text in texts]),
        "views": pyarrow.array(texts, pyarrow.string_view()),
        "dictionary": pyarrow.array(texts).dictionary_encode(),
        "chunks": pyarrow.chunked_array([texts[:7], [], texts[7:]]),
        "slices": pyarrow.chunked_array(
            [
                pyarrow.array(["x", *texts[:9], None])[1:10],
                pyarrow.array([None, None, *texts[9:]])[2:],
            ]
        ),
    }
    for form, given in forms.items():
        report = mcptest.score(suite, given)
        assert report.to_json() == expected, form


def test_every_form_of_suites_is_the_same_suite(
    files: tuple[Path, Path], traces: Traces, expected: bytes
) -> None:
    suite, _ = files
    for form in (suite, str(suite), SUITE, mcptest.Suite.load(suite), mcptest.Suite.parse(SUITE)):
        assert mcptest.score(form, traces).to_json() == expected


def test_the_number_of_threads_changes_nothing(
    files: tuple[Path, Path], traces: Traces, expected: bytes
) -> None:
    for threads in (1, 2, 8):
        assert mcptest.score(files[0], traces, threads=threads).to_json() == expected


def test_runs_gives_the_whole_report(files: tuple[Path, Path], traces: Traces) -> None:
    suite, lines = files
    done = program("score", suite, "--trace", lines, "--reporter", "json")
    report = mcptest.score(suite, traces, runs=True)
    assert report.to_json() == done.stdout
    orders = report.test("orders", model="model-0")
    assert [run.index for run in orders.runs] == list(range(1, len(orders.runs) + 1))
    assert orders.runs[0].trace["tool_calls"][0]["server"] == "shop"
    assert {run.verdict for run in orders.runs} == {"pass", "fail"}


def test_compressed_files_and_folders(
    tmp_path: Path, files: tuple[Path, Path], expected: bytes
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "traces.jsonl.gz").write_bytes(gzip.compress(files[1].read_bytes()))
    assert mcptest.score(files[0], folder).to_json() == expected


def test_a_test_can_be_named(files: tuple[Path, Path]) -> None:
    unnamed = {"tool_calls": [{"name": "order"}]}
    report = mcptest.score(files[0], [unnamed], test="refuses")
    assert report.test("refuses").passed
    with pytest.raises(mcptest.TraceError, match="no agent test is called `other`"):
        mcptest.score(files[0], [unnamed], test="other")


def test_objects_have_the_figures_of_the_report(files: tuple[Path, Path], traces: Traces) -> None:
    report = mcptest.score(files[0], traces)
    whole = report.to_dict()
    assert report.verdict == whole["verdict"]
    assert report.exit_code == whole["exit_code"]
    assert not report.passed
    orders = report.test("orders", model="model-1")
    gate = orders.gate("equal_function_sets")
    assert gate["f1"] == gate["tool_selection.f1"] == gate.values["tool_selection.f1"]
    assert gate.assertions[0].target == "tool_selection.f1"
    assert gate.assertions[0].matcher == {">=": 20}
    assert [it.block for it in orders.gates] == [it["block"] for it in whole["tests"][1]["gates"]]
    assert orders.runs == []
    with pytest.raises(KeyError, match="several entries"):
        report.test("orders")
    with pytest.raises(KeyError, match="no gate 'recovery'"):
        orders.gate("recovery")
    with pytest.raises(KeyError, match="no figure 'f2'"):
        gate["f2"]


def test_the_lock_is_released(files: tuple[Path, Path]) -> None:
    """Another thread runs while traces are scored: with the lock held, it could not."""
    text = json.dumps(trace(1))
    rows = pyarrow.array([text] * 20_000)
    suite = mcptest.Suite.load(files[0])
    scoring, done = threading.Event(), threading.Event()
    turns = 0

    def work() -> None:
        scoring.set()
        mcptest.score(suite, rows, threads=1)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    scoring.wait()
    while not done.is_set():
        turns += 1
    thread.join()
    # A call that held the lock would leave this loop a few turns at its start and end.
    assert turns > 1000


def test_no_traces_are_no_evidence(files: tuple[Path, Path]) -> None:
    for none in ([], iter([]), pyarrow.array([], pyarrow.string()), b""):
        report = mcptest.score(files[0], none)
        assert report.verdict == "no_evidence"
        assert report.exit_code == 3
