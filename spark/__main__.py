"""Entry point of `python -m spark`."""

import sys

from spark.command import main

if __name__ == "__main__":
    sys.exit(main())
