"""Reports as plain objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from . import _tables

if TYPE_CHECKING:
    import pandas
    import pyarrow

Verdict = Literal["pass", "fail", "no_evidence", "error"]
"""The four verdicts."""


@dataclass(frozen=True)
class Assertion:
    """An expectation and the value that it was compared with."""

    target: str
    matcher: Any
    actual: Any
    passed: bool
    default: bool
    """True if the gate sets it, not the suite."""
    reason: str | None = None

    @classmethod
    def _of(cls, json: Mapping[str, Any]) -> Assertion:
        return cls(
            target=json["target"],
            matcher=json["matcher"],
            actual=json["actual"],
            passed=json["passed"],
            default=json["default"],
            reason=json.get("reason"),
        )


@dataclass(frozen=True)
class GateResult:
    """The figures of a gate over the runs of a test, judged."""

    block: str
    verdict: Verdict
    values: dict[str, Any]
    """Every figure by its full name, such as `tool_selection.f1`. `None`: undefined."""
    detail: dict[str, Any]
    assertions: list[Assertion]
    summary: str
    findings: list[str] = field(default_factory=list[str])
    no_evidence: str | None = None
    """The reason why there was nothing to judge."""

    @property
    def passed(self) -> bool:
        """True if the verdict is `pass`."""
        return self.verdict == "pass"

    def __getitem__(self, target: str) -> Any:
        """The figure with this name; the part before the dot can be omitted."""
        if target in self.values:
            return self.values[target]
        found = [name for name in self.values if name.partition(".")[2] == target]
        if len(found) == 1:
            return self.values[found[0]]
        raise KeyError(f"{self.block} has no figure {target!r}; it has {', '.join(self.values)}")

    @classmethod
    def _of(cls, json: Mapping[str, Any]) -> GateResult:
        return cls(
            block=json["block"],
            verdict=json["verdict"],
            values=json["values"],
            detail=json["detail"],
            assertions=[Assertion._of(it) for it in json["assertions"]],
            summary=json["summary"],
            findings=json.get("findings", []),
            no_evidence=json.get("no_evidence"),
        )


@dataclass(frozen=True)
class RunResult:
    """A run: its trace and the verdict on its own assertions."""

    index: int
    name: str
    verdict: Verdict
    trace: dict[str, Any]
    assertions: list[Assertion]
    error: dict[str, Any] | None = None

    @classmethod
    def _of(cls, json: Mapping[str, Any]) -> RunResult:
        return cls(
            index=json["index"],
            name=json["name"],
            verdict=json["verdict"],
            trace=json["trace"],
            assertions=[Assertion._of(it) for it in json["assertions"]],
            error=json.get("error"),
        )


@dataclass(frozen=True)
class TestResult:
    """One test with one model."""

    # Not a test of pytest.
    __test__: ClassVar[bool] = False

    name: str
    kind: str
    model: str | None
    label: str
    suite: str
    verdict: Verdict
    gates: list[GateResult]
    runs: list[RunResult]
    """The runs; empty in a summary."""
    no_evidence: str | None = None

    @property
    def passed(self) -> bool:
        """True if the verdict is `pass`."""
        return self.verdict == "pass"

    def gate(self, block: str) -> GateResult:
        """The result of the gate with this block name."""
        for gate in self.gates:
            if gate.block == block:
                return gate
        names = ", ".join(gate.block for gate in self.gates) or "none"
        raise KeyError(f"{self.label} has no gate {block!r}; it has {names}")

    @classmethod
    def _of(cls, json: Mapping[str, Any]) -> TestResult:
        return cls(
            name=json["name"],
            kind=json["kind"],
            model=json["model"],
            label=json["label"],
            suite=json["suite"],
            verdict=json["verdict"],
            gates=[GateResult._of(it) for it in json["gates"]],
            runs=[RunResult._of(it) for it in json.get("runs", [])],
            no_evidence=json.get("no_evidence"),
        )


@dataclass(frozen=True)
class BrokenLine:
    """A line of a file, or a row, that is not a trace."""

    file: str
    line: int
    """The line, or the row, from 1."""
    column: int | None
    message: str


@dataclass(frozen=True)
class BrokenLines:
    """The lines that were skipped because they are not traces."""

    count: int
    """The number of all of them."""
    first: list[BrokenLine]
    """The first ones."""


class Report:
    """The report of scoring, as `mcptest score --reporter json` writes it."""

    def __init__(self, json: bytes) -> None:
        self._json = json

    @cached_property
    def _report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self._json)
        return report

    def to_json(self) -> bytes:
        """The JSON report, byte for byte that of the command line."""
        return self._json

    def to_dict(self) -> dict[str, Any]:
        """The JSON report as a new dict."""
        report: dict[str, Any] = json.loads(self._json)
        return report

    @property
    def verdict(self) -> Verdict:
        """The gravest of all verdicts."""
        verdict: Verdict = self._report["verdict"]
        return verdict

    @property
    def passed(self) -> bool:
        """True if the verdict is `pass`."""
        return self.verdict == "pass"

    @property
    def exit_code(self) -> int:
        """The exit code of the command line."""
        code: int = self._report["exit_code"]
        return code

    @cached_property
    def tests(self) -> list[TestResult]:
        """The tests, in the order of the suite, one for each test and model."""
        return [TestResult._of(it) for it in self._report["tests"]]

    @cached_property
    def broken_lines(self) -> BrokenLines:
        """The lines that were skipped. With any, `exit_code` is not 0."""
        found: dict[str, Any] = self._report.get("broken_lines") or {"count": 0, "first": []}
        first = [
            BrokenLine(it["file"], it["line"], it.get("column"), it["message"])
            for it in found["first"]
        ]
        return BrokenLines(found["count"], first)

    def test(self, name: str, *, model: str | None = None) -> TestResult:
        """The test with this name; `model` selects one of several."""
        found = [it for it in self.tests if it.name == name and model in (None, it.model)]
        if len(found) == 1:
            return found[0]
        labels = ", ".join(it.label for it in (found or self.tests))
        problem = "several entries" if found else "no entry"
        raise KeyError(f"{problem} for the test {name!r}; there are: {labels}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Report) and self._json == other._json

    def __hash__(self) -> int:
        return hash(self._json)

    def __repr__(self) -> str:
        return f"<mcptest.Report {self.verdict}: {len(self.tests)} tests>"

    def to_arrow(self, table: _tables.TableName = "figures") -> pyarrow.Table:
        """A table of the report as a `pyarrow.Table` (needs pyarrow).

        - `figures`: a row for each figure of each gate; an item of a list figure has a row of
          its own, such as `reliability.decay[0]`;
        - `tests`: a row for each test and model;
        - `gates`: a row for each gate of each test;
        - `assertions`: a row for each assertion of each gate;
        - `runs`: a row for each run (none in a summary).
        """
        return _tables.to_arrow(self.tests, table)

    def to_pandas(self, table: _tables.TableName = "figures") -> pandas.DataFrame:
        """A table of the report as a `pandas.DataFrame` (needs pandas). See `to_arrow`."""
        return _tables.to_pandas(self.tests, table)
