#!/usr/bin/env bash
# Writes the text of the pull-request comment: the report, compared with that of the base branch if
# there is one.
#
# MCPTEST_PROGRAM   the program (default: mcptest on PATH)
# MCPTEST_OUT       folder of the reports, with report.json
# MCPTEST_BASELINE  JSON report of the base branch; it may be missing
set -euo pipefail

program=${MCPTEST_PROGRAM:-mcptest}
out=${MCPTEST_OUT:?the folder of the reports}
baseline=${MCPTEST_BASELINE:-}

if [ ! -s "$out/report.json" ]; then
  echo "mcptest wrote no report, so there is nothing to compare" >&2
  exit 0
fi
if [ -n "$baseline" ] && [ -s "$baseline" ]; then
  # Exit codes 1 and 3 say that something regressed or was lost: the text has it.
  code=0
  "$program" report "$out/report.json" --compare "$baseline" --reporter "pr=$out/comment.md" || code=$?
  case $code in
    0 | 1 | 3) exit 0 ;;
  esac
  echo "the baseline cannot be compared (exit code $code); the comment is without it" >&2
fi
"$program" report "$out/report.json" --reporter "pr=$out/comment.md"
