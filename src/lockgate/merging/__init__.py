"""What a merge means: keys, schemas, strategies, counts and pruning. No engine is imported here."""
