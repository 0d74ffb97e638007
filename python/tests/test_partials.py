"""Partial results: any split, merged in any order, is the whole."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import mcptest
import pytest

from conftest import SUITE, mcptest as program

Traces = list[dict[str, Any]]


@pytest.mark.parametrize("parts", [1, 2, 7, 64])
def test_parts_make_the_whole(parts: int, traces: Traces, expected: bytes) -> None:
    suite = mcptest.Suite.parse(SUITE)
    bounds = [len(traces) * at // parts for at in range(parts + 1)]
    partials = [
        mcptest.score_partial(suite, traces[start:end], part=(at + 1, parts))
        for at, (start, end) in enumerate(zip(bounds, bounds[1:]))
    ]
    for seed in range(3):
        random.Random(seed).shuffle(partials)
        assert mcptest.merge(partials).to_json() == expected


def test_names_give_the_order_too(traces: Traces, expected: bytes) -> None:
    partials = [
        mcptest.score_partial(SUITE, traces[at * 5 : at * 5 + 5], name=f"part {at}")
        for at in range(12)
    ]
    partials.sort()
    assert mcptest.merge(partials).to_json() == expected


def test_an_order_that_is_not_known_is_an_error(traces: Traces) -> None:
    partials = [mcptest.score_partial(SUITE, some) for some in (traces[:30], traces[30:])]
    with pytest.raises(mcptest.PartialError, match="order of the runs is not known"):
        mcptest.merge(partials)
    missing = mcptest.score_partial(SUITE, traces, part=(1, 2))
    with pytest.raises(mcptest.PartialError, match="part 2 of 2 is missing"):
        mcptest.merge([missing])
    with pytest.raises(ValueError, match="part"):
        mcptest.score_partial(SUITE, traces, part=(3, 2))


def test_the_program_reads_them_too(
    tmp_path: Path, files: tuple[Path, Path], traces: Traces, expected: bytes
) -> None:
    suite, _ = files
    names = []
    for part, some in enumerate((traces[:20], traces[20:])):
        name = tmp_path / f"{part}.partial"
        name.write_bytes(mcptest.score_partial(suite, some, part=(part + 1, 2)))
        names.append(str(name))
    out = tmp_path / "merged.json"
    done = program("report", "merge", *reversed(names), "--output", out)
    assert done.returncode == mcptest.score(suite, traces).exit_code, done.stderr
    assert out.read_bytes() == expected


def test_what_does_not_fit_is_refused(traces: Traces) -> None:
    partial = mcptest.score_partial(SUITE, traces, name="part 1")
    other = SUITE.replace("min_selection_rate: 0.5", "min_selection_rate: 0.6")
    with pytest.raises(mcptest.PartialError):
        mcptest.merge([partial, mcptest.score_partial(other, traces, name="part 2")])
    for damaged in (b"", b"{}", partial[:-20], partial[: len(partial) // 2], b"\x00" * 100):
        with pytest.raises(mcptest.PartialError):
            mcptest.merge([damaged])
