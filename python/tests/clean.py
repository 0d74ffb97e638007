"""Checks of the wheel in an environment that has nothing else."""

import importlib.util
import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import mcptest
from mcptest.__main__ import program

for name in ("pandas", "pyarrow", "pyspark"):
    assert importlib.util.find_spec(name) is None, f"{name} is here"

scripts = Path(sysconfig.get_path("scripts"))
assert program() == scripts / "mcptest", program()
version = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True)
assert version.stdout == f"mcptest {mcptest.__version__}\n", version.stdout

# `python -m mcptest` is the program: its output and its exit codes.
module = subprocess.run([sys.executable, "-I", "-m", "mcptest", "no-such-command"], check=False)
assert module.returncode == 2, module.returncode

suite = {
    "tests": [
        {"name": "t", "golden_path": {"calls": ["search"], "expect": [{"golden_path.passed": 1}]}}
    ]
}
report = mcptest.score(suite, [{"tool_calls": [{"name": "search"}]}])
assert report.passed, report.to_json()
assert json.loads(report.to_json())["exit_code"] == 0
try:
    report.to_pandas()
except ModuleNotFoundError as error:
    assert "mcptest[pandas]" in str(error), error
else:
    raise AssertionError("a table without pandas")
print("ok   the wheel alone")
