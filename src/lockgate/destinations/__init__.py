"""Where exports go: one file a destination, all behind one protocol and one registry."""
