"""Compares the calls of traces with expected ones by the trajectory matcher of agentevals (PyPI).
Prints the number of traces and the processor time of the loop as JSON; the time of imports is not
counted."""

import itertools
import json
import os
import sys
import time

# Nothing is to be sent anywhere.
os.environ["LANGSMITH_TRACING"] = "false"
os.environ["LANGCHAIN_TRACING_V2"] = "false"

from agentevals.trajectory.match import create_trajectory_match_evaluator


def call(id, name, args):
    function = {"name": name, "arguments": json.dumps(args)}
    calls = [{"id": id, "type": "function", "function": function}]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def messages(trace):
    """The conversation of a trace: each turn makes one call."""
    yield {"role": "user", "content": trace["conversation"]["turns"][0]["content"]}
    for one, result in zip(trace["tool_calls"], trace["tool_results"]):
        yield call(one["id"], one["name"], one["args"])
        text = result["content"][0]["text"]
        yield {"role": "tool", "tool_call_id": result["call_id"], "content": text}
    yield {"role": "assistant", "content": trace["final_response"]}


EXPECTED = [call("c1", "search", {}), call("c2", "book", {})]


def main(path, limit):
    evaluator = create_trajectory_match_evaluator(
        trajectory_match_mode="superset", tool_args_match_mode="ignore"
    )
    good = traces = 0
    start = time.process_time()
    with open(path, encoding="utf-8") as lines:
        for line in itertools.islice(lines, limit):
            trace = json.loads(line)
            outputs = list(messages(trace))
            good += bool(evaluator(outputs=outputs, reference_outputs=EXPECTED)["score"])
            traces += 1
    print(json.dumps({"traces": traces, "cpu_s": time.process_time() - start, "good": good}))


main(sys.argv[1], int(sys.argv[2]))
