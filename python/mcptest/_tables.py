"""Reports as tables: columns of plain values, for Arrow and pandas."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from ._report import GateResult, TestResult

TableName = Literal["figures", "tests", "gates", "assertions", "runs"]
Kind = Literal["string", "float64", "int64", "bool"]
Row = tuple[Any, ...]


class Table(NamedTuple):
    """The columns of a table, and the function that makes its rows."""

    columns: dict[str, Kind]
    rows: Callable[[Sequence[TestResult]], Iterator[Row]]


def _figures(tests: Sequence[TestResult]) -> Iterator[Row]:
    for test, gate in _gates_of(tests):
        for target, value in gate.values.items():
            for name, figure in _flat(target, value):
                yield (test.name, test.model, gate.block, gate.verdict, name, figure)


def _flat(target: str, value: Any) -> Iterator[tuple[str, float | None]]:
    """A figure, or the items of a list of figures."""
    if isinstance(value, list):
        items: list[Any] = value
        for index, item in enumerate(items):
            yield from _flat(f"{target}[{index}]", item)
    else:
        yield target, None if value is None else float(value)


def _tests(tests: Sequence[TestResult]) -> Iterator[Row]:
    for test in tests:
        yield (test.name, test.model, test.suite, test.kind, test.verdict, test.no_evidence)


def _gates(tests: Sequence[TestResult]) -> Iterator[Row]:
    for test, gate in _gates_of(tests):
        yield (test.name, test.model, gate.block, gate.verdict, gate.summary, gate.no_evidence)


def _assertions(tests: Sequence[TestResult]) -> Iterator[Row]:
    for test, gate in _gates_of(tests):
        for it in gate.assertions:
            matcher, actual = json.dumps(it.matcher), json.dumps(it.actual)
            yield (
                *(test.name, test.model, gate.block, it.target),
                *(matcher, actual, it.passed, it.default, it.reason),
            )


def _runs(tests: Sequence[TestResult]) -> Iterator[Row]:
    for test in tests:
        for run in test.runs:
            calls: list[Any] = run.trace.get("tool_calls") or []
            tokens = ((run.trace.get("conversation") or {}).get("tokens") or {}).get("total")
            error = (run.error or {}).get("kind")
            yield (test.name, test.model, run.index, run.verdict, len(calls), tokens, error)


def _gates_of(tests: Sequence[TestResult]) -> Iterator[tuple[TestResult, GateResult]]:
    return ((test, gate) for test in tests for gate in test.gates)


TABLES: dict[TableName, Table] = {
    "figures": Table(
        {
            "test": "string",
            "model": "string",
            "gate": "string",
            "verdict": "string",
            "target": "string",
            "value": "float64",
        },
        _figures,
    ),
    "tests": Table(
        {
            "test": "string",
            "model": "string",
            "suite": "string",
            "kind": "string",
            "verdict": "string",
            "no_evidence": "string",
        },
        _tests,
    ),
    "gates": Table(
        {
            "test": "string",
            "model": "string",
            "gate": "string",
            "verdict": "string",
            "summary": "string",
            "no_evidence": "string",
        },
        _gates,
    ),
    "assertions": Table(
        {
            "test": "string",
            "model": "string",
            "gate": "string",
            "target": "string",
            "matcher": "string",
            "actual": "string",
            "passed": "bool",
            "default": "bool",
            "reason": "string",
        },
        _assertions,
    ),
    "runs": Table(
        {
            "test": "string",
            "model": "string",
            "run": "int64",
            "verdict": "string",
            "calls": "int64",
            "tokens": "int64",
            "error": "string",
        },
        _runs,
    ),
}


def _columns(tests: Sequence[TestResult], name: str) -> tuple[dict[str, Kind], list[list[Any]]]:
    table = TABLES.get(cast(TableName, name))
    if table is None:
        raise ValueError(f"no table is called {name!r}; there are {', '.join(TABLES)}")
    columns: list[list[Any]] = [[] for _ in table.columns]
    for row in table.rows(tests):
        for column, value in zip(columns, row):
            column.append(value)
    return table.columns, columns


def _needs(extra: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    hint = f"{error}; install it with `pip install 'mcptest[{extra}]'`"
    return ModuleNotFoundError(hint, name=error.name, path=error.path)


def to_arrow(tests: Sequence[TestResult], name: str) -> pyarrow.Table:
    """A table as Arrow."""
    try:
        import pyarrow
    except ModuleNotFoundError as error:
        raise _needs("arrow", error) from error

    kinds, columns = _columns(tests, name)
    fields = [pyarrow.field(column, _arrow(pyarrow, kind)) for column, kind in kinds.items()]
    schema = pyarrow.schema(fields)
    arrays = [pyarrow.array(values, field.type) for values, field in zip(columns, schema)]
    return pyarrow.Table.from_arrays(arrays, schema=schema)


def _arrow(pyarrow: Any, kind: Kind) -> Any:
    return pyarrow.bool_() if kind == "bool" else getattr(pyarrow, kind)()


# Types of pandas that have a missing value.
_PANDAS: dict[Kind, str] = {
    "string": "string",
    "float64": "float64",
    "int64": "Int64",
    "bool": "boolean",
}


def to_pandas(tests: Sequence[TestResult], name: str) -> pandas.DataFrame:
    """A table as a DataFrame."""
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise _needs("pandas", error) from error

    kinds, columns = _columns(tests, name)
    return pandas.DataFrame(
        {
            column: pandas.Series(values, dtype=_PANDAS[kind])
            for (column, kind), values in zip(kinds.items(), columns)
        }
    )
