"""Python functions that the pipeline's SQL can call by name."""

import lockgate


@lockgate.function(returns="string")
def grade(amount):
    if amount is None:
        return None
    return "high" if amount >= 50 else "low"
