"""Guesses which I/O mechanism a knob steers, by its name and the DBMS's own sentence about it.

The shipped catalogues say of each of their knobs which mechanism it steers, after a reading of its documentation. A
linear model of words, parts of words and concepts learns from them and guesses for a DBMS, or a version, that nobody
has read up on. How often it is right about a DBMS that it has not seen is measured by `benchmarks/mechanisms.py`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from knobscope.introspect.concepts import find_concepts
from knobscope.specs import KnobCatalogue, read_knob_catalogue
from knobscope.statistics.arrays import Floats

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

__all__ = ["MechanismModel", "guess_mechanisms", "read_labelled"]

_OTHER = "other"
#: Least probability of steering any mechanism from which on a guess names one: whoever looks for I/O knobs loses more
#: by one that is missing than by one too many.
_LEAST = 0.4
#: What a concept counts: the words of a text have a length of 1 together.
_OF_CONCEPTS = 0.5


@dataclass(frozen=True)
class _Text:
    name: str  # in words
    sentence: str


def _read_text(name: str, knob: Mapping[str, Any]) -> _Text:
    """Split innodb_io_capacity, appendfsync-no and memtableFlushPeriod into words; add the first sentence about it.

    Further sentences name what the knob has to do with, and so more mechanisms than the one that it steers.
    """
    parts = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    words = re.sub(r"[^A-Za-z0-9]+", " ", parts).lower().strip()
    sentence = re.split(r"(?<=[.:!?]) ", knob.get("description") or "")[0]
    return _Text(words, f"{words} . {sentence} {knob.get('unit') or ''}")


def _names(texts: Sequence[_Text]) -> list[str]:
    return [text.name for text in texts]


def _sentences(texts: Sequence[_Text]) -> list[str]:
    return [text.sentence for text in texts]


def _concepts(texts: Sequence[_Text]) -> Floats:
    return _OF_CONCEPTS * np.hstack([find_concepts(_names(texts)), find_concepts(_sentences(texts))])


def _pipeline() -> "Pipeline":
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.preprocessing import FunctionTransformer

    parts = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, stop_words="english")
    features = make_union(
        make_pipeline(FunctionTransformer(_names), parts),
        make_pipeline(FunctionTransformer(_sentences), words),
        FunctionTransformer(_concepts),
    )
    return make_pipeline(features, LogisticRegression(C=1, class_weight="balanced", max_iter=1000))


class MechanismModel:
    """Fitted to labelled knobs (name -> its description, unit and mechanism, by DBMS)."""

    def __init__(self, labelled: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
        rows = {
            (_read_text(name, knob), str(knob["mechanism"])): None
            for knobs in labelled.values()
            for name, knob in knobs.items()
        }  # what two versions of a DBMS say in the same words counts once
        texts, mechanisms = [text for text, _ in rows], np.array([mechanism for _, mechanism in rows])
        steers = mechanisms != _OTHER
        self._any = _pipeline().fit(texts, steers)
        those = [text for text, one in zip(texts, steers, strict=True) if one]
        self._which = _pipeline().fit(those, mechanisms[steers])

    def probabilities(self, knobs: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
        """Return how probable it is that each knob steers any mechanism of I/O."""
        texts = [_read_text(name, knob) for name, knob in knobs.items()]
        return dict(zip(knobs, self._any.predict_proba(texts)[:, 1].tolist(), strict=True)) if texts else {}

    def guess(self, knobs: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
        """Return the mechanism of each knob; `other` where it steers none."""
        if not knobs:
            return {}
        which = self._which.predict([_read_text(name, knob) for name, knob in knobs.items()])
        probable = self.probabilities(knobs)
        return {name: str(one) if probable[name] >= _LEAST else _OTHER for name, one in zip(knobs, which, strict=True)}


def read_labelled(folder: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the knobs of all catalogues of a folder, by DBMS; SpecErrors for a file that is none."""
    catalogues = [read_knob_catalogue(file) for file in sorted(folder.glob("*.json"))]
    return {one.dbms: _entries(one) for one in catalogues if one is not None}


def _entries(catalogue: KnobCatalogue) -> dict[str, dict[str, Any]]:
    return {name: knob.model_dump() for name, knob in catalogue.knobs.items()}


def guess_mechanisms(
    dbms: str, knobs: Mapping[str, dict[str, Any]], labelled: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> dict[str, dict[str, Any]]:
    """Return knobs with their mechanism: known of a knob of this DBMS with this name, or else guessed.

    Without labelled knobs to learn from every mechanism stays what it was.
    """
    known = labelled.get(dbms, {})
    unknown = {name: knob for name, knob in knobs.items() if name not in known}
    guessed = MechanismModel(labelled).guess(unknown) if labelled and unknown else {}
    told = {name: known[name]["mechanism"] for name in knobs if name in known} | guessed
    return {name: {**knob, "mechanism": told.get(name, knob["mechanism"])} for name, knob in knobs.items()}
