"""What a verification must find, by plain Python that walks both logs: slow, obvious, and without the job's own code.

An oracle that shares code with what it judges shares its bugs: nothing of `spark` is imported here. The words are those
of docs/verification.md. Offsets are ascending in every log and have holes where markers or compacted records stood.
"""

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace

from . import oracle_alignment as alignment
from .oracle_alignment import Overlap
from .oracle_records import Log, Logs, Place, Record, Truth

PARTS = ("key", "value", "headers", "timestamp")
NEIGHBOURHOOD = 1000


@dataclass(frozen=True)
class Position:
    """Where a group stands on the target. Offsets are those of the next record to read, None without any image."""

    lowest: int | None
    highest: int | None
    skipped: int
    repeated: int


def judge(partitions: Mapping[int, Logs]) -> dict[int, Truth]:
    """Return what is true of each partition of one topic."""
    truths = {number: Truth() for number in partitions}
    partitions = {number: _written(logs) for number, logs in partitions.items()}
    whole = {number: logs for number, logs in partitions.items() if not logs.compacted}
    for number in partitions.keys() - whole.keys():
        _last_of_each_key(partitions[number], truths[number])
    for number, logs in whole.items():
        _multiset(logs, truths[number])
    shared = {number for number in whole if truths[number].overlap}
    _wrong_partition(whole, truths)
    for number, logs in whole.items():
        _altered(logs, truths[number])
        _expired(logs, truths[number])
        if number not in shared:
            _no_overlap(truths[number])
    return truths


def position(logs: Logs, committed: int, synced: int) -> Position:
    """Return where a group that committed this source offset stands, and what the synced target offset does to it.

    The source counts as far as it is known: up to the cut, and what came later and has arrived on the target.
    """
    logs = _written(logs)
    first_s = min((one for one, _ in _images(logs)), default=0) if logs.target_start else 0
    s = [(n, record) for n, record in logs.source if first_s <= n < logs.cut]
    later = [(n, record) for n, record in logs.source if n >= max(logs.cut, first_s)]
    t = logs.target
    first, last, end, end_of_copies = [], [], [], []
    skipped = repeated = 0
    for record in {record for _, record in [*s, *later]}:
        there = alignment.offsets(t, record)
        ours = alignment.offsets(s, record)
        ours += alignment.offsets(later, record)[: max(len(there) - len(ours), 0)]
        before, wanted = [n for n in ours if n < committed], [n for n in ours if n >= committed]
        ahead = sum(1 for offset in there if offset >= synced)
        skipped += max(min(len(wanted), len(there)) - ahead, 0)
        if before:
            repeated += max(ahead - len(wanted), 0)
        if wanted and len(there) > len(before):
            first.append(there[len(before)])
        if wanted and there:
            last.append(there[max(len(there) - len(wanted), 0)])
        if there and ours:
            end.append(there[min(len(ours), len(there)) - 1] + 1)
            end_of_copies.append(there[-1] + 1)
    lowest = min(first) if first else max(end, default=None)
    highest = min(last) if last else max(end_of_copies, default=None)
    return Position(lowest, highest, skipped, repeated)


def _written(logs: Logs) -> Logs:
    """What no transaction has decided yet was written after the cut, like all that is."""
    return replace(logs, source=[*logs.source, *logs.pending], pending=())


def _images(logs: Logs) -> list[tuple[int, int]]:
    return alignment.images(logs.source, logs.target, from_end=logs.source_start > 0 or logs.target_start > 0)


def _multiset(logs: Logs, truth: Truth) -> None:
    """Lost, doubled, foreign and aborted records, and those out of order; what of them has expired is not said yet.

    The target's log counts up to the image of the cut: what stands behind it was written later.
    """
    images = _images(logs)
    here, there = {one for one, _ in images}, {other for _, other in images}
    end = min((other for one, other in images if one >= logs.cut), default=math.inf)
    truth.found["lost"] = [Place(n) for n, _ in logs.source if n < logs.cut and n not in here]
    aborted = [record for _, record in logs.aborted]
    for n, record in logs.target:
        if n in there or n >= end:
            continue
        originals = alignment.offsets(logs.source, record)
        if record in aborted:
            if originals:
                aborted.remove(record)
            truth.found["aborted"].append(Place(target=n))
        elif originals:
            truth.found["doubled"].append(Place(originals[0], n))
        else:
            truth.found["foreign"].append(Place(target=n))
    truth.overlap = alignment.overlap(logs.source, [one for one in logs.target if one[0] in there or one[0] < end])
    truth.compared = sum(one < logs.cut for one, _ in images)
    # Which image is that of which of several identical records is unknown: the order of those is not judged.
    times = Counter(record for _, record in logs.source)
    alone = {n for n, record in logs.source if times[record] == 1}
    furthest = -1
    for at_target, at_source in sorted((other, one) for one, other in images if one in alone):
        if at_source < min(furthest, logs.cut):
            truth.found["out_of_order"].append(Place(at_source, at_target))
        furthest = max(furthest, at_source)


def _heads(logs: Logs, truth: Truth) -> tuple[list[Place], list[Place]]:
    """Lost and foreign records in front of what both logs hold: one of the two may have expired on the other side.

    A source or a target that retention has emptied ends where what it held would: nothing stands behind it.
    """
    if not logs.source_start and not logs.target_start:
        return [], []
    from_s = from_t = -1.0
    if truth.overlap:
        from_s, from_t = truth.overlap.source, truth.overlap.target
    elif not logs.target:
        from_s = logs.cut if logs.position is None else min(logs.cut, logs.position + 1)
    elif all(n >= logs.cut for n, _ in logs.source):
        from_t = math.inf
    content = dict(logs.target)
    for n, record in logs.aborted:  # what the target still holds in front is older than what it can have removed
        if any(content[one.target] == record and one.target < from_t for one in truth.found["aborted"]):
            from_s = min(from_s, n)
    lost = [one for one in truth.found["lost"] if one.source < from_s]
    return lost, [one for one in truth.found["foreign"] if one.target < from_t]


def _explained(logs: Logs, lost: Sequence[Place], foreign: Sequence[Place]) -> tuple[bool, bool]:
    """Whether the log starts explain what only the source and what only the target holds in front."""
    at_target = 0 if foreign and logs.source_start else logs.target_start
    return len(lost) <= at_target, len(foreign) <= logs.source_start


def _expired(logs: Logs, truth: Truth) -> None:
    """Of what stands in front, as much has expired as the log starts prove."""
    lost, foreign = _heads(logs, truth)
    content = dict(logs.target)
    known = truth.overlap.known if truth.overlap else math.inf
    offsets = alignment.proven([(one.target, content[one.target]) for one in foreign], logs.source_start, known)
    at_source = [one for one in foreign if one.target in offsets]
    at_target = lost[max(0, len(lost) - logs.target_start) :]
    if at_source or not logs.target_start:  # the target still holds what is older than all of the source
        at_target = []
    truth.found["expired_at_source"], truth.found["expired_at_target"] = at_source, at_target
    truth.take("foreign", at_source)
    truth.take("lost", at_target)
    gone = {content[one.target] for one in at_source}
    copies = [one for one in truth.found["foreign"] if content[one.target] in gone]
    truth.take("foreign", copies)
    truth.found["doubled"] += copies


def _wrong_partition(partitions: Mapping[int, Logs], truths: Mapping[int, Truth]) -> None:
    """Lost in one partition, foreign in another: counted once, under the partition of the source.

    What a log start explains of a target is no image; of a source it comes last.
    """
    heads = {number: _heads(logs, truths[number]) for number, logs in partitions.items()}
    ordinary: dict[int, tuple[list[Place], list[Place]]] = {}
    for number, (lost, foreign) in heads.items():
        explained = all(_explained(partitions[number], lost, foreign)) and not (lost and foreign)
        ordinary[number] = heads[number] if explained else ([], [])
    turns = [(number, place) for number in sorted(partitions) for place in truths[number].found["lost"]]
    turns.sort(key=lambda turn: turn[1] in ordinary[turn[0]][0])
    sources = {number: dict(logs.source) for number, logs in partitions.items()}
    targets = {number: dict(logs.target) for number, logs in sorted(partitions.items())}
    for number, place in turns:
        content = sources[number][place.source]
        there = [
            (other, one)
            for other, target in targets.items()
            for one in truths[other].found["foreign"]
            if other != number and target[one.target] == content and one not in ordinary[other][1]
        ]
        if there:
            other, one = there[0]
            truths[number].take("lost", [place])
            truths[other].take("foreign", [one])
            truths[number].found["wrong_partition"].append(Place(place.source, one.target, target_partition=other))


def _altered(logs: Logs, truth: Truth) -> None:
    """Pair a lost with a foreign record that agrees in all parts but one, or has the same key and is near.

    Where retention may have removed something, records in front of the overlap are paired among themselves. Surely
    altered are only those that agree in all parts but one, the last ones first, and of which the timestamp does not go
    back: an older record may resemble them. They belong to the overlap, or make it. Others are looked for only where
    retention explains neither what the one nor what the other side holds alone.
    """
    lost, foreign = truth.found["lost"], truth.found["foreign"]
    if logs.source_start or logs.target_start:
        before, head = _heads(logs, truth)
        pairs: list[Place] = []
        if truth.overlap:
            pairs = _surely(logs, truth, before, head)
        elif logs.target and any(n < logs.cut for n, _ in logs.source):
            pairs = _surely(logs, truth, lost, foreign)
            if not pairs:
                return
        if pairs:
            first = Overlap(*(min(getattr(one, side) for one in pairs) for side in ("source", "target", "target")))
            old = truth.overlap or first
            truth.overlap = Overlap(*map(min, zip(astuple(old), astuple(first), strict=True)))
        before, head = _heads(logs, truth)
        if not any(_explained(logs, before, head)):
            _resembling(logs, truth, before, head)
            before, head = _heads(logs, truth)
        lost = [one for one in truth.found["lost"] if one not in before]
        foreign = [one for one in truth.found["foreign"] if one not in head]
    _resembling(logs, truth, lost, foreign)


def _surely(logs: Logs, truth: Truth, lost: Sequence[Place], foreign: Sequence[Place]) -> list[Place]:
    here, there = dict(logs.source), dict(logs.target)
    left, right, pairs = sorted(lost, reverse=True), sorted(foreign, reverse=True), []
    for odd in PARTS:
        for place in list(left):
            alike = [one for one in right if _differs(here[place.source], there[one.target]) == (odd,)]
            back = alike and there[alike[0].target].timestamp < here[place.source].timestamp
            if alike and not (odd == "timestamp" and back):
                left.remove(place)
                right.remove(alike[0])
                pairs.append(_take(truth, place, alike[0], (odd,)))
    return pairs


def _resembling(logs: Logs, truth: Truth, lost: Sequence[Place], foreign: Sequence[Place]) -> None:
    here, there = dict(logs.source), dict(logs.target)
    left, right = sorted(lost), sorted(foreign)
    for odd in PARTS:
        for place in list(left):
            for other in right:
                if _differs(here[place.source], there[other.target]) == (odd,):
                    _take(truth, place, other, (odd,))
                    left.remove(place)
                    right.remove(other)
                    break
    rank_s, rank_t = [n for n, _ in logs.source], [n for n, _ in logs.target]
    first = truth.overlap or Overlap(0, 0, 0)
    shift = bisect_left(rank_t, first.target) - bisect_left(rank_s, first.source)

    def apart(place: Place, other: Place) -> int:
        return abs(bisect_left(rank_t, other.target) - bisect_left(rank_s, place.source) - shift)

    near = sorted(
        (apart(place, other), place, other)
        for place in left
        for other in right
        if here[place.source].key is not None
        and here[place.source].key == there[other.target].key
        and apart(place, other) <= NEIGHBOURHOOD
    )
    for _, place, other in near:
        if place in left and other in right:
            left.remove(place)
            right.remove(other)
            _take(truth, place, other, _differs(here[place.source], there[other.target]))


def _take(truth: Truth, lost: Place, foreign: Place, differs: tuple[str, ...]) -> Place:
    truth.take("lost", [lost])
    truth.take("foreign", [foreign])
    truth.found["altered"].append(Place(lost.source, foreign.target, differs))
    return truth.found["altered"][-1]


def _differs(one: Record, other: Record) -> tuple[str, ...]:
    return tuple(name for name in PARTS if getattr(one, name) != getattr(other, name))


def _no_overlap(truth: Truth) -> None:
    """Nothing is the same on both sides, and either holds records of which nobody knows what became of them."""
    if truth.found["lost"] and any(truth.found[kind] for kind in ("foreign", "doubled", "aborted")):
        truth.found["no_overlap"] = list(truth.found["lost"])


def _last_of_each_key(logs: Logs, truth: Truth) -> None:
    """A compacted log is what remains of each key. A tombstone equals an absent key. Either may lose its beginning."""
    truth.overlap = alignment.overlap(logs.source, logs.target)
    before = {record.key: (n, record) for n, record in logs.source if n < logs.cut and record.key is not None}
    there = {record.key: (n, record) for n, record in logs.target if record.key is not None}
    after: dict[bytes | None, list[Record]] = defaultdict(list)
    for n, record in logs.source:
        if n >= logs.cut:
            after[record.key].append(record)
    _without_key(logs, truth)
    for key in before.keys() | there.keys():
        s, t = before.get(key), there.get(key)
        s_live, t_live = s is not None and s[1].value is not None, t is not None and t[1].value is not None
        if (s and t and s[1] == t[1]) or (not s_live and not t_live) or (t and t[1] in after[key]):
            truth.compared += 1
        elif s is None and after[key] and logs.never_cleaned != "source":
            continue  # superseded at the source after the cut: its log may have dropped what is older
        elif t is None and after[key] and after[key][-1].value is None and logs.never_cleaned != "target":
            continue  # deleted since: the target may have dropped the record and its tombstone
        elif t is None and s is not None:
            truth.found["lost"].append(Place(s[0]))
        elif s is None and t is not None:
            truth.found["foreign"].append(Place(target=t[0]))
        elif s is not None and t is not None:
            truth.found["altered"].append(Place(s[0], t[0], _differs(s[1], t[1])))
    truth.found["lost"].sort()
    truth.found["foreign"].sort()
    _expired(logs, truth)


def _without_key(logs: Logs, truth: Truth) -> None:
    """Count each record without a key; those are out of scope of which the other log shows that it was cleaned."""
    lost: list[int] = []
    extra: list[Place] = []
    for record in {record for _, record in [*logs.source, *logs.target] if record.key is None}:
        every = alignment.offsets(logs.source, record)
        ours = [n for n in every if n < logs.cut]
        there = alignment.offsets(logs.target, record)
        truth.compared += min(len(ours), len(there))
        lost += ours[: max(0, len(ours) - len(there))]
        more = there[: max(0, len(there) - len(every))]
        extra += [Place([*every[len(ours) :][:1], *ours][-1] if every else -1, n) for n in more]
    images = {record for _, record in logs.source} & {record for _, record in logs.target}
    once = [(n, record) for n, record in logs.source if len(alignment.offsets(logs.source, record)) == 1]
    anchors = [(n, alignment.offsets(logs.target, record)[-1]) for n, record in once if record in images]
    keyed = [
        [n for n, record in log if record.key is not None and record not in images]
        for log in (logs.source, logs.target)
    ]
    ours = [n for n in keyed[0] if n < logs.cut]
    end = max([logs.cut, *(n + 1 for n, _ in logs.source)])
    gone = alignment.cleaned(lost, ours, anchors, _bounded(logs.target, logs.target_start, logs.target_start))
    if logs.never_cleaned == "target":
        gone = set()
    truth.found["lost"] += [Place(n) for n in lost if n not in gone]
    turned = [(other, one) for one, other in anchors]
    removed = alignment.cleaned(
        [one.target for one in extra], keyed[1], turned, _bounded(logs.source, logs.source_start, end)
    )
    if logs.never_cleaned == "source":
        removed = set()
    for one in extra:
        if one.target not in removed:
            truth.found["foreign" if one.source < 0 else "doubled"].append(one)


def _bounded(log: Log, start: int, end: int) -> alignment.Bounded:
    """A log with where it starts and ends, and its first record without a key."""
    last = max([end, *(n + 1 for n, _ in log)])
    stop = min((n for n, record in log if record.key is None), default=last)
    return alignment.Bounded(tuple(n for n, _ in log), start, last, stop)
