"""What a merge means is the same on S3: the suite of the engines, as far as it does not ask for the folder itself."""

from contracts.engine.test_deduplicate import *  # noqa: F403
from contracts.engine.test_empty_source import *  # noqa: F403
from contracts.engine.test_partitions import *  # noqa: F403
from contracts.engine.test_source_keys import *  # noqa: F403
from contracts.engine.test_strategies import *  # noqa: F403
from contracts.engine.test_target_keys import *  # noqa: F403
