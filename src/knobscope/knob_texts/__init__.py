"""What the documentation of a knob says: which I/O mechanism it steers, and what it can be expected to do."""

from knobscope.knob_texts.expectations import PropertyModel, propose_expectations, read_properties
from knobscope.knob_texts.mechanisms import MechanismModel, guess_mechanisms, list_strangers, read_labelled
