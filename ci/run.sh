#!/usr/bin/env bash
# Runs suites and writes every report that a forge reads. Exits 0 whatever the verdict: the exit
# code of mcptest is in the file `exit-code`, so that later steps publish reports of failures too.
#
# MCPTEST_PROGRAM  the program (default: mcptest on PATH)
# MCPTEST_SUITE    suites, separated by spaces (default: what `mcptest run` finds)
# MCPTEST_ARGS     further arguments of `mcptest run`, separated by spaces
# MCPTEST_OUT      folder of the reports
set -euo pipefail

program=${MCPTEST_PROGRAM:-mcptest}
out=${MCPTEST_OUT:?the folder of the reports}
mkdir -p "$out"
out=$(cd "$out" && pwd)

suites=() arguments=()
if [ -n "${MCPTEST_SUITE:-}" ]; then read -r -a suites <<< "$MCPTEST_SUITE"; fi
if [ -n "${MCPTEST_ARGS:-}" ]; then read -r -a arguments <<< "$MCPTEST_ARGS"; fi

code=0
"$program" run ${suites[@]+"${suites[@]}"} ${arguments[@]+"${arguments[@]}"} \
  --reporter pretty \
  --reporter "json=$out/report.json" \
  --reporter "junit=$out/junit.xml" \
  --reporter "html=$out/report.html" \
  --reporter "sarif=$out/mcptest.sarif" \
  --reporter "markdown=$out/summary.md" \
  --reporter "gitlab=$out/gl-code-quality-report.json" \
  --reporter "github=$out/annotations.txt" || code=$?
echo "$code" > "$out/exit-code"

if [ -n "${GITHUB_OUTPUT:-}" ]; then
  echo "exit-code=$code" >> "$GITHUB_OUTPUT"
fi
# Workflow commands: GitHub shows them beside the suite files.
if [ -n "${GITHUB_ACTIONS:-}" ] && [ -s "$out/annotations.txt" ]; then
  cat "$out/annotations.txt"
fi
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -s "$out/summary.md" ]; then
  cat "$out/summary.md" >> "$GITHUB_STEP_SUMMARY"
fi
