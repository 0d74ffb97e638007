"""Reads a report with a parser that we did not write, and tells as JSON what is in it."""

import json
import sys


def junit(path):
    from junitparser import JUnitXml
    from junitparser.xunit2 import FlakyFailure, FlakyError, RerunError, RerunFailure, TestCase

    suites, cases = [], []
    for suite in JUnitXml.fromfile(path):
        suites.append({name: getattr(suite, name) for name in ["tests", "failures", "errors", "skipped"]})
        for case in suite:
            case = TestCase.fromelem(case)
            attempts = [
                type(attempt)._tag
                for kind in [FlakyFailure, FlakyError, RerunFailure, RerunError]
                for attempt in case.iterchildren(kind)
            ]
            cases.append({"name": case.name, "result": [one._tag for one in case.result], "attempts": attempts})
    return {"suites": suites, "cases": cases}


def markdown(path):
    from markdown_it import MarkdownIt

    kinds, html, rows = {}, [], []

    def count(tokens):
        for token in tokens:
            kinds[token.type] = kinds.get(token.type, 0) + 1
            if token.type in ("html_inline", "html_block"):
                html.append(token.content)
            if token.type == "tr_open":
                rows.append(0)
            if token.type in ("td_open", "th_open"):
                rows[-1] += 1
            count(token.children or [])

    with open(path, encoding="utf-8") as file:
        count(MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(file.read()))
    return {"kinds": kinds, "html": html, "rows": rows}


print(json.dumps({"junit": junit, "markdown": markdown}[sys.argv[1]](sys.argv[2])))
