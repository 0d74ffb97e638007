"""A second opinion on catalogs of tools, written from the documents of the rules and not from the code that it checks.

    python oracle.py RANKS FILE...

RANKS is what cl100k.py makes. Each FILE is a saved answer to
`tools/list`. Prints one JSON object per file and line: the tokens of each tool (name, description, compact input schema), the findings of those rules
that the documents define exactly, each with the tool's place in the list, the place in the tool and the severity, and two bounds for the four rules that are
defined by example: what `must` be found, because it is the documents' own case, and what `may` be found, because nothing in the documents forbids it.
"""

import json
import re
import sys

import cl100k

HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]
COMBINATORS = ["anyOf", "oneOf", "allOf"]
CRITICAL = ["DESC-001", "DESC-003", "SCH-003", "TOOL-001", "TOOL-002"]
# Verbs that nobody calls uncommon, and that are hardly ever nouns. A description with one of them has a verb.
VERBS = """get create delete update return retrieve fetch find send add remove execute generate provide allow convert
    extract analyze calculate manage insert modify rename install uninstall enable disable fill append""".split()
# Without any of these, nothing in a text points to a place around it.
DIRECTIONS = r"above|below|previous|next|earlier|later|preceding|following|last|first|former|latter|prior|before|after|aforementioned|here|top|bottom"


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


def allowed(schema, root, depth=0):
    """The values of an enum, also of one that is referred to or an alternative. What has no letters cannot be mentioned."""
    values = schema.get("enum")
    values = list(values) if isinstance(values, list) else [schema["const"]] if depth and "const" in schema else []
    inner = [one for key in COMBINATORS if isinstance(schema.get(key), list) for one in schema[key]]
    for one in [*inner, referred(schema, root)]:
        if isinstance(one, dict) and depth < 8:
            values += allowed(one, root, depth + 1)
    return [value for value in values if value is not None and value != ""]


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
    if description and not re.search(r"\b(?:return(?:s|ed|ing)?|outputs?|result(?:s|ed|ing)?)\b", description, re.I) and not isinstance(tool.get("outputSchema"), dict):
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
            # Once for each place.
            yield "SCH-004", path


def bounds(tool):
    """Of the rules that the documents define by example: what must be found, and what may be (with `must` false)."""
    description = text_of(tool.get("description"))
    low = description.lower()
    words = re.findall(r"[a-z]+", low)
    # "Description contains no common verb". Of an empty one DESC-001 speaks already.
    forms = {form for verb in VERBS for form in (verb, verb + "s", verb + "es", re.sub("y$", "ies", verb))}
    if description and not forms.intersection(words):
        yield "DESC-004", "/description", False
    # "Positional phrases", of which two are named.
    if re.search(DIRECTIONS, low):
        yield "DESC-005", "/description", bool(re.search(r"\bsee above\b|\bprevious tool\b", low))
    schema = tool.get("inputSchema")
    for argument, inner in objects(schema.get("properties") if isinstance(schema, dict) else None):
        place = f"/inputSchema/properties/{escaped(argument)}"
        told = text_of(inner.get("description") or (referred(inner, schema) or {}).get("description")).lower()
        values = allowed(inner, schema)
        if values and told:
            # "Has a description but does not mention the enum values": sure if none is in it in any way, and ruled out if all are words of it.
            spelled = [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]
            spelled = [value.strip().lower() for value in spelled]
            if not all(re.search(rf"(?<!\w){re.escape(value)}(?!\w)", told) for value in spelled):
                yield "DESC-007", place, "enum" in inner and not any(re.search(rf"(?<!\w){re.escape(value)}(?!\w)", told) for value in spelled)
        # "A string (or untyped) argument whose schema declares no enum but whose description spells out a fixed set of allowed values".
        stringy = "type" not in inner or is_of(inner, "string")
        listed = re.search(r"[,/|;:\n]|\bor\b|\band\b", told)
        if not values and stringy and listed:
            typed = inner.get("type") == "string" and "const" not in inner
            # The documents' example: "the new status, one of open, closed, or pending".
            yield "DESC-013", place, typed and bool(re.search(r"^[\w ]+, one of \w+, \w+, or \w+\.?$", told))


def main():
    encode = cl100k.load(sys.argv[1])
    count = lambda text: len(encode.encode_ordinary(text))
    for path in sys.argv[2:]:
        catalog = json.load(open(path, encoding="utf-8"))
        tools = catalog["tools"] if isinstance(catalog, dict) else catalog
        out = {"tokens": [], "findings": [], "must": [], "may": []}
        for index, tool in enumerate(tools):
            if not isinstance(tool, dict):
                out["tokens"].append([0, 0, 0])
                out["findings"].append([index, "TOOL-001", None, "critical"])
                continue
            parts = [tool.get("name"), tool.get("description"), None]
            if "inputSchema" in tool:
                parts[2] = json.dumps(tool["inputSchema"], ensure_ascii=False, separators=(",", ":"))
            out["tokens"].append([count(part) if isinstance(part, str) else 0 for part in parts])
            severity = lambda rule: "critical" if rule in CRITICAL else "warning"
            for rule, place in findings(tool):
                out["findings"].append([index, rule, place, severity(rule)])
            for rule, place, certain in bounds(tool):
                finding = [index, rule, place, severity(rule)]
                out["may"].append(finding)
                if certain:
                    out["must"].append(finding)
        print(json.dumps(out))


main()
