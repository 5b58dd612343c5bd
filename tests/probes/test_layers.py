"""What is privileged imports the standard library, bcc and its own modules: each only from layers below its own.

Nor does a BPF program or header include what includes it, by name: `block.bpf.c` and a `block.bpf.h` would be one.

The modules are no package, because the system's Python runs them from their directory: import-linter cannot see them.
"""

import ast
import re
import sys
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PROBES = Path(__file__).parents[2] / "probes"
#: From what runs first down to what knows nothing of the others; modules of one layer do not import each other.
LAYERS = (
    {"monitor"},
    {"light"},
    {"block_profile", "event_trace", "faults", "in_place", "syscalls", "waits", "warden"},
    {"counters"},
    {"epochs", "needs", "origins", "typed"},
    {"file_of", "probe"},
    {"program", "wait_calls"},
    {"calls", "cgroup", "compiling", "disk"},
    {"followed"},
    {"kernel"},
    {"bpf", "btf", "buckets", "kept", "patterns", "wait_reasons"},
)
MODULES = set().union(*LAYERS)


def list_imports(source: str) -> set[str]:
    """Return the top-level modules that a source imports, also within functions."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.split(".")[0] for name in names}


def list_faults(module: str, source: str) -> set[str]:
    """Return what a module imports and may not."""
    depth = next(depth for depth, layer in enumerate(LAYERS) if module in layer)
    below = set().union(*LAYERS[depth + 1 :])
    return list_imports(source) - below - (sys.stdlib_module_names - MODULES) - {"bcc"}


def test_every_module_has_a_layer() -> None:
    assert {path.stem for path in PROBES.glob("*.py")} == MODULES
    assert sum(map(len, LAYERS)) == len(MODULES)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_lead_down(module: str) -> None:
    assert list_faults(module, (PROBES / f"{module}.py").read_text()) == set()


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("import numpy", "numpy"),
        ("def f():\n    from knobscope.errors import SpecError", "knobscope"),
        ("from . import kernel", ""),
        ("import disk", "disk"),
        ("from counters import Counters", "counters"),
    ],
)
def test_other_imports_are_faults(source: str, fault: str) -> None:
    assert list_faults("disk", f"import os\nimport bcc.table\nfrom kernel import Kernel\n{source}") == {fault}


def find_loop(sources: Mapping[str, str]) -> list[str]:
    """Return the names that include each other in a circle, the first one again at the end; nothing where none do."""
    includes: dict[str, set[str]] = {}
    for file, text in sources.items():
        headers = re.findall(r'^#include "(.+)"$', text, re.MULTILINE)
        includes.setdefault(file.split(".")[0], set()).update(header.split(".")[0] for header in headers)
    try:
        TopologicalSorter(includes).prepare()
    except CycleError as cycle:
        loop: list[str] = cycle.args[1]
        return loop
    return []


def test_no_header_includes_what_includes_it() -> None:
    sources = {path.name: path.read_text() for path in PROBES.glob("*.bpf.[ch]")}
    assert len(sources) > 20
    assert find_loop(sources) == []


@pytest.mark.parametrize(
    "sources",
    [
        {"a.bpf.h": '#include "b.bpf.h"\n', "b.bpf.h": '#include "a.bpf.h"\n'},
        {"a.bpf.c": '#include "b.bpf.h"\n', "b.bpf.h": '#include "a.bpf.h"\n', "a.bpf.h": ""},
    ],
)
def test_a_loop_of_headers_is_found(sources: Mapping[str, str]) -> None:
    assert set(find_loop(sources)) == {"a", "b"}
