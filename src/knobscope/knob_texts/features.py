"""Turns the name, description and unit of a knob into columns of numbers, for all that is guessed from text."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from knobscope.knob_texts.concepts import find_concepts
from knobscope.statistics.arrays import Floats

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import FeatureUnion

#: How to solve for two classes and for more. There are many more features than knobs, for which the default, L-BFGS,
#: needs eight times as long; an intercept scaled by ten is hardly regularised.
OF_TWO: Mapping[str, Any] = {"solver": "liblinear", "dual": True, "intercept_scaling": 10, "random_state": 0}
OF_MANY: Mapping[str, Any] = {"solver": "newton-cg"}
#: What a concept counts: the words of a text have a length of 1 together.
_OF_CONCEPTS = 0.5
#: Words of a sentence.
_FEWEST_WORDS = 3
#: A sentence that says that the knob does nothing.
_WITHOUT_EFFECT = re.compile(r"\W*unused\b|.*\bno effect\W*$", re.IGNORECASE)


@dataclass(frozen=True)
class Text:
    """What a model reads of a knob."""

    name: str  # in words
    sentence: str
    has_effect: bool  # as far as it says


def read_text(name: str, knob: Mapping[str, Any], *, is_whole: bool = False) -> Text:
    """Split innodb_io_capacity, appendfsync-no and memtableFlushPeriod into words; add the first sentence about it.

    Further sentences name what the knob has to do with, and so more mechanisms than the one that it steers; with
    `is_whole` they count, too.
    """
    parts = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    name_words = re.sub(r"[^A-Za-z0-9]+", " ", parts).lower().strip()
    description = knob.get("description") or ""
    sentence = description if is_whole else _find_sentence(description)
    has_effect = _WITHOUT_EFFECT.match(sentence) is None
    return Text(name_words, f"{name_words} . {sentence} {knob.get('unit') or ''}", has_effect)


def _find_sentence(text: str) -> str:
    """Return the first sentence of a text; what ends before three words ("Note:", "5 seconds.") is none by itself."""
    for end in re.finditer(r"[.:!?](?= )", text):
        if len(text[: end.end()].split()) >= _FEWEST_WORDS:
            return text[: end.end()]
    return text


def read_texts(knobs: Mapping[str, Mapping[str, Any]]) -> list[Text]:
    """Return the texts of knobs, in their order."""
    return [read_text(name, knob) for name, knob in knobs.items()]


def _names(texts: Sequence[Text]) -> list[str]:
    return [text.name for text in texts]


def _sentences(texts: Sequence[Text]) -> list[str]:
    return [text.sentence for text in texts]


def _concepts(texts: Sequence[Text]) -> Floats:
    return _OF_CONCEPTS * np.hstack([find_concepts(_names(texts)), find_concepts(_sentences(texts))])


def make_features() -> "FeatureUnion":
    """Return what turns texts into columns: words, pairs of words, parts of words in names, concepts."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.preprocessing import FunctionTransformer

    parts = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
    word_vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, stop_words="english")
    return make_union(
        make_pipeline(FunctionTransformer(_names), parts),
        make_pipeline(FunctionTransformer(_sentences), word_vectorizer),
        FunctionTransformer(_concepts),
    )


def make_regression(**solver: Any) -> "LogisticRegression":
    """Return the linear model of all guesses, in which rare kinds count as much as frequent ones."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=2, class_weight="balanced", max_iter=1000, **solver)
