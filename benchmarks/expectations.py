"""How often is the property right that is proposed of a knob from its documentation?

Run `python benchmarks/expectations.py DIRECTORY`, where DIRECTORY holds the files `DATA-Function`, `DATA-NONE`,
`DATA-Optimization`, `DATA-Resource` and `DATA-Tradeoff` of CP-Detector's public labels (TimHe95/CP-Detector on GitHub,
`DATA 500 options`; He et al., ASE 2020): options of MySQL, MariaDB, PostgreSQL, Redis, MongoDB, httpd, Tomcat, Squid.
None of these systems is learned from. Without DIRECTORY only our own labels are judged, a sixth of the DBMSs at a time
by a model of the others, and the `expect` that people wrote into the specs. `agree` is the share that is right, `used`
the share of those whose confidence reaches a bound.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from knobscope.knob_texts import PropertyModel, propose_expectations, read_labelled, read_properties
from knobscope.specs import Dbms, read_spec

SPECS = Path(__file__).parents[1] / "specs/dbms"
FILES = {
    "Function": "function",
    "NONE": "none",
    "Optimization": "optimisation",
    "Resource": "resource",
    "Tradeoff": "trade_off",
}
FOLDS = 6
BOUNDS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9)
#: (right, guessed, confidence)
Judged = tuple[str, str | None, float]


def judge_public(directory: Path, model: PropertyModel) -> Iterator[Judged]:
    """Yield a row for each option of the public labels."""
    for file, name in FILES.items():
        for line in (directory / f"DATA-{file}").read_text().splitlines():
            option, _, text = line.partition("\t")
            if option.strip():
                ((guessed, confidence),) = model.propose({option: {"description": text}}).values()
                yield name, guessed, confidence


def judge_own(properties: dict[str, dict[str, dict[str, Any]]]) -> Iterator[Judged]:
    """Yield a row for each of our labels, guessed by a model of other DBMSs."""
    for fold in range(FOLDS):
        unseen = sorted(properties)[fold::FOLDS]
        model = PropertyModel({dbms: knobs for dbms, knobs in properties.items() if dbms not in unseen})
        for dbms in unseen:
            for name, guess in model.propose(properties[dbms]).items():
                yield properties[dbms][name]["property"], *guess


def judge_specs(properties: dict[str, dict[str, dict[str, Any]]], labelled: dict[str, Any]) -> Iterator[Judged]:
    """Yield a row for each knob whose spec has an `expect`, and for which one is proposed."""
    for path in sorted(SPECS.glob("*.yaml")):
        knobs = read_spec(path, Dbms, None)[1].knobs
        texts = labelled.get(path.stem, {})
        described = {
            name: {"type": knob.type, "description": texts.get(name, {}).get("description") or knob.description}
            for name, knob in knobs.items()
            if knob.expect is not None
        }
        for name, knob in propose_expectations(described, properties).items():
            proposal = knob.get("proposal", {})
            if "expect" in proposal:
                yield str(knobs[name].expect), proposal["expect"], proposal["confidence"]


def show(title: str, judged: Sequence[Judged]) -> None:
    """Print the share that is right and used from each bound on."""
    print(f"{title}: {len(judged)}")
    for bound in BOUNDS:
        used = [right == guessed for right, guessed, confidence in judged if confidence >= bound]
        if used:
            share, right = len(used) / len(judged), sum(used) / len(used)
            print(f"  confidence {bound:.1f} or more: {share:5.2f} used, {right:5.3f} agree")


def main() -> None:
    """Print a table for each kind of label."""
    labelled = read_labelled(SPECS)
    properties = read_properties(SPECS, labelled)
    if len(sys.argv) > 1:
        judged = list(judge_public(Path(sys.argv[1]), PropertyModel(properties)))
        show("public labels", judged)
        for name in FILES.values():
            of_property = [guessed == name for right, guessed, _ in judged if right == name]
            print(f"  {name:13} {sum(of_property)} of {len(of_property)}")
    show("our labels, of DBMSs that are not learned from", list(judge_own(properties)))
    show("`expect` of the specs", list(judge_specs(properties, labelled)))


if __name__ == "__main__":
    main()
