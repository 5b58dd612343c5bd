"""Which knobs of a DBMS steer I/O, of a DBMS that nobody has read up on? Guesses against the labels.

Run `python benchmarks/mechanisms.py`. Each DBMS of `specs/dbms/catalogue` is guessed by a model that saw the others
alone, without its relatives, as `knobscope introspect` guesses a DBMS of one's own: by words, and, where its server is
installed, by words and code; then with the labels of its relatives, as it guesses a new version or a fork. Precision
and recall are of "steers a mechanism of I/O"; `named` is the share of the knobs rightly found whose mechanism is right,
too. Beside it stands a search for words that anybody would look for. He et al. (PVLDB 16(7), 2023) reach a precision of
.700 and a recall of .898 with taint analysis of the source code, on labels of their own. At the end stand the means of
all lists of `specs/dbms/labelled`, each guessed in the same way, and as if there were only the catalogues.
`python benchmarks/mechanisms.py mariadb` names the knobs of one DBMS that are missed and those that are wrong, by words
and code, and scores the guesses that are surer than a bound of the log odds.

HBase (`hbase.json`) is never learned from. Its labels were made, by a language model, before the lists were, and
figures of it were printed beside all others while these choices were made, but decided none:

- with PostgreSQL, MariaDB and Redis in view: what a concept counts, from when a guess is sure, how often is learned
  from those, and how much neighbours in the code count, among some 170 variants; the words of the concepts, by somebody
  who had seen what was guessed wrongly; and how much a way to a request counts, among four values;
- with the lists in view: the strength of regularisation, among five values. Of kernel machines, pairs of
  words, sentence encoders, and weights per list, tried on these and the servers, none was taken.
"""

import json
import re
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from knobscope.knob_texts.mechanisms import MechanismModel, guess_mechanisms, read_labelled
from knobscope.machine_code import Code, Program, find_server, read_code
from knobscope.specs import Dbms, read_spec

SPECS = Path(__file__).parents[1] / "specs/dbms"
#: DBMSs whose servers keep settings in variables of a program for x86-64. MySQL's is left out: where it is not
#: installed, `mysqld` is MariaDB.
COMPILED = ("postgresql", "postgresql18", "mariadb", "redis", "valkey")
Labelled = dict[str, dict[str, dict[str, Any]]]
#: Versions and forks, and those that hand on another one's settings or began with its code.
RELATIVES = [
    {"postgresql", "postgresql18"},
    {"mariadb", "mysql"},
    {"redis", "valkey"},
    {"rocksdb", "tikv", "arangodb", "yugabytedb", "kudu", "impala", "doris", "ceph"},
    {"mongodb", "wiredtiger"},
]
#: Bounds of the log odds.
SURE = (0, 1, 1.5, 2)
SEARCHED = re.compile("sync|flush|wal|log|buffer|cache|write|read|page|block|disk|file|compact|vacuum|checkpoint", re.I)


def score(found: set[str], true: set[str]) -> tuple[float, float]:
    """Return precision and recall."""
    hits = len(found & true)
    return hits / max(len(found), 1), hits / max(len(true), 1)


def steering(mechanisms: Mapping[str, str]) -> set[str]:
    """Return the knobs that steer any mechanism of I/O."""
    return {name for name, mechanism in mechanisms.items() if mechanism != "other"}


def read_server(dbms: str, knobs: Collection[str]) -> Code | None:
    """Return what the code of the server says of its knobs, if it is installed."""
    if dbms not in COMPILED:
        return None
    program = find_server(read_spec(SPECS / f"{dbms}.yaml", Dbms, None)[1])
    return None if program is None else read_code(Program(program), knobs)


def guess(dbms: str, knobs: dict[str, dict[str, Any]], learned: Labelled, code: Code | None) -> dict[str, str]:
    """Return what `knobscope introspect` says of knobs whose mechanisms it does not know."""
    unknown = {name: {**knob, "mechanism": "other"} for name, knob in knobs.items()}
    return {name: str(knob["mechanism"]) for name, knob in guess_mechanisms(dbms, unknown, learned, code).items()}


def leave_out_relatives(labelled: Labelled, dbms: str) -> Labelled:
    """Return the labels of all that are no relatives of a DBMS."""
    relatives = next((family for family in RELATIVES if dbms in family), {dbms})
    return {name: labels for name, labels in labelled.items() if name not in relatives}


def judge_catalogue(dbms: str, knobs: dict[str, dict[str, Any]], labelled: Labelled) -> None:
    """Print a row per way to guess: by words, with its code where that can be read, with its relatives."""
    foreign = {name: knob_labels for name, knob_labels in labelled.items() if name != dbms}
    strangers = leave_out_relatives(labelled, dbms)
    code = read_server(dbms, knobs)
    ways: dict[str, tuple[Labelled, Code | None]] = {"words": (strangers, None)}
    if code is not None:
        ways["words and code"] = strangers, code
    if len(strangers) < len(foreign):
        ways["and a relative"] = foreign, code
    labels = {name: knob["mechanism"] for name, knob in knobs.items()}
    true = steering(labels)
    searched = score({name for name in knobs if SEARCHED.search(name)}, true)
    for way, (learned, evidence) in ways.items():
        guessed = guess(dbms, knobs, learned, evidence)
        positives = steering(guessed)
        named = sum(guessed[name] == labels[name] for name in positives & true) / max(len(positives & true), 1)
        figures = f"{score(positives, true)[0]:9.2f} {score(positives, true)[1]:6.2f} {named:6.2f}"
        beside = f"{searched[0]:33.2f} {searched[1]:6.2f}"
        print(f"{dbms:14} {len(knobs):5} {len(true):7}   {way:15} {figures}{beside}", flush=True)


def judge_lists(labelled: Labelled, catalogues: Collection[str]) -> None:
    """Print the means of all lists that are no catalogues: guessed from all others, and from catalogues alone."""
    from_catalogues = {name: labels for name, labels in labelled.items() if name in catalogues}
    lists = {name: labels for name, labels in labelled.items() if name not in catalogues}
    for way, learned in {"catalogues": from_catalogues, "and other lists": labelled}.items():
        scores = []
        for dbms, knobs in lists.items():
            guessed = guess(dbms, knobs, leave_out_relatives(learned, dbms), None)
            true = steering({name: knob["mechanism"] for name, knob in knobs.items()})
            scores.append(score(steering(guessed), true))
        precision, recall = (sum(figures) / len(scores) for figures in zip(*scores, strict=True))
        print(f"mean of {len(lists)} lists, by words, from {way:15} {precision:9.2f} {recall:6.2f}", flush=True)


def explain(dbms: str, knobs: dict[str, dict[str, Any]], labelled: Labelled) -> None:
    """Print precision and recall of the guesses that are surer than a bound, and all that are wrong."""
    odds = MechanismModel(leave_out_relatives(labelled, dbms)).odds(knobs, read_server(dbms, knobs))
    true = steering({name: knob["mechanism"] for name, knob in knobs.items()})
    for bound in SURE:
        sure = {name for name in knobs if abs(odds[name]) >= bound}
        precision, recall = score({name for name in sure if odds[name] > 0}, true & sure)
        print(f"log odds beyond {bound}: {len(sure) / len(knobs):.2f} of the knobs, {precision:.2f} {recall:.2f}")
    for name in sorted(knobs, key=odds.__getitem__):
        if (odds[name] > 0) != (name in true):
            print(f"{odds[name]:6.2f} {knobs[name]['mechanism']:14} {name}: {knobs[name].get('description') or '':.80}")


def main() -> None:
    """Print the rows of all catalogues, of HBase, and the means of the lists; or what is wrong about one DBMS."""
    labelled = read_labelled(SPECS)
    if len(sys.argv) > 1:
        explain(sys.argv[1], labelled[sys.argv[1]], labelled)
        return
    catalogues = {path.stem for path in (SPECS / "catalogue").glob("*.json")}
    unseen = json.loads((Path(__file__).parent / "hbase.json").read_text())
    print(f"{'':14} knobs  of I/O   guessed by      precision recall  named   words searched for: precision recall")
    for dbms in sorted(catalogues):
        judge_catalogue(dbms, labelled[dbms], labelled)
    judge_catalogue(unseen["dbms"], unseen["knobs"], labelled)
    judge_lists(labelled, catalogues)


if __name__ == "__main__":
    main()
