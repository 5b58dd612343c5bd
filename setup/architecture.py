"""Draws the packages of knobscope from their imports: `python setup/architecture.py docs/architecture.svg`.

Floors and the order of stages are those of the import contracts in pyproject.toml. A package of the ground is drawn
above all that it imports; of the arrows between them only those are kept that no longer way implies.
"""

import ast
import sys
import tomllib
from collections.abc import Iterable
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/knobscope"
WIDTH, MARGIN, LABEL, GAP, HEIGHT = 1000, 16, 150, 10, 28
FLOORS = {
    "commands": "called by users",
    "workflow": "called by the Snakefile",
    "stages": "what a study does",
}
STYLE = """
text { font: 13px sans-serif; fill: #1f2430 }
.name { font-weight: bold }
.note { font-size: 11px; fill: #5b6472 }
.band { fill: #eef1f6; stroke: none }
.box { fill: #fff; stroke: #4a6fa5; stroke-width: 1.2 }
.edge { fill: none; stroke: #8a94a6; stroke-width: 1.2; marker-end: url(#tip) }
#tip path { fill: #8a94a6 }
.page { fill: #fff }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e9ef } .note { fill: #a5adba } .page { fill: #14171d } .band { fill: #1e232c }
  .box { fill: #2a303b; stroke: #7ea2d6 }
}
"""
Box = tuple[float, float, float]  # left, top, width


def read_layers(container: str) -> list[str]:
    """Return the layers of the contract about a package, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract.get("containers") == [container])
    return list(layers)


def read_imports() -> dict[str, set[str]]:
    """Return what each package or module directly below knobscope imports of the others."""
    graph = grimp.build_graph("knobscope", cache_dir=None)
    imports: dict[str, set[str]] = {}
    for module in graph.modules - {"knobscope"}:
        name = module.split(".")[1]
        targets = {target.split(".")[1] for target in graph.find_modules_directly_imported_by(module) if "." in target}
        imports.setdefault(name, set()).update(targets - {name})
    return imports


def reduce_imports(imports: dict[str, set[str]]) -> dict[str, set[str]]:
    """Leave out the imports that a longer way implies (transitive reduction)."""

    def reach(name: str) -> set[str]:
        return imports[name].union(*map(reach, imports[name]))

    return {name: targets - set[str]().union(*map(reach, targets)) for name, targets in imports.items()}


def measure_depths(imports: dict[str, set[str]]) -> dict[str, int]:
    """Return how many packages lie on the longest way down from each one."""

    def depth(name: str) -> int:
        return max((1 + depth(target) for target in imports[name]), default=0)

    return {name: depth(name) for name in imports}


def summarise(path: Path) -> str:
    """Return the first line of the docstring of a module or package."""
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return (ast.get_docstring(ast.parse(file.read_text())) or "").split("\n")[0]


def draw_box(name: str, path: Path, box: Box) -> str:
    """Return a box with the name; its summary shows under the mouse."""
    left, top, width = box
    return (
        f'<g><title>{escape(summarise(path))}</title><rect class="box" x="{left:g}" y="{top:g}" width="{width:g}" '
        f'height="{HEIGHT}" rx="5"/><text x="{left + width / 2:g}" y="{top + 18.5:g}" text-anchor="middle">{name}'
        "</text></g>"
    )


def widen(name: str) -> float:
    """Return the width of the box of a name."""
    return 7.4 * len(name) + 20


def draw_band(name: str, note: str, names: Iterable[str], top: float, *, ordered: bool) -> tuple[str, float]:
    """Return a floor with a box for each of its packages, and where it ends."""
    parts: list[str] = []
    gap = GAP + 12 if ordered else GAP
    x, y = float(MARGIN + LABEL), top + GAP
    for index, child in enumerate(names):
        if x + widen(child) > WIDTH - MARGIN - GAP:
            x, y = float(MARGIN + LABEL), y + HEIGHT + GAP
        elif ordered and index:
            parts.append(f'<path class="edge" d="M{x - gap + 2:g} {y + HEIGHT / 2:g}H{x - 3:g}"/>')
        parts.append(draw_box(child, SOURCE / name / child, (x, y, widen(child))))
        x += widen(child) + gap
    end = y + HEIGHT + GAP
    heading = (
        f'<rect class="band" x="{MARGIN}" y="{top:g}" width="{WIDTH - 2 * MARGIN}" height="{end - top:g}" rx="8"/>'
        f'<text x="{MARGIN + GAP}" y="{top + 20:g}" class="name">{name}/</text>'
        f'<text class="note" x="{MARGIN + GAP}" y="{top + 36:g}">{note}</text>'
    )
    return heading + "".join(parts), end


def draw_ground(imports: dict[str, set[str]], top: float) -> tuple[str, float]:
    """Return the packages that all floors share, in rows, and where they end."""
    depths = measure_depths(imports)
    highest = max(depths.values())
    step = HEIGHT + 40
    boxes: dict[str, Box] = {}
    for depth in range(highest + 1):
        # Each one stands over what it imports, so that few arrows cross.
        def middle(name: str) -> float:
            below = [boxes[target][0] + boxes[target][2] / 2 for target in imports[name]]
            return sum(below) / len(below) if below else WIDTH / 2

        row = sorted((name for name in imports if depths[name] == depth), key=lambda name: (middle(name), name))
        free = WIDTH - 2 * (MARGIN + GAP) - sum(map(widen, row))
        gap = free / (len(row) + 1)
        x = MARGIN + GAP + gap
        for name in row:
            boxes[name] = (x, top + 2 * GAP + (highest - depth) * step, widen(name))
            x += widen(name) + gap
    edges = []
    for name, targets in imports.items():
        for target in sorted(targets):
            (left, y, width), (other, below, breadth) = boxes[name], boxes[target]
            start, end, bottom = left + width / 2, other + breadth / 2, y + HEIGHT
            bend = (below - bottom) / 2
            edges.append(
                f'<path class="edge" d="M{start:g} {bottom:g}C{start:g} {bottom + bend:g} {end:g} {below - bend:g} '
                f'{end:g} {below - 3:g}"/>'
            )
    end = top + 2 * GAP + highest * step + HEIGHT + GAP
    band = f'<rect class="band" x="{MARGIN}" y="{top:g}" width="{WIDTH - 2 * MARGIN}" height="{end - top:g}" rx="8"/>'
    heading = (
        f'<text x="{MARGIN + GAP}" y="{top + 22:g}" class="name">ground</text>'
        f'<text class="note" x="{MARGIN + GAP}" y="{top + 38:g}">shared by all floors; arrows: imports</text>'
    )
    drawn = [draw_box(name, SOURCE / name, boxes[name]) for name in sorted(boxes)]
    return band + heading + "".join(edges) + "".join(drawn), end


def draw() -> str:
    """Return the drawing as SVG."""
    imports, layers = read_imports(), read_layers("knobscope")
    ordered = list(reversed(read_layers("knobscope.stages")))
    parts, y = [], float(MARGIN)
    for floor, note in FLOORS.items():
        inside = (SOURCE / floor).iterdir()
        names = {path.stem for path in inside if path.suffix == ".py" or (path / "__init__.py").exists()} - {"__init__"}
        part, y = draw_band(floor, note, ordered if floor == "stages" else sorted(names), y, ordered=floor == "stages")
        parts += [part, f'<path class="edge" d="M{WIDTH / 2:g} {y:g}v16"/>']
        y += 20
    ground = layers[layers.index("stages") + 1 :]
    part, y = draw_ground(reduce_imports({name: imports[name] & set(ground) for name in ground}), y)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + MARGIN:g}" role="img">'
        f"<title>The packages of knobscope</title><style>{STYLE}</style>"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z"/></marker></defs><rect class="page" width="{WIDTH}" height="{y + MARGIN:g}"/>'
        + "\n".join([*parts, part])
        + "</svg>\n"
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw(), encoding="utf-8")
