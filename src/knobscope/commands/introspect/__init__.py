"""A DBMS's own list of its knobs, as the `knobs:` part of a spec."""

from knobscope.commands.introspect.asking import ask_catalogue, learn, read_settings
from knobscope.commands.introspect.catalogue import read_catalogue
from knobscope.commands.introspect.writing import render_knobs
