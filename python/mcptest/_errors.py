"""Exceptions and the problems that they list."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Problem:
    """A problem of a suite, with its place."""

    severity: Literal["error", "warning"]
    message: str
    file: str | None = None
    """The file."""
    line: int | None = None
    """The line, from 1."""
    column: int | None = None
    """The column, from 1."""
    label: str | None = None
    """The text at the marked place."""
    help: list[str] = field(default_factory=list[str])
    """Ways to fix it."""

    def __str__(self) -> str:
        place = [self.file, self.line, self.column]
        known = ":".join(str(part) for part in place if part is not None)
        return f"{known}: {self.message}" if known else self.message


class Error(Exception):
    """The base of all exceptions of this package."""


class SuiteError(Error):
    """A suite is not valid. `problems` lists all problems, not just the first."""

    problems: list[Problem]

    def __init__(self, message: str, problems: list[Problem] | None = None) -> None:
        super().__init__(message, problems or [])
        self.problems = problems or []

    def __str__(self) -> str:
        return str(self.args[0])

    @property
    def file(self) -> str | None:
        """The file of the first problem."""
        return self.problems[0].file if self.problems else None

    @property
    def line(self) -> int | None:
        """The line of the first problem, from 1."""
        return self.problems[0].line if self.problems else None

    @property
    def column(self) -> int | None:
        """The column of the first problem, from 1."""
        return self.problems[0].column if self.problems else None


class TraceError(Error):
    """Traces cannot be scored. For rows in memory, `file` is `traces` and `line` the row."""

    file: str | None
    line: int | None
    column: int | None

    def __init__(
        self,
        message: str,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message, file, line, column)
        self.file = file
        self.line = line
        self.column = column

    def __str__(self) -> str:
        return str(self.args[0])


class PartialError(Error):
    """A partial result cannot be merged: damaged, or of another suite or version."""


class InternalError(Error):
    """A defect of mcptest itself. Please report it."""
