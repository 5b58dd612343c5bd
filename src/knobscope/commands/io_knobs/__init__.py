"""`knobscope io-knobs`: which knobs are I/O-related, by a study's runs, or by text, code and pairs of runs."""
