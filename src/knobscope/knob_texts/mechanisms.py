"""Guesses which I/O mechanism a knob steers, by its name, the DBMS's own sentence about it, and its code.

The shipped catalogues say of each of their knobs which mechanism it steers, after a reading of its documentation, and
so do lists of other DBMSs' settings. What a new version or a fork calls by the same name steers the same. For other
knobs a linear model of words, parts of words and concepts learns from all that is labelled and guesses. It then learns
from those of its guesses that it is sure of, and so the words of this DBMS that no other one has (self-training:
Yarowsky, ACL 1995); and where the DBMS's program can be read, knobs that are read by the same part of it count for each
other, a knob counts more when calls lead from where it is read to a request to storage, and one that nothing reads
steers nothing. How often this is right about a DBMS that it has not seen is measured by `benchmarks/mechanisms.py`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from knobscope.knob_texts.features import OF_MANY, OF_TWO, Text, make_features, make_regression, read_text, read_texts
from knobscope.machine_code import Code, compare_neighbours
from knobscope.specs import KnobCatalogue, LabelledSettings, read_knob_catalogue, read_labelled_settings
from knobscope.statistics.arrays import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_OTHER = "other"
#: Log odds at which a guess is sure enough to be learned from with half its weight or so, and how often that is done.
_SURE, _ROUNDS = 1.0, 3
#: Log odds by which the knobs that are read in addition to a knob count at most.
_MOST_BY_NEIGHBOURS = 0.5
#: Log odds that a way from a reader to a request to storage counts, and that no such way counts against a knob. Of the
#: knobs of I/O of PostgreSQL, MariaDB and Redis 47 to 78 % have one, of the others 18 to 28 %, which makes 1 for it and
#: .4 to 1.2 against it; but part of that the words have said already.
_BY_A_WAY = 0.75
#: DBMSs that share so many of their settings' names are relatives: versions and forks share 56 % and more, others at
#: most 8 %.
_RELATED, _FEWEST_SHARED = 0.25, 10


class MechanismModel:
    """Fitted to labelled knobs (name -> its description, unit and mechanism, by DBMS)."""

    def __init__(self, labelled: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
        rows = {
            (read_text(name, knob), str(knob["mechanism"])): None
            for knobs in labelled.values()
            for name, knob in knobs.items()
        }  # what two versions of a DBMS say in the same words counts once
        self._texts, self._mechanisms = [text for text, _ in rows], np.array([mechanism for _, mechanism in rows])
        self._steers = self._mechanisms != _OTHER

    def odds(self, knobs: Mapping[str, Mapping[str, Any]], code: Code | None = None) -> dict[str, float]:
        """Return the logarithm of the odds that a knob steers any mechanism of I/O, of all knobs of one DBMS.

        They are minus infinity of a knob of which the DBMS says that it does nothing, and of one that nothing reads.
        """
        texts = read_texts(knobs)
        return dict(zip(knobs, self._learn(*self._transform(texts), texts, list(knobs), code).tolist(), strict=True))

    def guess(self, knobs: Mapping[str, Mapping[str, Any]], code: Code | None = None) -> dict[str, str]:
        """Return the mechanism of each knob of a DBMS; `other` where it steers none."""
        texts = read_texts(knobs)
        labelled, unlabelled = self._transform(texts)
        odds = self._learn(labelled, unlabelled, texts, list(knobs), code)
        named = (
            make_regression(**OF_MANY).fit(labelled[self._steers], self._mechanisms[self._steers]).predict(unlabelled)
        )
        return {
            name: str(mechanism) if chance > 0 else _OTHER
            for name, mechanism, chance in zip(knobs, named, odds, strict=True)
        }

    def _transform(self, texts: Sequence[Text]) -> "tuple[csr_matrix, csr_matrix]":
        """Return the features of the labelled knobs, and of some others, whose words count as well."""
        features = make_features().fit([*self._texts, *texts])
        return features.transform(self._texts).tocsr(), features.transform(texts).tocsr()

    def _learn(
        self,
        labelled: "csr_matrix",
        unlabelled: "csr_matrix",
        texts: Sequence[Text],
        names: Sequence[str],
        code: Code | None,
    ) -> Floats:
        """Return log odds: learn from the labels, and then from the guesses, each by how sure it is."""
        from scipy.sparse import vstack

        odds = _add_code(
            make_regression(**OF_TWO).fit(labelled, self._steers).decision_function(unlabelled), names, code
        )
        all_features = vstack([labelled, unlabelled])
        for _ in range(_ROUNDS):
            steers = np.concatenate([self._steers, odds > 0])
            weights = np.concatenate([np.ones(len(self._steers)), np.tanh(np.abs(odds) / _SURE) ** 2])
            learned = make_regression(**OF_TWO).fit(all_features, steers, sample_weight=weights)
            odds = _add_code(learned.decision_function(unlabelled), names, code)
        unread = code.unread if code is not None else frozenset()
        has_effect = [text.has_effect and name not in unread for text, name in zip(texts, names, strict=True)]
        return np.where(has_effect, odds, -np.inf)


def _add_code(odds: Floats, names: Sequence[str], code: Code | None) -> Floats:
    """Return log odds with what the code says: the knobs that are read in addition to each one, and ways to storage."""
    if code is None or not any(code.readers.values()):
        return odds
    near = compare_neighbours(dict(zip(names, odds.tolist(), strict=True)), code)
    neighbours = np.clip([near[name] for name in names], -_MOST_BY_NEIGHBOURS, _MOST_BY_NEIGHBOURS)
    has_a_way = np.array([code.nearest(name) is not None for name in names])
    return np.asarray(odds + neighbours + np.where(has_a_way, _BY_A_WAY, -_BY_A_WAY))


def read_labelled(specs: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the knobs of all catalogues, and the labelled settings of other DBMSs, by DBMS; `specs` is `specs/dbms`.

    SpecErrors for a file that holds something else.
    """
    catalogues = [read_knob_catalogue(file) for file in sorted((specs / "catalogue").glob("*.json"))]
    settings = [read_labelled_settings(file) for file in sorted((specs / "labelled").glob("*.json"))]
    labelled: dict[str, dict[str, dict[str, Any]]] = {}
    for source in [*catalogues, *settings]:  # of a DBMS that has both, the settings have texts
        if source is not None:
            labelled[source.dbms] = {**labelled.get(source.dbms, {}), **_entries(source)}
    return labelled


def _entries(listed: KnobCatalogue | LabelledSettings) -> dict[str, dict[str, Any]]:
    return {name: knob.model_dump() for name, knob in listed.knobs.items()}


def guess_mechanisms(
    dbms: str,
    knobs: Mapping[str, dict[str, Any]],
    labelled: Mapping[str, Mapping[str, Mapping[str, Any]]],
    code: Code | None = None,
) -> dict[str, dict[str, Any]]:
    """Return knobs with their mechanism: known of this DBMS or of a relative, by name, or else guessed.

    Without labelled knobs to learn from every mechanism stays what it was.
    """
    known_mechanisms = _find_known(dbms, knobs, labelled)
    is_guessed = bool(labelled) and not knobs.keys() <= known_mechanisms.keys()
    mechanisms = MechanismModel(labelled).guess(knobs, code) if is_guessed else {}
    mechanisms |= {name: known_mechanisms[name] for name in knobs if name in known_mechanisms}
    return {name: {**knob, "mechanism": mechanisms.get(name, knob["mechanism"])} for name, knob in knobs.items()}


def _find_known(
    dbms: str, knobs: Mapping[str, Any], labelled: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> dict[str, str]:
    """Return the mechanisms that are known by name: those of the DBMS, then those of its relatives, nearest first."""
    mechanisms: dict[str, str] = {}
    for source in [*_list_relatives(knobs, labelled), dbms]:
        mechanisms |= {name: str(knob["mechanism"]) for name, knob in labelled.get(source, {}).items()}
    return mechanisms


def _list_relatives(knobs: Mapping[str, Any], labelled: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the DBMSs that share many names of knobs, those that share most last."""
    shared = {candidate: len(of.keys() & knobs.keys()) for candidate, of in labelled.items()}
    fewest = max(_FEWEST_SHARED, _RELATED * len(knobs))
    return sorted((name for name, count in shared.items() if count >= fewest), key=shared.__getitem__)


def list_strangers(
    dbms: str, knobs: Mapping[str, Any], labelled: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> dict[str, Mapping[str, Mapping[str, Any]]]:
    """Return the labels of all DBMSs but this one and its relatives: what a model may learn that is scored on it."""
    related = {dbms, *_list_relatives(knobs, labelled)}
    return {name: of for name, of in labelled.items() if name not in related}
