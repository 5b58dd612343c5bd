"""Sentences of findings: templates of the rules, rendered with the words and number formats of the report."""

from knobscope.text.sentences.rendering import Sentences
