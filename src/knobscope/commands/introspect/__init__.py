"""A DBMS's own list of its knobs, as the `knobs:` part of a spec."""

from knobscope.commands.introspect.asking import Answer, ask_catalogue, learn, read_settings
from knobscope.commands.introspect.catalogue import Catalogue, read_catalogue
from knobscope.commands.introspect.writing import render_knobs

__all__ = ["Answer", "Catalogue", "ask_catalogue", "learn", "read_catalogue", "read_settings", "render_knobs"]
