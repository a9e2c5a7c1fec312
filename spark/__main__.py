"""Entry point of `python -m spark`, and the file that `spark-submit` is given."""

import gc
import os
import sys

if not __package__:
    # spark-submit runs this file by its path: Python then looks for modules beside it instead of beside the package.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120 - pathlib takes time

from spark import signals

if __name__ == "__main__":
    signals.hold()  # the next lines take seconds, a fifth of them to search what they load for garbage
    gc.disable()

from spark.command import main

if __name__ == "__main__":
    gc.freeze()
    gc.enable()
    sys.exit(main())
