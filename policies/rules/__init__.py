"""The rules of the pack: every module `rules/<group>/<rule>.py` is found and has its policy in `POLICY`.

A group is a package whose docstring begins with the group's title and a colon. Rules judge resources alone and share no
code with what made them.
"""

from importlib import import_module
from pathlib import Path

from pulumi_policy import Policy


def _policies(group: str) -> tuple[Policy, ...]:
    names = sorted(path.stem for path in (Path(__file__).parent / group).glob("[!_]*.py"))
    modules = [import_module(f"{__name__}.{group}.{name}") for name in names]
    # Remedies run in this order: one that reads what another corrects has a greater ORDER.
    return tuple(module.POLICY for module in sorted(modules, key=lambda module: getattr(module, "ORDER", 0)))


def _title(group: str) -> str:
    return (import_module(f"{__name__}.{group}").__doc__ or group).partition(":")[0]


_FOLDERS = sorted(path.parent.name for path in Path(__file__).parent.glob("*/__init__.py"))
GROUPS: dict[str, tuple[Policy, ...]] = {_title(group): _policies(group) for group in _FOLDERS}
POLICIES = tuple(policy for policies in GROUPS.values() for policy in policies)
