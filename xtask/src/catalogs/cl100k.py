"""The encoding cl100k_base: OpenAI's tokenizer (PyPI tiktoken), which would fetch its ranks from the network, with those of the npm package js-tiktoken.

    python cl100k.py PACKED RANKS

turns the file `cl100k_base.cjs` of that package into the form that OpenAI publishes: lines of `TOKEN RANK`, the token in base64.
"""

import base64
import json
import re
import sys

# As OpenAI publishes it with the encoding.
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TOKENS = 100256


def load(path):
    import tiktoken

    with open(path, "rb") as file:
        pairs = (line.split() for line in file.read().splitlines())
        ranks = {base64.b64decode(token): int(rank) for token, rank in pairs}
    assert len(ranks) == TOKENS, len(ranks)
    return tiktoken.Encoding("cl100k_base", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})


def unpacked(text):
    """Of lines of `! OFFSET TOKEN TOKEN ...`, whose ranks count up from the offset."""
    packed = max(re.findall(r'"((?:[^"\\]|\\.)*)"', text), key=len)
    for line in json.loads(f'"{packed}"').split("\n"):
        words = line.split(" ")
        for place, token in enumerate(words[2:]):
            yield token, int(words[1]) + place


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as source:
        lines = [f"{token} {rank}\n" for token, rank in unpacked(source.read())]
    assert len(lines) == TOKENS, len(lines)
    with open(sys.argv[2], "w", encoding="ascii") as target:
        target.writelines(lines)
