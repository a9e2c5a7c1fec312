"""Entry point of `python -m spark`, and the file that `spark-submit` is given."""

import sys
from pathlib import Path

if not __package__:
    # spark-submit runs this file by its path: Python then looks for modules beside it instead of beside the package.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from spark.command import main

if __name__ == "__main__":
    sys.exit(main())
