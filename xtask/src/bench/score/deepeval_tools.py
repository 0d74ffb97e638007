"""Scores the calls of traces with the tool correctness metric of deepeval (PyPI), which needs no
model for it. Prints the number of traces and the processor time of the loop as JSON; the time of
imports is not counted."""

import itertools
import json
import os
import sys
import tempfile
import time

# Nothing is to be sent anywhere, and nothing written beside the traces.
os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"
os.environ["DEEPEVAL_UPDATE_WARNING_OPT_IN"] = "0"
# The metric makes a client for a model that it never asks.
os.environ.setdefault("OPENAI_API_KEY", "unused")
os.chdir(tempfile.mkdtemp())

from deepeval.metrics import ToolCorrectnessMetric
from deepeval.test_case import LLMTestCase, ToolCall

EXPECTED = [ToolCall(name="search"), ToolCall(name="book")]


def main(path, limit):
    metric = ToolCorrectnessMetric(async_mode=False, include_reason=False)
    good = traces = 0
    start = time.process_time()
    with open(path, encoding="utf-8") as lines:
        for line in itertools.islice(lines, limit):
            trace = json.loads(line)
            calls = trace["tool_calls"]
            case = LLMTestCase(
                input="Find a hotel for the weekend and book it.",
                actual_output=trace["final_response"],
                tools_called=[
                    ToolCall(name=call["name"], input_parameters=call["args"]) for call in calls
                ],
                expected_tools=EXPECTED,
            )
            good += metric.measure(case, _show_indicator=False) == 1
            traces += 1
    print(json.dumps({"traces": traces, "cpu_s": time.process_time() - start, "good": good}))


main(sys.argv[1], int(sys.argv[2]))
