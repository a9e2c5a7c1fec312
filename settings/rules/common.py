"""What several rules share: duplicate names, how a minimum and a factor relate, whom a listener refuses."""

from collections.abc import Mapping
from typing import Any

from settings.cluster import Cluster, Listener
from settings.errors import Problem
from settings.model import Model
from settings.spec_overrides import Paths, conflicts
from settings.users import User


def duplicates(key: str, noun: str, named: Mapping[int, tuple[str, Model]], field: str = "name") -> list[Problem]:
    """A problem for each entry whose name an earlier entry has."""
    first: dict[str, int] = {}
    return [
        Problem(
            f"{key}[{index}].{field}",
            f"{noun} {name}: {field} must be unique (got it in {key}[{first[name]}] too). Rename or remove one.",
        )
        for index, (name, _) in named.items()
        if first.setdefault(name, index) != index
    ]


def leaves_room(minimum: int, factor: int) -> bool:
    """One replica may be away without stopping acks=all producers; a single replica has no room to leave."""
    return minimum < factor or minimum == factor == 1


def room(subject: str, minimum_key: str, minimum: int, factor_key: str, factor: int) -> str:
    """The message for a minimum that leaves no room."""
    rule = f"must be < {factor_key}" if factor > 1 else "must be 1"
    return (
        f"{subject}: {minimum_key} {rule} (got {minimum}, {factor_key} {factor}). "
        "One broker restart would block acks=all producers."
    )


def refusing_listener(cluster: Cluster | None, user: User | None) -> Listener | None:
    """The listener of a managed cluster that mirrors use, if it does not take the user's authentication."""
    if cluster is None or cluster.external is not None or user is None:
        return None
    try:
        listener = cluster.client_listener
    except KeyError:  # told where the cluster is judged
        return None
    return None if listener.authentication == user.authentication else listener


def overridden(where: str, subject: str, overrides: Mapping[str, Any], owned: Paths) -> list[Problem]:
    """A problem for each path of `specOverrides` that a setting stands for."""
    return [
        Problem(
            f"{where}.specOverrides.{path}",
            f"{subject}: specOverrides must hold only fields that no setting stands for (got {path}, which {setting} "
            "decides). Remove it.",
        )
        for path, setting in conflicts(overrides, owned).items()
    ]


def dotted(release: tuple[int, int]) -> str:
    """A release as it is written."""
    return ".".join(str(part) for part in release)
