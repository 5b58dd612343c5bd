"""docs/reference/specs.md: every key of every spec, generated from the models, so that it cannot be out of date."""

from pathlib import Path
from typing import Any

from knobscope.specs.documents.schema import model_schemas
from knobscope.specs.models.template import PATH_PLACEHOLDERS, PLACEHOLDERS, URL

Schema = dict[str, Any]

_FILES = {
    "dbms": "specs/dbms/NAME.yaml",
    "device": "specs/devices/NAME.yaml",
    "workload": "specs/workloads/NAME.yaml",
    "generator": "specs/generators/NAME.yaml",
    "study": "specs/studies/NAME.yaml",
    "rule": "rules/mismatch/NAME/rule.yaml",
    "exclusions": "specs/exclusions/NAME.yaml",
}
_HEAD = """\
# Reference of the specs

Generated from the models in `src/knobscope/specs/` by `knobscope schema`; do not edit.

A spec is a YAML file whose name is its `name`. Unknown keys are errors. Only `true` and `false` are booleans: `on`,
`off`, `yes` and `no` are text. Aliases (`&`, `*`) are not used. `knobscope validate` checks all files and reports all
problems at once.
"""
_BOUNDS = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "up to", "exclusiveMaximum": "below"}


def render_reference() -> str:
    """Return the text of the page."""
    parts = [_HEAD]
    for kind, schema in model_schemas().items():
        definitions = schema.get("$defs", {})
        parts.append(f"## {kind} (`{_FILES[kind]}`)\n\n{_render_model(schema)}")
        parts += [f"### {name}\n\n{_render_model(definitions[name])}" for name in _order(schema)]
    parts += [_render_placeholders(), _render_requires()]
    return "\n".join(parts)


def write_reference(path: Path) -> Path:
    """Write the page; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_reference(), encoding="utf-8")
    return path


def _order(schema: Schema) -> list[str]:
    """Return the names of the models below a model in the order in which a reader meets them."""
    definitions: dict[str, Schema] = schema.get("$defs", {})
    names: list[str] = []
    waiting = _references(schema.get("properties", {}))
    while waiting:
        name = waiting.pop(0)
        if name not in names:
            names.append(name)
            waiting = _references(definitions[name]) + waiting
    return names


def _references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [name for item in node for name in _references(item)]
    if isinstance(node, dict):
        own = [node["$ref"].rsplit("/", 1)[1]] if "$ref" in node else []
        return own + [name for value in node.values() for name in _references(value)]
    return []


def _render_model(schema: Schema) -> str:
    required = set(schema.get("required", []))
    rows = [
        f"| `{key}` | {_render_type(node)}{_render_default(node, key in required)} | {_cell(node['description'])} |"
        for key, node in schema["properties"].items()
    ]
    table = "\n".join(["| key | value | meaning |", "|---|---|---|", *rows])
    return f"{schema['description']}\n\n{table}\n"


def _render_type(node: Schema) -> str:
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    for key in ("anyOf", "oneOf"):
        if key in node:
            return _render_union([_render_type(branch) for branch in node[key] if branch.get("type") != "null"])
    for key in ("enum", "const"):
        if key in node:
            values = node[key] if key == "enum" else [node[key]]
            return ", ".join(f"`{value}`" for value in values)
    if node.get("type") == "array":
        return f"list: {_render_type(node['items'])}"
    if node.get("type") == "object":
        names = node.get("propertyNames", {})
        keys = _render_type(names) if "enum" in names else "name"
        free = next(iter(node.get("patternProperties", {}).values()), None) or node["additionalProperties"]
        return f"{keys} → {_render_type(free) if isinstance(free, dict) else 'anything'}"
    return _render_plain(node)


def _render_plain(node: Schema) -> str:
    if "examples" in node:
        return f"text, e.g. `{node['examples'][0]}`"
    plain = str({"string": "text", "boolean": "true, false"}.get(node["type"], node["type"]))
    bounds = [f"{word} {node[key]}" for key, word in _BOUNDS.items() if key in node]
    return " ".join([plain, *bounds])


def _render_union(branches: list[str]) -> str:
    if "number" in branches:
        branches = [branch for branch in branches if branch != "integer"]
    return "any value" if set(branches) == {"true, false", "number", "text"} else " or ".join(branches)


def _render_default(node: Schema, required: bool) -> str:
    if required:
        return "; required"
    default = node.get("default")
    if default is None or default in ({}, []):
        return ""
    if isinstance(default, dict):
        return "; default as below"
    return f"; default `{str(default).lower() if isinstance(default, bool) else default}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _render_placeholders() -> str:
    rows = [f"| `{{{name}}}` | {meaning} |" for name, meaning in PLACEHOLDERS.items()]
    head = (
        "Commands, properties and statements of a DBMS may contain these; `{{` and `}}` stand for plain braces. "
        f"{', '.join(f'`{{{name}:{URL}}}`' for name in PATH_PLACEHOLDERS)} are these paths percent-encoded, as part of "
        "a URL: `ldapi://{socket:url}%2Fs`."
    )
    return "\n".join(["## Placeholders", "", head, "", "| placeholder | stands for |", "|---|---|", *rows, ""])


def _render_requires() -> str:
    from knobscope.specs.models import expression as language

    text = (language.__doc__ or "").replace("``", "`").split("\n\n", 1)[1].strip()
    names = ", ".join(f"`{name}`" for name in sorted(language.WORKLOAD_NAMES))
    return (
        f"## The language of `requires`\n\n{text}\n\n`WORKLOAD_NAMES` are {names}: facts of the workload, not knobs.\n"
    )
