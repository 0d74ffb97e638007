"""Reads a report with a parser that we did not write, and prints its content as JSON."""

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


def openmetrics(path):
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    with open(path, encoding="utf-8") as file:
        families = list(text_string_to_metric_families(file.read()))
    samples = {}
    for family in families:
        for sample in family.samples:
            samples.setdefault(sample.name, []).append({"labels": sample.labels, "value": sample.value})
    return samples


def gitlab(path):
    """The facts that GitLab documents about a code quality report."""
    from jsonschema import Draft202012Validator

    schema = {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["description", "check_name", "fingerprint", "severity", "location"],
            "properties": {
                "description": {"type": "string"},
                "check_name": {"type": "string"},
                "fingerprint": {"type": "string", "minLength": 1},
                "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
                "location": {
                    "type": "object",
                    "required": ["path", "lines"],
                    "properties": {
                        "path": {"type": "string", "pattern": "^(?!\\./|/).+"},
                        "lines": {"type": "object", "required": ["begin"], "properties": {"begin": {"type": "integer", "minimum": 1}}},
                    },
                },
            },
        },
    }
    with open(path, encoding="utf-8") as file:
        issues = json.load(file)
    Draft202012Validator(schema).validate(issues)
    prints = {issue["fingerprint"] for issue in issues}
    return {"severities": [issue["severity"] for issue in issues], "distinct": len(prints) == len(issues)}


def sarif(path):
    """Reads the file as the command line tools of SARIF do."""
    from sarif import loader

    file = loader.load_sarif_file(path)
    report = file.get_report()
    counts = {level: report.get_issue_count_for_severity(level) for level in ["error", "warning", "note"]}
    return {"counts": counts, "tool": sorted(file.get_distinct_tool_names())}


print(json.dumps({"openmetrics": openmetrics, "gitlab": gitlab, "sarif": sarif, "pr": markdown, "junit": junit, "markdown": markdown}[sys.argv[1]](sys.argv[2])))
