"""Changes after which a mirror would copy everything once more.

Connect finds a mirror's position by its group, its offset storage topic and the two aliases; names on the target depend
on the naming. Owns the comparison with what the stack exported when it was last up.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from settings.mirrors import Mirror

# Exported fact → (setting, what the change means)
_IDENTITY = {
    "groupId": ("groupId", "Connect starts a new group"),
    "offsetStorageTopic": ("offsetStorageTopic", "Connect finds no positions there"),
    "sourceAlias": ("source.alias", "positions are kept under the old alias"),
    "sourceStack": ("source.stack", "positions under this alias belong to another cluster"),
    "sourceExternal": ("source.external.name", "positions under this alias belong to another cluster"),
    "targetAlias": ("target.alias", "positions are kept under the old alias"),
    "naming": ("naming", "copies get other names"),
    "separator": ("separator", "copies and internal topics get other names"),
}


def rereplications(mirrors: Iterable[Mirror], before: Mapping[str, Any]) -> list[str]:
    """Return every change by which a mirror would lose its position, unless the mirror accepts it.

    `before` are the mirrors' facts as they were exported. The last line says what to do.
    """
    every = [each for mirror in mirrors for each in (mirror, *([mirror.opposite()] if mirror.reverse else []))]
    # A failback's own mirror comes and goes; each time its command sets where it begins.
    named = {mirror.name for mirror in every} | {mirror.returning_name for mirror in every}
    gone = {name: fact for name, fact in before.items() if name not in named}
    problems = [
        problem
        for mirror in every
        if not mirror.accept_rereplication
        for problem in (*changes(mirror, before.get(mirror.name), gone), *_left_running(mirror, before))
    ]
    if not problems:
        return []
    return [
        *problems,
        "Everything would be copied once more, and doubled where the names stay. Take the change back, or set "
        "acceptRereplication: true on the mirror for one `pulumi up`.",
    ]


def changes(mirror: Mirror, known: Mapping[str, Any] | None, gone: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what would make a mirror begin anew; `known` are its earlier facts, `gone` those of mirrors left out."""
    now = facts(mirror)
    if known is None:
        pair = ("sourceAlias", "targetAlias", "sourceStack")
        old = [
            name
            for name, fact in gone.items()
            if all(fact.get(key) == now[key] for key in pair) and any(fact.get(key) != now[key] for key in _IDENTITY)
        ]
        return [
            f"mirror {mirror.name}: name must stay {name} (got {mirror.name} between the same clusters): group and "
            "positions are kept under the old one."
            for name in old
        ]
    return [
        f"mirror {mirror.name}: {setting} must stay {known[fact]!r} (got {now[fact]!r}): {meaning}."
        for fact, (setting, meaning) in _IDENTITY.items()
        if fact in known and known[fact] != now[fact]
    ]


def _left_running(mirror: Mirror, before: Mapping[str, Any]) -> list[str]:
    """A failback that ends while it copies: Connect keeps its connectors, and would run them when they come back."""
    known = (before.get(mirror.returning_name) or {}).get("failback")
    if known != "copying" or mirror.brings_back:
        return []
    return [
        f"mirror {mirror.name}: failback must be prepared for one `pulumi up` before it ends (got "
        f"{mirror.failback or 'nothing'} after copying): its connectors must be stopped first, or they would run on "
        "from there when it comes again."
    ]


def facts(mirror: Mirror) -> dict[str, Any]:
    """Return what a mirror's position depends on, as it is exported."""
    return {
        "sourceStack": mirror.source.stack,
        "sourceExternal": mirror.source.external.name if mirror.source.external else None,
        "sourceAlias": mirror.source.alias,
        "targetAlias": mirror.target.alias,
        "naming": mirror.naming,
        "separator": mirror.separator,
        "groupId": mirror.connect_group,
        "offsetStorageTopic": mirror.storage_topics["offset"],
    }
