"""Experiments that go on until they give an answer: how often one looks, and how sure an interval then has to be."""

__all__ = ["LOOKS", "SIGNIFICANCE"]

#: How often an answer is looked for, as many measurements apart. An interval of 95 % that is looked at three times has
#: to be one of 97.8 % each time (Pocock 1977, Biometrika 64, table 1).
LOOKS, SIGNIFICANCE = 3, 0.0221
