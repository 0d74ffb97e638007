"""Scoring traces with Apache Spark.

    report = mcptest.spark.score(traces, "suite.yml")

`traces` is a DataFrame with a column of JSON text, one trace in each row. Every partition is scored
where it is, on the executors, into a partial result of a few kilobytes or megabytes; the driver
merges them. The report is that of `mcptest score --summary --reporter json` over the same traces in
the same order, byte for byte.

The executors need this package and pyarrow; the suite travels with the job.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _native
from ._report import Report
from ._score import SuiteLike, arrow_rows, merge, to_suite

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

__all__ = ["PARTIALS_SCHEMA", "merge_partials", "score", "score_partials"]

PARTIALS_SCHEMA = "part long, partial binary"
"""The columns of `score_partials`."""


def score(
    traces: DataFrame,
    suite: SuiteLike,
    *,
    column: str = "value",
    order: str | None = None,
    test: str | None = None,
    strict: bool = False,
) -> Report:
    """Scores a DataFrame of traces.

    `column` has the traces as JSON text; `spark.read.text` calls it `value`. `test` and `strict`
    are those of `mcptest.score`.

    The order of runs matters to some gates (`reliability:` weighs later runs more). It is

    - that of the traces' `run` numbers, if every trace of a test and model has one, and no two the
      same;
    - else that of the column `order`, whose values should be unique: the DataFrame is sorted by
      it, which moves the traces between executors;
    - else that of the DataFrame: partition by partition, in each by position.
    """
    return merge_partials(
        score_partials(traces, suite, column=column, order=order, test=test, strict=strict)
    )


def score_partials(
    traces: DataFrame,
    suite: SuiteLike,
    *,
    column: str = "value",
    order: str | None = None,
    test: str | None = None,
    strict: bool = False,
) -> DataFrame:
    """Scores each partition into a row with its number and its partial result.

    Use it to keep partial results, and to merge those of several jobs. The order of the runs of
    different jobs must then be that of their `run` numbers. See `score`.
    """
    loaded = to_suite(suite)
    if order is not None:
        # Ranges of the key in the order of the partitions.
        traces = traces.repartitionByRange(order).sortWithinPartitions(order)

    def partition(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow
        from pyspark import TaskContext

        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        rows = arrow_rows(batch.column(0) for batch in batches)
        partial = _native.score_partial(
            loaded,
            [rows],
            # Names decide about the order, and numbers in them count by value.
            name=f"partition {part}",
            part=None,
            test=test,
            strict=strict,
            threads=1,
        )
        columns: list[Any] = [pyarrow.array([part], pyarrow.int64())]
        columns.append(pyarrow.array([partial], pyarrow.binary()))
        yield pyarrow.RecordBatch.from_arrays(columns, names=["part", "partial"])

    return traces.select(column).mapInArrow(partition, PARTIALS_SCHEMA)


def merge_partials(partials: DataFrame) -> Report:
    """Merges the rows of `score_partials` on the driver."""
    rows = partials.select("partial").collect()
    return merge(bytes(row[0]) for row in rows)
