"""The log of record of Delta tables in SQL: actions, commits, conflicts, two stores, publishing."""
