"""How often is the property right that is proposed of a knob from its documentation?

Run `python benchmarks/expectations.py DIRECTORY`, where DIRECTORY holds the files `DATA-Function`, `DATA-NONE`,
`DATA-Optimization`, `DATA-Resource` and `DATA-Tradeoff` of CP-Detector's public labels (TimHe95/CP-Detector on GitHub,
`DATA 500 options`; He et al., ASE 2020): options of MySQL, MariaDB, PostgreSQL, Redis, MongoDB, httpd, Tomcat, Squid.
None of these systems is learned from, but for one table, which shows what such a model reaches when it learns from nine
tenths of the public labels as well. Without DIRECTORY only our own labels are judged, a sixth of the DBMSs at a time by
a model of the others; those of HBase (`hbase.json`), which is never learned from; and the `expect` that people wrote
into the specs. `agree` is the share that is right, `used` the share of those whose confidence reaches a bound.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
FOLDS, PUBLIC_FOLDS = 6, 10
BOUNDS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9)
AIM = 0.9
#: (right, guessed, confidence)
Judged = tuple[str, str | None, float]
#: name -> property and description
Labelled = Mapping[str, Mapping[str, Any]]


def read_public(directory: Path) -> list[Labelled]:
    """Return the public labels, each by itself, because systems share names."""
    lines = [
        (line, name) for file, name in FILES.items() for line in (directory / f"DATA-{file}").read_text().splitlines()
    ]
    options = [(*line.partition("\t"), name) for line, name in lines]
    return [{option: {"description": text, "property": name}} for option, _, text, name in options if option.strip()]


def judge(labelled: Iterable[Labelled], model: PropertyModel) -> Iterator[Judged]:
    """Yield a row for each label."""
    for knobs in labelled:
        for name, guess in model.propose(knobs).items():
            yield knobs[name]["property"], *guess


def judge_among_public(public: Sequence[Labelled], properties: Mapping[str, Labelled]) -> Iterator[Judged]:
    """Yield a row for each public label, guessed by a model of our labels and nine tenths of the public ones."""
    for fold in range(PUBLIC_FOLDS):
        learned = {str(number): knob for number, knob in enumerate(public) if number % PUBLIC_FOLDS != fold}
        yield from judge(public[fold::PUBLIC_FOLDS], PropertyModel({**properties, **learned}))


def judge_own(properties: Mapping[str, Labelled]) -> Iterator[Judged]:
    """Yield a row for each of our labels, guessed by a model of other DBMSs."""
    for fold in range(FOLDS):
        unseen = sorted(properties)[fold::FOLDS]
        model = PropertyModel({dbms: knobs for dbms, knobs in properties.items() if dbms not in unseen})
        yield from judge([properties[dbms] for dbms in unseen], model)


def judge_specs(properties: Mapping[str, Labelled], labelled: dict[str, Any]) -> Iterator[Judged]:
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


def show(title: str, rows: Iterable[Judged]) -> None:
    """Print the share that is right and used from each bound on, and the most that can be used at the aim."""
    judged = sorted(rows, key=lambda row: -row[2])
    hits = [right == guessed for right, guessed, _ in judged]
    print(f"{title}: {len(judged)}")
    for bound in BOUNDS:
        used = sum(confidence >= bound for *_, confidence in judged)
        if used:
            right = sum(hits[:used]) / used
            print(f"  confidence {bound:.1f} or more: {used / len(judged):5.2f} used, {right:5.3f} agree")
    most = max((used for used in range(1, len(hits) + 1) if sum(hits[:used]) >= AIM * used), default=0)
    print(f"  {AIM:.0%} agree of the surest {most / len(judged):.0%}")


def show_confusions(judged: Iterable[Judged]) -> None:
    """Print how often each property was guessed as each."""
    pairs = [(right, guessed) for right, guessed, _ in judged]
    names = sorted(FILES.values())
    print("  right \\ guessed " + " ".join(f"{name:>12}" for name in names))
    for right in names:
        print(f"  {right:15} " + " ".join(f"{pairs.count((right, guessed)):12}" for guessed in names))


def main() -> None:
    """Print a table for each kind of label."""
    labelled = read_labelled(SPECS)
    properties = read_properties(SPECS, labelled)
    model = PropertyModel(properties)
    if len(sys.argv) > 1:
        public = read_public(Path(sys.argv[1]))
        judged = list(judge(public, model))
        show("public labels", judged)
        show_confusions(judged)
        show("public labels, learned from as well, nine tenths at a time", judge_among_public(public, properties))
    own = list(judge_own(properties))
    show("our labels, of DBMSs that are not learned from", own)
    show_confusions(own)
    hbase = json.loads((Path(__file__).parent / "hbase.json").read_text())["knobs"]
    show("HBase", judge([{name: knob for name, knob in hbase.items() if "property" in knob}], model))
    show("`expect` of the specs", judge_specs(properties, labelled))


if __name__ == "__main__":
    main()
