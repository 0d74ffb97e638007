"""Checks the calls of traces with the AST checker of the Berkeley Function-Calling Leaderboard
(PyPI: bfcl-eval). Prints the number of traces and the processor time of the loop as JSON; the time
of imports is not counted.

The checker is used as it is installed. Its package imports the handlers of all models, of which it
needs one flag, and with them hundreds of other packages, so a module with the flag takes the place
of these handlers."""

import itertools
import json
import sys
import time
import types

MODEL = "any"
handlers = types.ModuleType("bfcl_eval.constants.model_config")
handlers.MODEL_CONFIG_MAPPING = {MODEL: types.SimpleNamespace(underscore_to_dot=False)}
sys.modules["bfcl_eval.constants.model_config"] = handlers

from bfcl_eval.constants.enums import Language
from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

TOOLS = "search find details reviews prices map availability compare book confirm".split()
FUNCTIONS = [
    {
        "name": tool,
        "description": f"The tool {tool}.",
        "parameters": {
            "type": "dict",
            "required": ["city"],
            "properties": {
                "city": {"type": "string"},
                "nights": {"type": "integer"},
                "breakfast": {"type": "boolean"},
            },
        },
    }
    for tool in TOOLS
]
ANSWER = {
    "city": ["Rome", "Oslo", "Lima", "Kyoto"],
    "nights": list(range(9)),
    "breakfast": [True],
}
ANSWERS = [{tool: ANSWER} for tool in TOOLS]


def main(path, limit):
    valid = traces = 0
    start = time.process_time()
    with open(path, encoding="utf-8") as lines:
        for line in itertools.islice(lines, limit):
            trace = json.loads(line)
            calls = [{call["name"]: call["args"]} for call in trace["tool_calls"]]
            checked = ast_checker(
                FUNCTIONS, calls, ANSWERS, Language.PYTHON, "parallel_multiple", MODEL
            )
            valid += checked["valid"]
            traces += 1
    print(json.dumps({"traces": traces, "cpu_s": time.process_time() - start, "good": valid}))


main(sys.argv[1], int(sys.argv[2]))
