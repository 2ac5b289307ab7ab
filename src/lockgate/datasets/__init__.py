"""Parquet datasets as users call them: `merge`, `write_dataset`, and one class an engine."""
