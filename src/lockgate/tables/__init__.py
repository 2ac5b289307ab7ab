"""Delta tables by name: opened through the log of a profile, written, merged, and read at any version."""
