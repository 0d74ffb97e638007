"""mcptest: tests for MCP servers and the agents that use them.

    >>> import mcptest
    >>> suite = '''
    ... tests:
    ...   - name: orders a book
    ...     golden_path: { calls: [search, order] }
    ... '''
    >>> trace = {"tool_calls": [{"name": "search"}, {"name": "order"}]}
    >>> mcptest.score(suite, [trace]).verdict
    'pass'

`score` applies a suite to traces; `gates` has each gate as a function; `score_partial` and `merge`
distribute the work; `mcptest.spark` does so with Apache Spark. The same wheel has the command-line
program `mcptest`.
"""

from . import gates
from ._errors import Error, InternalError, PartialError, Problem, SuiteError, TraceError
from ._native import VERSION as __version__
from ._native import Suite
from ._report import (
    Assertion,
    BrokenLine,
    BrokenLines,
    GateResult,
    Report,
    RunResult,
    TestResult,
    Verdict,
)
from ._score import SuiteLike, TraceLike, Traces, merge, score, score_partial

__all__ = [
    "Assertion",
    "BrokenLine",
    "BrokenLines",
    "Error",
    "GateResult",
    "InternalError",
    "PartialError",
    "Problem",
    "Report",
    "RunResult",
    "Suite",
    "SuiteError",
    "SuiteLike",
    "TestResult",
    "TraceError",
    "TraceLike",
    "Traces",
    "Verdict",
    "__version__",
    "gates",
    "merge",
    "score",
    "score_partial",
]
