"""A second opinion on catalogs of tools, written from the documents of the rules and not from the code that it checks.

    python oracle.py RANKS FILE...

RANKS is what cl100k.py makes. Each FILE is a saved answer to
`tools/list`. Prints one JSON object per file and line: the tokens of each tool (name, description, compact input schema), and the findings of those rules
that the documents define exactly, each with the tool's place in the list and the place in the tool.
"""

import json
import re
import sys

import cl100k

HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]
COMBINATORS = ["anyOf", "oneOf", "allOf"]


def text_of(value):
    return value.strip() if isinstance(value, str) else ""


def objects(value):
    """The members of an object that are objects themselves; nothing for anything else."""
    return [(key, one) for key, one in value.items() if isinstance(one, dict)] if isinstance(value, dict) else []


def escaped(key):
    return key.replace("~", "~0").replace("/", "~1")


def schemas(schema, path):
    """A schema and all inside it: nested objects and lists, alternatives, definitions."""
    yield schema, path
    for key in ("properties", "patternProperties"):
        for name, inner in objects(schema.get(key)):
            yield from schemas(inner, f"{path}/{key}/{escaped(name)}")
    for key in ("$defs", "definitions"):
        for name, inner in objects(schema.get(key)):
            yield from schemas(inner, f"{path}/{key}/{escaped(name)}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from schemas(schema[key], f"{path}/{key}")
    for key in COMBINATORS + ["items", "prefixItems"]:
        if isinstance(schema.get(key), list):
            for place, inner in enumerate(schema[key]):
                if isinstance(inner, dict):
                    yield from schemas(inner, f"{path}/{key}/{place}")


def is_of(schema, name):
    kind = schema.get("type")
    return kind == name or isinstance(kind, list) and name in kind


def referred(schema, root):
    """The definition that a schema refers to within its document."""
    target = schema.get("$ref")
    if not isinstance(target, str) or not target.startswith("#/"):
        return None
    found = root
    for word in target[2:].split("/"):
        word = word.replace("~1", "/").replace("~0", "~")
        found = found.get(word) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def is_described(schema, root):
    for _ in range(32):
        if not isinstance(schema, dict):
            return False
        if text_of(schema.get("description")):
            return True
        schema = referred(schema, root)
    return False


def findings(tool):
    description = text_of(tool.get("description"))
    length = len(description)
    name = text_of(tool.get("name"))
    schema = tool.get("inputSchema")
    if not name:
        yield "TOOL-001", "/name"
    if not isinstance(schema, dict) or schema.get("type") != "object":
        yield "TOOL-002", "/inputSchema"
    schema = schema if isinstance(schema, dict) else {}
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    required = [one for one in required if isinstance(one, str)] if isinstance(required, list) else []

    if length < 20:
        yield "DESC-001", "/description"
    if length > 500:
        yield "DESC-002", "/description"
    words = lambda text: re.sub(r"[\s_-]+", " ", text).strip().lower()
    if words(description) == words(name) and description:
        yield "DESC-003", "/description"
    for argument in required:
        if not is_described(properties.get(argument), schema):
            yield "DESC-006", f"/inputSchema/properties/{escaped(argument)}"
    for argument, inner in objects(properties):
        if len(text_of(inner.get("description"))) > length:
            yield "DESC-008", f"/inputSchema/properties/{escaped(argument)}"
    plain = lambda one: isinstance(one, dict) and one.get("type") == "string"
    optional = lambda argument: argument not in required
    single = len(properties) == 1 and all(map(optional, properties)) and all(map(plain, properties.values()))
    trivial = not properties or single
    examples = lambda one: isinstance(one, dict) and isinstance(one.get("examples"), list)
    shown = lambda one: isinstance(one, dict) and any(key in one for key in ("examples", "example", "default"))
    if not trivial and not examples(tool) and not examples(schema) and not any(map(shown, properties.values())):
        yield "DESC-009", "/inputSchema"
    if description and not re.search("return|output|result", description, re.I) and not isinstance(tool.get("outputSchema"), dict):
        yield "DESC-010", "/description"
    annotations = tool.get("annotations")
    if isinstance(annotations, dict):
        for hint in HINTS:
            if hint in annotations and not isinstance(annotations[hint], bool):
                yield "DESC-011", f"/annotations/{hint}"
    else:
        yield "DESC-012", None

    for inner, path in schemas(schema, "/inputSchema"):
        if isinstance(inner.get("properties"), dict) and inner["properties"]:
            if not isinstance(inner.get("required"), list):
                yield "SCH-001", path
            if inner.get("additionalProperties") is not False:
                yield "SCH-002", path
        says = ["type", "enum", "const", "$ref", *COMBINATORS, "not"]
        if isinstance(inner.get("properties"), dict):
            for argument, value in inner["properties"].items():
                told = isinstance(value, dict) and any(key in value for key in says)
                # What is forbidden needs no type.
                if not told and value is not False:
                    yield "SCH-003", f"{path}/properties/{escaped(argument)}"
        bounds = ["maxLength", "enum", "const", "format", "pattern"]
        if is_of(inner, "string") and not any(key in inner for key in bounds):
            yield "SCH-004", path
        elif is_of(inner, "array") and "maxItems" not in inner:
            yield "SCH-004", path


def main():
    encode = cl100k.load(sys.argv[1])
    count = lambda text: len(encode.encode_ordinary(text))
    for path in sys.argv[2:]:
        catalog = json.load(open(path, encoding="utf-8"))
        tools = catalog["tools"] if isinstance(catalog, dict) else catalog
        out = {"tokens": [], "findings": []}
        for index, tool in enumerate(tools):
            if not isinstance(tool, dict):
                out["tokens"].append(0)
                out["findings"].append([index, "TOOL-001", None])
                continue
            parts = [tool.get("name"), tool.get("description")]
            if "inputSchema" in tool:
                parts.append(json.dumps(tool["inputSchema"], ensure_ascii=False, separators=(",", ":")))
            out["tokens"].append(sum(count(part) for part in parts if isinstance(part, str)))
            for rule, place in findings(tool):
                out["findings"].append([index, rule, place])
        print(json.dumps(out))


main()
