"""Files with keys and values of records: whole or not there, and for nobody but their owner."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path


def replace_private(path: Path, parts: Iterable[str]) -> None:
    """Put a file with mode 0600 in the place of another at once; raises OSError.

    Nothing is left behind if a part cannot be made.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(parts)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
