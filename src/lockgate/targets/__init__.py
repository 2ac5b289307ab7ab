"""Which files make up a table, and how a set of changes to them becomes visible at once."""
