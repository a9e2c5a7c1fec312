"""The policy pack: `pulumi preview --policy-pack policies`."""

import os
import sys
from pathlib import Path
from types import ModuleType

from pulumi_policy import PolicyPack

PACK = Path(__file__).resolve().parent


def main() -> None:
    """Serve the pack to the engine until the engine ends."""
    _import_pack()
    from policies.rules import POLICIES
    from policies.support.configuration import ConfigurationError, for_stack, refuse_unknown_keys

    try:
        project, stack = (os.environ.get(name, "") for name in ("PULUMI_PROJECT", "PULUMI_STACK"))
        configuration = for_stack(PACK, project, stack, POLICIES)
    except ConfigurationError as error:
        sys.exit(str(error))
    refuse_unknown_keys(POLICIES)
    PolicyPack("rt-inventory", policies=[*POLICIES], initial_config={**configuration})


def _import_pack() -> None:
    """Import this folder as the package `policies`.

    The engine runs the file with the folder as working directory, and a copy or a published pack has another name.
    Only the folder becomes importable, not what lies beside it.
    """
    package = ModuleType("policies")
    package.__path__ = [str(PACK)]
    sys.modules[package.__name__] = package


if __name__ == "__main__":
    main()
