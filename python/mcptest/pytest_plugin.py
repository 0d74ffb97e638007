"""The pytest plugin: suites as tests, a fixture for servers, assertions on traces.

`pytest mcptest.yml` runs a suite: each of its tests is an item. Suites in folders are collected
with `--mcptest`, or if their names are in the setting `mcptest_suites`. The suite runs once, with
the tests that are selected.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .__main__ import program
from ._report import Report, TestResult
from .testing import Server, TraceAssertion, assert_trace, reasons

DEFAULT_SUITES = ["mcptest.yml", "mcptest.yaml"]
"""The files that `--mcptest` collects, unless `mcptest_suites` names others."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the flags and settings."""
    group = parser.getgroup("mcptest", "suites of mcptest")
    group.addoption("--mcptest", action="store_true", help="collect suites of mcptest in folders")
    group.addoption(
        "--mcptest-args",
        default="",
        metavar="ARGS",
        help="further arguments of `mcptest run`, such as '--replay-only'",
    )
    parser.addini("mcptest_suites", "names of suite files to collect (globs)", "args", [])
    parser.addini("mcptest_args", "further arguments of `mcptest run`", "args", [])


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker that all items of suites have."""
    config.addinivalue_line("markers", "mcptest: a test of a suite of mcptest")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
    """Collects suites that are named on the command line, in the settings, or by `--mcptest`."""
    if file_path.suffix not in (".yml", ".yaml"):
        return None
    patterns: list[str] = list(parent.config.getini("mcptest_suites"))
    if parent.config.getoption("--mcptest") and not patterns:
        patterns = DEFAULT_SUITES
    wanted = parent.session.isinitpath(file_path) or any(map(file_path.match, patterns))
    if not wanted:
        return None
    made: SuiteFile = SuiteFile.from_parent(parent, path=file_path)
    return made


class SuiteFailure(Exception):
    """A test of a suite that did not pass."""


class SuiteFile(pytest.File):
    """A suite file, which runs once."""

    _report: Report | None = None

    def collect(self) -> Iterable[SuiteItem]:
        """An item for each test and model, as `mcptest validate` lists them."""
        done = _mcptest(self.path.parent, "validate", self.path.name, "--format", "json")
        listed = json.loads(done.stdout)
        if not listed["valid"]:
            shown = _mcptest(self.path.parent, "validate", self.path.name)
            raise self.CollectError(shown.stderr)
        for test in listed["tests"]:
            item: SuiteItem = SuiteItem.from_parent(self, name=test["label"], listed=test)
            yield item

    def report(self) -> Report:
        """The report of the selected tests. The first call runs them."""
        if self._report is None:
            mine = [item for item in self.session.items if isinstance(item, SuiteItem)]
            names = dict.fromkeys(item.listed["name"] for item in mine if item.parent is self)
            args = list(self.config.getini("mcptest_args"))
            args += shlex.split(self.config.getoption("--mcptest-args"))
            for name in names:
                args += ["--filter", name]
            done = _mcptest(
                self.path.parent, "run", self.path.name, "--reporter", "json", *args
            )
            if not done.stdout.startswith("{"):
                raise SuiteFailure(done.stderr)
            self._report = Report(done.stdout.encode())
        return self._report


class SuiteItem(pytest.Item):
    """A test of a suite, with one model."""

    def __init__(self, *, listed: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.listed = listed
        self.add_marker("mcptest")
        # `-k slow` selects the tests with this tag.
        self.extra_keyword_matches.update(listed["tags"])

    def runtest(self) -> None:
        """Fails unless the verdict is `pass`: missing evidence is never one."""
        test = self._result()
        if not test.passed:
            raise SuiteFailure("\n".join([f"verdict {test.verdict}", *reasons(test)]))

    def _result(self) -> TestResult:
        parent = self.parent
        assert isinstance(parent, SuiteFile)
        for test in parent.report().tests:
            if test.label == self.listed["label"]:
                return test
        raise SuiteFailure("the test was not run")

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> Any:
        """The reasons alone: a traceback of this plugin helps nobody."""
        if isinstance(excinfo.value, SuiteFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The place and the name in reports."""
        return self.path, None, self.name


@pytest.fixture
def mcp_server() -> Iterator[Callable[..., Server]]:
    """Starts servers, which end with the test: `mcp_server([sys.executable, "server.py"])`."""
    started: list[Server] = []

    def start(*args: Any, **kwargs: Any) -> Server:
        server = Server(*args, **kwargs)
        started.append(server)
        return server

    yield start
    for server in reversed(started):
        server.close()


@pytest.fixture(name="assert_trace")
def assert_trace_fixture() -> Callable[..., TraceAssertion]:
    """`mcptest.testing.assert_trace`, without an import."""
    return assert_trace


def _mcptest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program(), *arguments],
        cwd=folder,
        capture_output=True,
        check=False,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
    )
