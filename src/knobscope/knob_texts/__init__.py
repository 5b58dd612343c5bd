"""What the documentation of a knob says: which I/O mechanism it steers."""

from knobscope.knob_texts.mechanisms import MechanismModel, guess_mechanisms, list_strangers, read_labelled

__all__ = ["MechanismModel", "guess_mechanisms", "list_strangers", "read_labelled"]
