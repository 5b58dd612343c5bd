"""Specs as nobody would write them: drawn from the JSON Schemas, mutated as data and as text, or just bytes."""

import copy
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from knobscope.specs.documents.schema import model_schemas

FOLDERS = {"dbms": "dbms", "device": "devices", "workload": "workloads", "generator": "generators", "study": "studies"}

_NUMBERS = [0, -1, 1.5, 2**63, 2**70, 1e99, 1e999, float("nan"), 5e-324, -0.0]
_WORDS = [
    *("", " ", "a", "on", "null", "~", "1e3", "18", "9.9.9", "0x10", "1_000", "2024-01-01", "1:30", ".inf", ".nan"),
    *("zipfian", "ycsb", "tpcc", "tpch", "server", "{", "}", "{data}", "{x}", "{0}", "{data.__class__}", "{knob!r}"),
    *("{path.x}", "{parameter.}", "{property}", "%s", "$(id)", "`id`", "a; b", "a=b", "A=B", "=", "#", "- a", "&a"),
    *("*a", "!!seq", "<<", "../x", "a/b", "/dev/zero", "/dev/null", "x" * 4000, "é", "\u202e", "\U0001f600"),
    *("a\nb", "a\tb", "\x00", "\x7f", "\ud800", "'", '"'),
]
_NESTED = [[], {}, [[]], [{}], [None], {"": ""}, {"a": None}, {1: 2}, {True: 1}, {1.5: [1]}, ["a", "a"], [1, 1.0, True]]
#: What gets into files by mistake, through a tool, or because somebody tries it.
ODD = [None, True, False, *_NUMBERS, *_WORDS, *_NESTED]
ODD_VALUES = st.sampled_from(ODD).map(copy.deepcopy)
#: Pieces of YAML, some of which only a parser understands.
PIECES = [
    *("!!seq ", "!!map ", "!!set ", "!!binary ", "!!timestamp ", "!!python/name:os.system ", "!x ", "! ", "!<x> "),
    *(
        "&a ",
        "*a",
        "<<: ",
        "? ",
        ": ",
        "- ",
        "-",
        "|",
        ">",
        "|+9",
        "{",
        "}",
        "[",
        "]",
        ",",
        "'",
        '"',
        "#",
        "~",
        "@",
        "%",
    ),
    *("%TAG ! x\n", "---\n", "...\n", "\n", "\t", "\r", "\r\n", "\x00", "\x85", "\u2028", "\ufeff", "\\", "é"),
    *('"\\0"', '"\\ud800"', '"\\UFFFFFFFF"', "1e999", ".inf", "9" * 400, "a: " * 3, "[" * 50, "{a: " * 20, "name: "),
]


@st.composite
def drawn_from_schema(draw: st.DrawFn, kind: str, files: list[Path]) -> Any:
    """Return one of the specs of a kind, a few keys of which have whatever the schema describes there.

    The rest is valid: a check of a whole spec, or of a part of it, is only made where nothing in it is wrong.
    """
    schema = model_schemas()[kind]
    path = draw(st.sampled_from([path for path in files if path.parent.name == FOLDERS[kind]]))
    data = yaml.safe_load(path.read_text())
    for key in draw(st.lists(st.sampled_from(sorted(schema["properties"])), min_size=1, max_size=2)):
        data[key] = _draw_node(draw, schema["properties"][key], schema, 1)
    return data


def _draw_node(draw: st.DrawFn, node: dict[str, Any], schema: dict[str, Any], depth: int) -> Any:
    while "$ref" in node or "anyOf" in node:
        node = (
            schema["$defs"][node["$ref"].rsplit("/", 1)[1]] if "$ref" in node else draw(st.sampled_from(node["anyOf"]))
        )
    if "enum" in node or "const" in node:
        return draw(st.sampled_from(node.get("enum", [node.get("const")])))
    kind = node.get("type")
    if kind == "object":
        return _draw_object(draw, node, schema, depth)
    if kind == "array":
        count = draw(st.integers(node.get("minItems", 0), min(node.get("maxItems", 3), 3)))
        return [_draw_node(draw, node.get("items", {}), schema, depth + 1) for _ in range(count)]
    return draw(_scalar(node))


def _draw_object(draw: st.DrawFn, node: dict[str, Any], schema: dict[str, Any], depth: int) -> Any:
    required, content = set(node.get("required", [])), {}
    for key, inner in node.get("properties", {}).items():
        if key in required or (depth < 4 and draw(st.booleans())):
            content[key] = _draw_node(draw, inner, schema, depth + 1)
    for pattern, inner in [*node.get("patternProperties", {}).items(), ("", node.get("additionalProperties"))]:
        for key in draw(st.lists(_text_like(pattern), max_size=2)) if isinstance(inner, dict) else ():
            content[key] = _draw_node(draw, inner, schema, depth + 1)
    return content


def _text_like(pattern: str) -> st.SearchStrategy[str]:
    known = st.sampled_from(
        ["flush", "size", "server", "disk", "mix", "tool", "restart", "load", "https://x.org", "18"]
    )
    return st.one_of(known, known, st.from_regex(pattern, fullmatch=True)) if pattern else known


def _scalar(node: dict[str, Any]) -> st.SearchStrategy[Any]:
    kind = node.get("type")
    low = node.get("minimum", node.get("exclusiveMinimum", -1000))
    high = node.get("maximum", node.get("exclusiveMaximum", 10**6))
    if kind == "integer":
        return st.integers(int(low), int(max(low, high)))
    if kind == "number":
        return st.floats(low, max(low, high))
    if kind == "boolean":
        return st.booleans()
    return _text_like(node.get("pattern", "")) if kind == "string" else ODD_VALUES


@st.composite
def mutated_data(draw: st.DrawFn, files: list[Path]) -> tuple[Path, Any]:
    """Return one of the files, and its data with some values replaced, removed, renamed or copied elsewhere."""
    path = draw(st.sampled_from(files))
    data = yaml.load(path.read_text(), yaml.BaseLoader if draw(st.integers(0, 9)) == 0 else yaml.SafeLoader)  # noqa: S506
    for _ in range(draw(st.integers(1, 4))):
        _mutate(draw, data)
    return path, data


def _mutate(draw: st.DrawFn, data: Any) -> None:
    containers = list(_containers(data))
    if not containers:
        return
    container = draw(st.sampled_from(containers))
    keys = list(container) if isinstance(container, dict) else list(range(len(container)))
    key = draw(st.sampled_from(keys)) if keys else "x"
    action = draw(st.sampled_from(["replace", "replace", "replace", "remove", "rename", "copy"]))
    if action == "remove" and keys:
        del container[key]
    elif action == "rename" and isinstance(container, dict) and keys:
        fresh = draw(ODD_VALUES.filter(lambda value: not isinstance(value, list | dict)))
        container[fresh] = container.pop(key)
    elif action == "copy":
        _put(container, key, copy.deepcopy(draw(st.sampled_from(containers))))
    else:
        _put(container, key, draw(ODD_VALUES))


def _put(container: Any, key: Any, value: Any) -> None:
    if isinstance(container, list) and key == "x":
        container.append(value)
    else:
        container[key] = value


def _containers(data: Any) -> Any:
    if isinstance(data, dict | list):
        yield data
        for inner in list(data.values() if isinstance(data, dict) else data):
            yield from _containers(inner)


@st.composite
def mutated_text(draw: st.DrawFn, files: list[Path]) -> tuple[Path, bytes]:
    """Return one of the files, and its text with pieces put in, cut out or repeated."""
    path = draw(st.sampled_from(files))
    text = path.read_text()
    for _ in range(draw(st.integers(1, 5))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.integers(0, 30)))
        action = draw(st.sampled_from(["insert", "insert", "replace", "cut", "repeat"]))
        piece = draw(st.sampled_from(PIECES)) if action in ("insert", "replace") else text[begin:end] * 2
        if action == "insert":
            end = begin
        text = text[:begin] + ("" if action == "cut" else piece) + text[end:]
    return path, text.encode("utf-8", "surrogatepass")


def write_yaml(data: Any) -> bytes:
    """Return data as YAML, in the spelling that hides the least."""
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=False, width=100).encode("utf-8", "surrogatepass")
