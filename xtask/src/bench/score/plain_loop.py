"""Scores a file of traces as a plain Python program would: json.loads, then the figures that the
suite of `cargo xtask bench score` asks for. Prints them."""

import json
import sys

CLASSES = [{"travel.search", "travel.find"}, {"travel.book"}]


def main(path):
    runs = failed = selected = over_budget = mismatches = 0
    true_positives = false_positives = false_negatives = 0
    tokens = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            trace = json.loads(line)
            calls = trace["tool_calls"]
            names = [call["name"] for call in calls]
            ids = [f'{call["server"]}.{call["name"]}' for call in calls]
            runs += 1
            holds = "city" in calls[0]["args"] and "booked" in trace["final_response"]
            failed += not holds
            # tool_selection
            total = trace["conversation"]["tokens"]["total"]
            tokens.append(total)
            selected += "book" in names
            over_budget += total > 5000
            # equal_function_sets
            called = set(ids)
            reached = sum(1 for members in CLASSES if members & called)
            true_positives += reached
            false_negatives += len(CLASSES) - reached
            expected = set().union(*CLASSES)
            false_positives += sum(1 for name in ids if name not in expected)
            # trajectory, as a superset
            mismatches += ("search" not in names) + ("book" not in names)
    tokens.sort()
    wrong = false_positives + false_negatives
    f1 = 200 * true_positives // (2 * true_positives + wrong)
    print(runs, failed, selected, over_budget, f1, mismatches, tokens[len(tokens) // 2])


main(sys.argv[1])
