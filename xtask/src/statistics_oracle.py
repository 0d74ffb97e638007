"""Recomputes the statistics of comparisons with scipy and statsmodels.

Reads a JSON list of pairs `[[passed, runs], [passed, runs]]` (before, after) with the values of
mcptest from standard input, and prints the greatest differences.
"""

import json
import sys

from scipy.stats import fisher_exact
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep


def main():
    worst = {"p_value": 0.0, "p_adjusted": 0.0, "lower": 0.0, "upper": 0.0}

    def note(name, found, wanted):
        worst[name] = max(worst[name], abs(found - wanted))

    for comparison in json.load(sys.stdin):
        p_values = []
        for rate in comparison:
            (old, old_runs), (new, new_runs) = rate["old"], rate["new"]
            table = [[new, new_runs - new], [old, old_runs - old]]
            p_value = fisher_exact(table, alternative="two-sided")[1]
            p_values.append(p_value)
            note("p_value", rate["p_value"], p_value)
            low, high = confint_proportions_2indep(
                new, new_runs, old, old_runs, compare="diff", method="newcomb", alpha=0.05
            )
            note("lower", rate["lower"], low)
            note("upper", rate["upper"], high)
        adjusted = multipletests(p_values, method="fdr_bh")[1]
        for rate, wanted in zip(comparison, adjusted):
            note("p_adjusted", rate["p_adjusted"], wanted)
    print(json.dumps(worst))


main()
