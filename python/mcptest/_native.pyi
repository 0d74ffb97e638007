"""The extension module. Use `mcptest`, not this."""

import os
from collections.abc import Iterator
from typing import Any, TypedDict, Union

from ._errors import Problem

VERSION: str

class TargetInfo(TypedDict):
    """A figure of a gate."""

    name: str
    unit: str
    doc: str

class GateInfo(TypedDict):
    """A gate of the registry."""

    block: str
    summary: str
    targets: list[TargetInfo]

class Suite:
    """A suite that was loaded and checked.

    `Suite.load(path)` reads a file, `Suite.parse(text)` takes YAML. A suite can be pickled: it
    carries its files, the imported ones too, and the values of the environment variables that
    they use (but no API keys of model providers), so that it is the same suite on another machine.
    """

    @classmethod
    def load(cls, path: Union[str, os.PathLike[str]]) -> Suite:
        """Loads a suite file with everything it imports.

        Raises `SuiteError` with all problems and their places.
        """

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        name: str = "suite.yml",
        directory: Union[str, os.PathLike[str], None] = None,
    ) -> Suite:
        """Loads a suite from YAML (or JSON) text.

        `name` is the file name in messages. Imports and `${CONFIG_DIR}` start from `directory`,
        by default the working directory.

        Raises `SuiteError` with all problems and their places.
        """

    @property
    def name(self) -> str:
        """The name of the suite."""

    @property
    def path(self) -> os.PathLike[str]:
        """The path that the suite was loaded from."""

    @property
    def tests(self) -> list[str]:
        """The names of the agent tests, in order."""

    @property
    def warnings(self) -> list[Problem]:
        """Problems that do not prevent the use of the suite."""

def gates() -> list[GateInfo]:
    """Lists the gates."""

def score(
    suite: Suite,
    sources: list[Union[str, bytes, Iterator[Any]]],
    *,
    name: str,
    test: str | None,
    summary: bool,
    strict: bool,
    threads: int | None,
) -> bytes:
    """Scores traces; returns the JSON report."""

def score_partial(
    suite: Suite,
    sources: list[Union[str, bytes, Iterator[Any]]],
    *,
    name: str,
    part: tuple[int, int] | None,
    test: str | None,
    strict: bool,
    threads: int | None,
) -> bytes:
    """Scores a part of the traces; returns the partial result."""

def merge(partials: list[bytes]) -> bytes:
    """Merges partial results; returns the JSON report."""
