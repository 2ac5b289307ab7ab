"""A plan becomes results: Spark computes, everything is staged, checked, and only then published."""
