"""What a finished failover has come to: as JSON values, and for people.

Owns the words. Does not own what the steps find.
"""

import shlex
from collections.abc import Mapping
from itertools import islice
from typing import Any

from rich.console import Group, RenderableType

from ops.console import AdaptiveTable, Column, Text
from ops.recovery import client_workloads, stranded_records
from ops.recovery.failover import PLANNED, Options
from ops.recovery.journal import Journal
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.topic_selection import TOPICS
from ops.status.document import GROUPS_SHOWN
from settings.text import format_count, format_names

POINTED_BY_PEOPLE = (
    "Secret {secret} stays as it is, for it is the whole mirror's: point the applications of these topics to the target"
)


def result(known: MirrorContext, options: Options, journal: Journal) -> Mapping[str, Any]:
    """Return what a finished failover has come to, as `--json` prints it.

    `stranded` are the offsets, by partition, that the source has at the end and that are not on the target: after a
    planned failover what was written there since it was drained. None: the source could not be asked, `strandedWhy` is
    the reason. `recordsLost` is their sum; if an unplanned one could not ask at the end, what it found when the mirror
    was stopped.
    `workloads` and what belongs to them: `client_workloads.result`.
    `topics` failed over by themselves, None after a failover of the mirror; `active` is the side of the mirror.
    `pendingFence` is the reason why, after an unplanned one, the source is not fenced yet.
    A group's `repeated` is None where the source could not be asked: at most `left`, which it has to read on the
    target. So are both costs after an unplanned one that goes on where a planned one had set the offsets: groups may
    have moved since. `left` does not count the partitions of `withoutPosition`: there `auto.offset.reset` of the
    application decides. `setBack` has the offsets by which a group was set back: after an unplanned failover to what
    the mirror has translated, with exact offsets to these. After an unplanned one `mayBeSkipped` has the records in
    front of an offset of which it has translated nothing.
    `translated`: whether it has translated anything of the group. `translationUnknown` says why nobody can tell.
    """
    steps = journal.steps
    planned = options.path == PLANNED
    known_costs = planned or "stood" not in steps["offsets"]
    measured = {**steps.get("measure", {}), **steps["stop"]}
    left = steps["confirm"].get("stranded")
    lost = None if left is None else sum(left.values())
    return {
        "stack": known.stack,
        "mirror": known.mirror,
        "path": options.path,
        "exact": options.exact,
        "topics": options.part.get(TOPICS),
        "active": steps["confirm"]["active"],
        "clientsSecret": steps["confirm"]["clientsSecret"],
        "recordsLost": lost if planned or lost is not None else measured.get("notMirrored"),
        "stranded": left,
        "strandedWhy": steps["confirm"].get("why"),
        "pendingFence": steps["confirm"].get("pendingFence"),
        **client_workloads.result(steps),
        "newestMirrored": measured.get("newestMirrored"),
        "groups": {
            group: {key: found.get(key) if known_costs else None for key in ("repeated", "skipped")}
            | {"left": found.get("left")}
            | {"withoutPosition": found.get("withoutPosition") or []}
            | {key: found.get(key) or {} for key in ("setBack", "mayBeSkipped")}
            | {"translated": found.get("translated", True)}
            for group, found in steps["offsets"]["groups"].items()
        },
        "activeOnTarget": steps["offsets"].get("activeOnTarget", []),
        "translationUnknown": steps["offsets"].get("translationUnknown"),
        "verification": {key: value for key, value in steps.get("prove", {}).items() if key != "groups"} or None,
        "startedAt": (journal.entry or {})["startedAt"],
        "switchedAt": steps["switch"]["switchedAt"],
        "seconds": {name: found["seconds"] for name, found in steps.items() if "seconds" in found},
    }


def summary(done: Mapping[str, Any], options: str = "") -> RenderableType:
    """Return what a finished failover has come to, for people.

    `options` are those with which commands that are to be typed find the mirror, as `operation.addressed` returns them.
    """
    topics = done.get("topics")
    what = f"for {format_names(topics)} " if topics else ""
    stranded, why = done["stranded"], done.get("strandedWhy")
    lines: list[RenderableType] = [
        Text(
            f"{done['mirror']}: the target of stack {done['stack']} is active {what}since {done['switchedAt']}.", "bold"
        ),
        stranded_records.written_afterwards(stranded, "source", "target", "the failback brings them over", why)
        if done["path"] == PLANNED
        else Text(lost(done["recordsLost"], why, asked=stranded is not None)),
    ]
    if done["newestMirrored"]:
        newest = ", ".join(f"{topic} {moment}" for topic, moment in done["newestMirrored"].items())
        lines.append(Text(f"Newest copied records: {newest}."))
    if done["groups"]:
        costs = [Column(title, number=True) for title in ("left to read", "of these again", "skipped")]
        more = len(done["groups"]) - GROUPS_SHOWN
        caption = f"and {more} more: --json shows all" if more > 0 else ""
        grid = AdaptiveTable("consumer groups on the target", (Column("group", name=True), *costs), caption=caption)
        for group, found in islice(done["groups"].items(), GROUPS_SHOWN):
            again = f"at most {found['left']}" if found["repeated"] is None else str(found["repeated"])
            grid.add_row(
                group, str(found["left"]), again, "unknown" if found["skipped"] is None else str(found["skipped"])
            )
        lines.append(grid)
    lines += _notes(done, options)
    secret = done["clientsSecret"]
    text = (
        f"Applications find the target's properties in Secret {secret}." if secret else "No Secret tells applications."
    )
    if topics:
        text = f"{POINTED_BY_PEOPLE.format(secret=secret)}." if secret else text
    lines += [Text(text), *client_workloads.summary(done)]
    if why := done.get("pendingFence"):
        lines.append(
            Text(
                f"! The source takes writes again once it is back. `python -m ops status --stack {done['stack']}"
                f"{options} --watch` and `failback` fence it as soon as it answers, and so does an `up` of its stack. "
                f"{why}",
                "yellow",
            )
        )
    if command := done.get("reconcileWith"):
        lines.append(Text(f"! Pulumi does not know of it. Once its state is in reach again: {command}", "yellow"))
    return Group(*lines)


def _notes(done: Mapping[str, Any], options: str) -> list[Text]:
    """What the table does not say of groups, a line each."""
    found = []
    if why := done["translationUnknown"]:
        found.append(Text(f"! Groups are left where they stand; whether they skip records is unknown. {why}", "red"))
    if active := done["activeOnTarget"]:
        names = format_names(active)
        found.append(Text(f"! {names}: members on the target already, left where they work.", "yellow"))
    untranslated = [group for group, each in done["groups"].items() if not each["translated"]]
    if untranslated and not why:
        found.append(Text(f"{format_names(untranslated)}: nothing translated by the mirror, left as on the target."))
    noted = {
        group: lines
        for group, each in done["groups"].items()
        if (lines := _notes_of(group, each, done.get("exact"), f"{shlex.quote(done['stack'])}{options}"))
    }
    # What may be skipped comes first: it is what somebody must do something about.
    urgent = sorted(noted, key=lambda group: not done["groups"][group]["mayBeSkipped"])
    found += [line for group in urgent[:GROUPS_SHOWN] for line in noted[group]]
    if len(noted) > GROUPS_SHOWN:
        found.append(Text(f"! and {len(noted) - GROUPS_SHOWN} more groups of this kind: --json names all", "yellow"))
    return found


def _notes_of(group: str, each: Mapping[str, Any], exact: bool | None, mirror: str) -> list[Text]:
    """What the table does not say of one group, a line each; `mirror` is its stack, and options that name it."""
    found = []
    if missing := each["withoutPosition"]:
        found.append(
            Text(
                f"! group {group}: {format_count(len(missing), 'partition')} with records without an offset on the "
                "target, not counted above: auto.offset.reset of the application decides what it reads there.",
                "yellow",
            )
        )
    if back := each["setBack"]:
        found.append(
            Text(
                f"! group {group}: set back to {'its exact offset' if exact else 'what the mirror has translated'}, so "
                f"that it skips nothing ({stranded_records.named(back)}).",
                "yellow",
            )
        )
    if skipped := each["mayBeSkipped"]:
        found.append(
            Text(
                f"! group {group}: it may skip records in front of its offset, of which the mirror has translated "
                f"nothing ({stranded_records.named(skipped)}). Set it before its application starts: "
                f"python -m ops offsets set --stack {mirror} --group {shlex.quote(group)} --topic TOPIC "
                "--partition PARTITION --offset OFFSET",
                "red",
            )
        )
    return found


def unsettled(done: Mapping[str, Any]) -> bool:
    """Return whether records may be lost or skipped after a finished failover, pods may be old, or nobody can tell."""
    if (done["path"] == PLANNED and done["recordsLost"] != 0) or client_workloads.is_unsettled(done):
        return True
    return done["translationUnknown"] is not None or any(found["mayBeSkipped"] for found in done["groups"].values())


def lost(left: int | None, why: str | None = None, *, asked: bool = True) -> str:
    """Return in words how many records an unplanned failover leaves behind.

    Args:
        left: How many, None if it is unknown.
        why: The reason if it is unknown, or was not found out at the end.
        asked: Whether it was found out at the end.
    """
    unknown = stranded_records.unknown(why)
    if left is None:
        return f"Unplanned: how many records are lost is {unknown}"
    known = format_count(left, "record")
    if not asked:
        return f"Unplanned: at least {known} of the source are not on the target; by now that is {unknown}"
    return f"Unplanned: {known} of the source are not on the target."
