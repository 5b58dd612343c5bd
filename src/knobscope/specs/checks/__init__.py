"""What no single value can show: contradictions between specs, and what cannot work here."""
