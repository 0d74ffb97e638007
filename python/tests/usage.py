"""Typed use of the package, for type checkers: what is not marked must be right, and what is
marked must be wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import mcptest
import mcptest.spark
from mcptest import gates

suite: mcptest.Suite = mcptest.Suite.load("suite.yml")
report: mcptest.Report = mcptest.score(suite, Path("traces.jsonl"), test="a", threads=2)
verdict: Literal["pass", "fail", "no_evidence", "error"] = report.verdict
gate: mcptest.GateResult = report.tests[0].gate("golden_path")
figure: object = gates.golden_path([{"tool_calls": []}], {"calls": ["a"]})["passed"]
partial: bytes = mcptest.score_partial("suite.yml", [b"{}"], part=(3, 8))
merged: mcptest.Report = mcptest.merge([partial])
names: list[str] = suite.tests
line: int | None = mcptest.TraceError("x").line

mcptest.score(suite, 7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
report.to_arrow("other")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
gates.unknown([], {})  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
