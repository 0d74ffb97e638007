"""Reports as tables."""

from __future__ import annotations

from typing import Any, get_args

import mcptest
import pandas
import pyarrow
import pytest
from mcptest._tables import TABLES, TableName

from conftest import SUITE

Traces = list[dict[str, Any]]


def test_both_kinds_of_tables_have_the_same_rows(traces: Traces) -> None:
    report = mcptest.score(SUITE, traces, runs=True)
    assert set(get_args(TableName)) == set(TABLES)
    for name, table in TABLES.items():
        arrow, frame = report.to_arrow(name), report.to_pandas(name)
        assert arrow.column_names == list(frame.columns) == list(table.columns)
        assert arrow.num_rows == len(frame) > 0, name
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        assert arrow.to_pylist() == rows, name


def test_figures_are_in_rows(traces: Traces) -> None:
    report = mcptest.score(SUITE, traces)
    frame: pandas.DataFrame = report.to_pandas()
    f1 = frame[(frame.target == "tool_selection.f1") & (frame.model == "model-0")]
    gate = report.test("orders", model="model-0").gate("equal_function_sets")
    assert list(f1.value) == [gate["f1"]]
    decay = report.test("orders", model="model-0").gate("reliability")["decay"]
    rows = frame[frame.target.str.startswith("reliability.decay[") & (frame.model == "model-0")]
    assert list(rows.value) == decay
    assert report.to_arrow("runs").num_rows == 0
    assert report.to_arrow("runs").schema.field("run").type == pyarrow.int64()


def test_an_unknown_table_is_named(traces: Traces) -> None:
    with pytest.raises(ValueError, match="figures, tests, gates, assertions, runs"):
        mcptest.score(SUITE, traces).to_arrow("x")  # type: ignore[arg-type]
