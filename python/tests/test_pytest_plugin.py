"""The pytest plugin, in separate runs of pytest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conftest import ROOT

QUICKSTART = ROOT / "examples/quickstart"


def pytest_in(folder: Path, *arguments: str) -> tuple[int, str]:
    """Runs pytest in a folder, as a user would. Returns the exit code and the output."""
    import os
    import subprocess

    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", "-v", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CI": "true", "COLUMNS": "200"},
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the quickstart suite, and the one that fails."""
    import shutil

    shutil.copytree(QUICKSTART / "servers", tmp_path / "servers")
    for name in ("mcptest.yml", "failing.yml"):
        shutil.copy(QUICKSTART / name, tmp_path / name)
    return tmp_path


def test_tests_of_a_suite_are_items(project: Path) -> None:
    code, output = pytest_in(project, "mcptest.yml")
    assert code == 0, output
    assert "mcptest.yml::finds the weather tool PASSED" in output
    assert "4 passed" in output


def test_failures_have_their_reasons(project: Path) -> None:
    code, output = pytest_in(project, "failing.yml")
    assert code == 1, output
    assert "2 failed" in output
    assert "tool_selection.precision" in output
    assert "pytest_plugin.py" not in output


def test_selected_tests_are_the_only_ones_that_run(project: Path) -> None:
    code, output = pytest_in(project, "mcptest.yml", "-k", "missing", "--mcptest-args=--no-history")
    assert code == 0, output
    assert "1 passed, 3 deselected" in output
    assert not (project / ".mcptest").exists()


def test_folders_are_collected_on_request(project: Path) -> None:
    code, output = pytest_in(project)
    assert code == 5, output
    code, output = pytest_in(project, "--mcptest")
    assert code == 0, output
    assert "4 passed" in output
    (project / "pytest.ini").write_text("[pytest]\nmcptest_suites = fail*.yml\n")
    code, output = pytest_in(project)
    assert code == 1, output
    assert "2 failed" in output


def test_an_invalid_suite_is_an_error_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "mcptest.yml").write_text("tols: []\n")
    code, output = pytest_in(tmp_path, "mcptest.yml")
    assert code == 2, output
    assert "mcptest.yml:1:1" in output
    assert "did you mean `tools`?" in output


def test_the_fixtures_work_in_a_test_of_a_user(project: Path) -> None:
    (project / "test_weather.py").write_text(
        """
import pytest

COMMAND = ["mcptest", "mock", "--tools-from", "servers/weather.yml"]


def test_calls(mcp_server, assert_trace):
    server = mcp_server(COMMAND, name="weather")
    assert [tool["name"] for tool in server.tools()][0] == "get_weather"
    result = server.call("get_weather", city="Paris")
    assert not result.is_error and "sunny" in result.text
    assert result.structured["city"] == "Paris"
    assert server.call_with("get_weather", {}).is_error
    assert_trace(server.trace).matches(
        {"tool_calls[0].args.city": "Paris", "tool_results[1].is_error": True},
        tool_edges={"restricted": ["weather.shell_exec"]},
    )


def test_fails(mcp_server, assert_trace):
    server = mcp_server(COMMAND, name="weather")
    server.call("list_alerts", region="Paris")
    assert_trace(server.trace).matches(golden_path={"calls": ["get_weather", "list_alerts"]})
    assert_trace(server.trace).matches({"tool_calls[0].name": "get_weather"})
"""
    )
    code, output = pytest_in(project, "test_weather.py")
    assert code == 1, output
    assert "1 failed, 1 passed" in output
    assert 'tool_calls[0].name: expected {"exact": "get_weather"}, actual "list_alerts"' in output


def test_the_example_of_the_page_works(tmp_path: Path) -> None:
    import re

    page = (ROOT / "docs/test-runners.md").read_text()
    block = re.search(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert block
    (tmp_path / "test_shop.py").write_text(block[1])
    (tmp_path / "shop.yml").write_text(
        """
mock_server:
  name: shop
  tools:
    - name: search
      input_schema: { type: object, properties: { q: { type: string } } }
      response: { content: ["found a ${args.q}"] }
"""
    )
    (tmp_path / "server.py").write_text(
        """
import os

from mcptest.__main__ import program

os.execv(program(), ["mcptest", "mock", "--tools-from", "shop.yml"])
"""
    )
    code, output = pytest_in(tmp_path, "test_shop.py")
    assert code == 0, output


def test_a_server_that_cannot_start_is_reported(tmp_path: Path) -> None:
    from mcptest.testing import Server, ServerError

    with pytest.raises(ServerError, match="ended before it answered initialize"):
        Server([sys.executable, "-c", "raise SystemExit(1)"])
    with pytest.raises(TypeError, match="either"):
        Server()


def test_a_server_that_hangs_is_a_timeout() -> None:
    from mcptest.testing import Server, ServerError

    with pytest.raises(ServerError, match="did not answer initialize in 1 s"):
        Server([sys.executable, "-c", "import time; time.sleep(60)"], timeout=1)


def test_assertions_need_something_to_assert() -> None:
    from mcptest.testing import assert_trace

    with pytest.raises(ValueError):
        assert_trace([])
    with pytest.raises(TypeError):
        assert_trace({"tool_calls": []}).matches()
    with pytest.raises(AssertionError, match="no_evidence"):
        assert_trace({"tool_calls": []}).matches(golden_path={"calls": ["a"]})
