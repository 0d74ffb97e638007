"""A job on a small cluster of Apache Spark, compared with the program on one machine.

    python spark_job.py FOLDER TRACES

The cluster has two executors, which are separate processes; one of them is killed during the job.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcptest
import mcptest.spark
import pyarrow
import pyspark
from mcptest.__main__ import program
from pyspark.sql import SparkSession

FILES = 16
EXECUTORS = 2
TOOLS = "search find details reviews prices map availability compare book confirm".split()

SUITE = """\
name: many runs
tests:
  - name: booking
    expect:
      - tool_calls[0].args.city: { exists: true }
      - final_response: { contains: booked }
    tool_selection: { expected_tool: book, min_selection_rate: 0.5, max_total_tokens: 3190 }
    equal_function_sets:
      classes:
        - { name: search, members: [travel.search, travel.find] }
        - { name: book, members: [travel.book] }
      expect:
        - tool_selection.f1: { ">=": 20 }
    trajectory:
      mode: superset
      calls: [{ name: search, args: any }, { name: book, args: any }]
    golden_path: { calls: [search, book], expect: [{ golden_path.extra_steps: { ">=": 0 } }] }
"""

# Its figures depend on the order of the runs.
ORDERED = SUITE + "    reliability: {}\n"


def trace(number: int, dice: random.Random, *, run: bool) -> str:
    """A run with ten calls, about 2.7 kB."""
    calls: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for place, tool in enumerate(TOOLS):
        if tool == "book" and number % 50 == 0:
            continue
        call = f"c{number}_{place}"
        city = dice.choice(["Rome", "Oslo", "Lima", "Kyoto"])
        args = {"city": city, "nights": dice.randrange(9), "breakfast": True}
        calls.append(
            {"id": call, "server": "travel", "name": tool, "turn": place + 1, "args": args}
        )
        hotel = json.dumps({"city": city, "name": "Grand Hotel", "price": 99 + dice.randrange(100)})
        text = [{"type": "text", "text": hotel}]
        results.append({"call_id": call, "is_error": False, "content": text})
    tokens = 2000 + dice.randrange(1000)
    made: dict[str, Any] = {"test": "booking", "model": "model-a"}
    if run:
        made["run"] = number
    made["tool_calls"] = calls
    made["tool_results"] = results
    made["conversation"] = {
        "turns": [
            {"role": "user", "content": "Find a hotel for the weekend and book it."},
            {"role": "assistant", "content": "I am going to look for hotels first."},
        ],
        "tokens": {"input": tokens, "output": 200, "total": tokens + 200},
    }
    if number % 30:
        made["final_response"] = "I have booked the Grand Hotel for the weekend."
    return json.dumps(made)


def write(folder: Path, traces: int) -> None:
    """Files of traces in the order of their numbers."""
    folder.mkdir(parents=True)
    dice = random.Random(1)
    for file in range(FILES):
        numbers = range(traces * file // FILES, traces * (file + 1) // FILES)
        with (folder / f"part-{file:03}.jsonl").open("w") as out:
            out.writelines(trace(number + 1, dice, run=True) + "\n" for number in numbers)


def one_machine(suite: Path, *inputs: Path) -> bytes:
    """The report of the program."""
    command = [program(), "score", suite, "--trace", *inputs, "--summary", "--reporter", "json"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr[-2000:]
    return done.stdout


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def session() -> SparkSession:
    """A cluster on this machine."""
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local-cluster[{EXECUTORS},1,1024]")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "5",
        # Traces are large: fewer rows in a batch than the 10,000 by default.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def kill_executor(marker: str, partition: int) -> Any:
    """Passes batches on. The first task of a partition kills its executor after the first batch."""

    def pass_on(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        context = pyspark.TaskContext.get()
        assert context is not None
        for batch in batches:
            yield batch
            if context.partitionId() != partition:
                continue
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            pid = os.getpid()
            while b"CoarseGrainedExecutorBackend" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
                assert pid > 1, "no executor is above this process"
            os.kill(pid, signal.SIGKILL)
            os._exit(1)

    return pass_on


def main() -> None:
    folder, traces = Path(sys.argv[1]), int(sys.argv[2])
    suite = folder / "suite.yml"
    suite.write_text(SUITE)
    data = folder / "traces"
    write(data, traces)
    size = sum(file.stat().st_size for file in data.iterdir())
    before = cpu_of_children()
    expected = one_machine(suite, data)
    alone = cpu_of_children() - before

    # The page uses relative paths, which Spark resolves where it starts.
    page = folder / "page"
    page.mkdir()
    os.chdir(page)
    spark = session()
    marker = folder / "killed"
    # As many partitions as files, at least.
    frame = spark.read.text(str(data))
    partitions = frame.rdd.getNumPartitions()
    watched = frame.mapInArrow(kill_executor(str(marker), partitions // 2), "value string")
    began = time.monotonic()
    partials = mcptest.spark.score_partials(watched, suite).collect()
    report = mcptest.merge(bytes(row["partial"]) for row in partials)
    seconds = time.monotonic() - began
    assert marker.exists(), "no executor was killed"
    if report.to_json() != expected:
        (folder / "spark.json").write_bytes(report.to_json())
        (folder / "expected.json").write_bytes(expected)
        raise AssertionError(f"the reports differ: see {folder}")
    print(
        f"ok   {traces} traces ({size >> 20} MiB) in {partitions} partitions, one executor killed"
    )
    print(f"     {seconds:.0f} s on {EXECUTORS} executors; one machine: {alone:.2f} s of CPU time")
    bytes_ = sum(len(row["partial"]) for row in partials)
    print(f"     partial results: {bytes_} bytes; report: {len(expected)} bytes")

    # Without `run`, the order is that of a column, or else of the DataFrame.
    dice = random.Random(2)
    lines = [trace(number, dice, run=False) for number in range(200)]
    ordered = folder / "ordered.jsonl"
    ordered.write_text("".join(line + "\n" for line in lines))
    suite.write_text(ORDERED)
    expected = one_machine(suite, ordered)
    rows = list(enumerate(lines))
    random.Random(3).shuffle(rows)
    mixed = spark.createDataFrame(rows, "position long, trace string").repartition(7)
    mixed.write.parquet(str(folder / "parquet"))
    stored = spark.read.parquet(str(folder / "parquet"))
    report = mcptest.spark.score(stored, suite, column="trace", order="position")
    assert report.to_json() == expected, "the order of a column"
    in_order = spark.createDataFrame(list(enumerate(lines)), "position long, value string")
    assert in_order.rdd.getNumPartitions() > 1
    report = mcptest.spark.score(in_order, suite)
    assert report.to_json() == expected, "the order of the DataFrame"
    print("ok   the order of a column, and of the DataFrame")

    broken = in_order.selectExpr("if(position = 150, '{', value) as value")
    report = mcptest.spark.score(broken, suite)
    assert report.broken_lines.count == 1
    assert report.broken_lines.first[0].file.startswith("partition "), report.broken_lines
    try:
        mcptest.spark.score(broken, suite, strict=True)
    except Exception as error:
        assert "TraceError" in str(error) and "not a trace" in str(error), error
    else:
        raise AssertionError("a broken row was not an error")
    print("ok   broken rows are counted, or raised")
    run_page(page)
    spark.stop()


def run_page(folder: Path) -> None:
    """Runs the Python blocks of the page, in order. The last report is that of all traces."""
    write(folder / "traces", 300)
    (folder / "suite.yml").write_text(ORDERED)
    page = Path(__file__).resolve().parents[2] / "docs/spark.md"
    text = page.read_text()
    names: dict[str, Any] = {}
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S))
    assert len(blocks) == 4, len(blocks)
    for block in blocks:
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], str(page), "exec"), names)
    expected = one_machine(folder / "suite.yml", folder / "traces")
    assert names["report"].to_json() == expected, "the page"
    assert Path("report.json").read_bytes() == expected, "the report of the page"
    print("ok   the page on Spark")


if __name__ == "__main__":
    main()
