"""What a knob can be expected to do to performance, proposed from its documentation with a confidence.

Properties are those of CP-Detector (He et al., ASE 2020): a knob may be an optimisation, a resource, a function that
costs time, a trade-off between speed and something else, or have nothing to do with performance (`none`). A linear
model of the words that `mechanisms` reads, too, learns them from labels (`specs/dbms/properties.json`).
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from knobscope.knob_texts.concepts import find_cues
from knobscope.knob_texts.features import OF_MANY, Text, make_features, make_regression, read_text
from knobscope.specs import read_labelled_properties
from knobscope.statistics.arrays import Floats

if TYPE_CHECKING:
    from sklearn.pipeline import FeatureUnion

#: What a cue counts: the words of a text have a length of 1 together.
_OF_CUES = 0.5
#: What switching on a knob of a property does. Of a number this is not clear: an optimisation may have a best value,
#: and a higher threshold means less of a function.
_SWITCHED_ON: dict[str, Literal["faster", "slower"]] = {"optimisation": "faster", "function": "slower"}
_SWITCHES_OFF = re.compile(r"(^|[_.-])(disable|no|skip|without|ignore|suppress)([_.-]|$)", re.IGNORECASE)


class PropertyModel:
    """Fitted to labelled texts: name -> property and description, by DBMS."""

    def __init__(self, labelled: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
        texts = [text for knobs in labelled.values() for text in _read(knobs)]
        properties = [knob["property"] for knobs in labelled.values() for knob in knobs.values()]
        self._features = _make_features().fit(texts)
        self._model = make_regression(**OF_MANY).fit(self._features.transform(texts), np.array(properties))

    def propose(self, knobs: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, float]]:
        """Return the likeliest property of each knob, and its chance."""
        chances = self._model.predict_proba(self._features.transform(_read(knobs)))
        return {
            name: (str(self._model.classes_[row.argmax()]), float(row.max()))
            for name, row in zip(knobs, chances, strict=True)
        }


def _read(knobs: Mapping[str, Mapping[str, Any]]) -> list[Text]:
    """Return texts with whole descriptions: what a knob gains and costs seldom stands in the first sentence."""
    return [read_text(name, knob, is_whole=True) for name, knob in knobs.items()]


def _make_features() -> "FeatureUnion":
    from sklearn.pipeline import make_union
    from sklearn.preprocessing import FunctionTransformer

    return make_union(make_features(), FunctionTransformer(_find_cues))


def _find_cues(texts: Sequence[Text]) -> Floats:
    names, sentences = [text.name for text in texts], [text.sentence for text in texts]
    return _OF_CUES * np.hstack([find_cues(names), find_cues(sentences)])


def read_properties(
    specs: Path, labelled: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the settings whose property is labelled, with their texts, by DBMS; `specs` is `specs/dbms`.

    Nothing without such a file. SpecErrors: it holds something else.
    """
    path = specs / "properties.json"
    if not path.is_file():
        return {}
    return {
        dbms: {name: {**labelled[dbms][name], "property": value} for name, value in of_dbms.items()}
        for dbms, of_dbms in read_labelled_properties(path).properties.items()
    }


def propose_expectations(
    knobs: Mapping[str, dict[str, Any]], properties: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> dict[str, dict[str, Any]]:
    """Return knobs with a `proposal` of what their documentation suggests; knobs without a description have none."""
    described = {name: knob for name, knob in knobs.items() if knob.get("description")}
    if not described or not properties:
        return dict(knobs)
    proposals = {
        name: {"property": kind, "expect": _expect(name, knobs[name], kind), "confidence": round(chance, 2)}
        for name, (kind, chance) in PropertyModel(properties).propose(described).items()
    }
    proposals = {name: {key: x for key, x in of.items() if x is not None} for name, of in proposals.items()}
    return {name: {**knob, "proposal": proposals[name]} if name in proposals else knob for name, knob in knobs.items()}


def _expect(name: str, knob: Mapping[str, Any], kind: str) -> str | None:
    """Return what raising a knob of a property does, or that it does nothing; None: the property does not say."""
    if kind == "none":
        return "none"
    if kind == "resource":
        return "faster" if knob["type"] in ("integer", "real") else None
    if knob["type"] != "boolean" or kind not in _SWITCHED_ON:
        return None
    is_off = _SWITCHES_OFF.search(name) is not None
    return {"faster": "slower", "slower": "faster"}[_SWITCHED_ON[kind]] if is_off else _SWITCHED_ON[kind]
