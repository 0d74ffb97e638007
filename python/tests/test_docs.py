"""The Python blocks of the pages: each page is one program, run in order."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import mcptest
import pytest

from conftest import ROOT, SUITE, trace

PAGES = ["docs/python.md", "python/README.md"]


@pytest.mark.parametrize("page", PAGES)
def test_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    import json

    (tmp_path / "suite.yml").write_text(SUITE)
    lines = "".join(json.dumps(trace(number)) + "\n" for number in range(20))
    (tmp_path / "traces.jsonl").write_text(lines)
    text = (ROOT / page).read_text()
    names: dict[str, Any] = {}
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S))
    assert blocks
    for block in blocks:
        line = text[: block.start(1)].count("\n")
        # The lines of the page, for tracebacks.
        code = compile("\n" * line + block[1], page, "exec")
        exec(code, names)


def test_docstrings_run() -> None:
    for module in (mcptest, mcptest.gates):
        result = doctest.testmod(module)
        assert result.attempted and not result.failed
