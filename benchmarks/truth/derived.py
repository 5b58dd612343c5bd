"""Studies of the checkout, changed for a measurement of their own."""

import re
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def derive_study(
    study: str, name: str, own: Mapping[str, str], changed: Mapping[str, str], workload: str | None = None
) -> Path:
    """Write a study of the checkout into this folder's `specs`, under another name.

    `own` are top-level keys whose text takes the place of the study's own, or is added; `changed` are patterns, and
    what they become elsewhere. Of several workloads one stays, if it is named.
    """
    text = (ROOT / f"specs/studies/{study}.yaml").read_text()
    for key in ("name", "watch", *own):
        text = re.sub(rf"(?m)^{key}:.*\n(?:[ #].*\n|\n)*", "", text)
    if workload is not None:
        text = re.sub(rf"(?m)^  (?!{workload}:)[\w-]+: {{records.*\n", "", text)
    for pattern, replacement in changed.items():
        text = re.sub(pattern, replacement, text)
    file = Path("specs/studies") / f"{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([f"name: {name}", text, *(f"{key}: {value}" for key, value in own.items())]) + "\n")
    return file
