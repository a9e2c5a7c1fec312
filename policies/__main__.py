"""The policy pack: `pulumi preview --policy-pack policies`."""

import os
import sys
from pathlib import Path

from pulumi_policy import PolicyPack
from rules import POLICIES
from rules.support.configuration import ConfigurationError, for_stack, refuse_unknown_keys


def main() -> None:
    """Serve the pack to the engine until it hangs up."""
    try:
        project, stack = (os.environ.get(name, "") for name in ("PULUMI_PROJECT", "PULUMI_STACK"))
        configuration = for_stack(Path(__file__).parent, project, stack, POLICIES)
    except ConfigurationError as error:
        sys.exit(str(error))
    refuse_unknown_keys(POLICIES)
    PolicyPack("rt-inventory", policies=[*POLICIES], initial_config={**configuration})


if __name__ == "__main__":
    main()
