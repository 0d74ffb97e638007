"""Prices a catalog with OpenAI's tokenizer: python count.py RANKS CATALOG. Prints the tokens, and how long each step took in seconds.

RANKS is what cl100k.py makes.
"""

import json
import sys
import time

import cl100k

began = time.perf_counter()
encoding = cl100k.load(sys.argv[1])
loaded = time.perf_counter()
with open(sys.argv[2], encoding="utf-8") as file:
    tools = json.load(file)["tools"]
texts = []
for tool in tools:
    texts += [tool["name"], tool.get("description") or ""]
    texts.append(json.dumps(tool["inputSchema"], ensure_ascii=False, separators=(",", ":")))
read = time.perf_counter()
tokens = sum(len(encoding.encode_ordinary(text)) for text in texts)
counted = time.perf_counter()
print(json.dumps({"tokens": tokens, "load": loaded - began, "read": read - loaded, "count": counted - read}))
