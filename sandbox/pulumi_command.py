"""What a plain `pulumi` is in a sandbox's shell: started hundreds of times, so it imports no more than it needs."""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from .pulumi import Pulumi, PulumiError
from .state import StateError, default_state
from .toolchain import ToolchainError, locate

USAGE = (StateError, ToolchainError)


def run(arguments: Sequence[str]) -> int:
    """Run Pulumi as typed and return its exit code; raises StateError if the sandbox is not up."""
    state = default_state(os.environ)
    if not state.passphrase.exists():
        raise StateError(
            f"sandbox: must be up (got nothing running in {state.path}). Start it: `venv/bin/python -m sandbox up`."
        )
    return Pulumi(state, locate()).pass_through(arguments, Path.cwd())


def main(arguments: Sequence[str]) -> int:
    """The exit code of Pulumi; 1 if it could not be run, 2 without a sandbox or its tools, 143 terminated."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return run(arguments)
    except (PulumiError, OSError, *USAGE) as error:
        sys.stderr.write(f"{error}\n")
        return 2 if isinstance(error, USAGE) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
