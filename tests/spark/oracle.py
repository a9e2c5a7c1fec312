"""What a verification must find, by plain Python that walks both logs: slow, obvious, and without the job's own code.

An oracle that shares code with what it judges shares its bugs: nothing of `spark` is imported here. The words are those
of docs/verification.md. Offsets are ascending in every log and have holes where markers or compacted records stood.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

PARTS = ("key", "value", "headers", "timestamp")
NEIGHBOURHOOD = 1000


@dataclass(frozen=True)
class Record:
    """A record is what it carries; two with equal parts are identical."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = 0


Log = Sequence[tuple[int, Record]]


@dataclass(frozen=True, kw_only=True)
class Logs:
    """Both logs of one partition. `source` goes on after the cut; `aborted` are the source's aborted records.

    `pending` are records from the last stable offset on: those of a transaction that is still open, and what other
    producers wrote behind its first one. `position` is the last source offset that the mirror says it has copied.
    """

    source: Log
    target: Log
    cut: int
    source_start: int = 0
    target_start: int = 0
    aborted: Log = ()
    pending: Log = ()
    position: int | None = None
    compacted: bool = False


@dataclass(frozen=True, order=True)
class Place:
    """One offending record: -1 for a side that does not have it."""

    source: int = -1
    target: int = -1
    differs: tuple[str, ...] = ()
    target_partition: int = -1


@dataclass
class Truth:
    """What is true of one partition: offending records by kind, and the source's records that have an image."""

    compared: int = 0
    found: dict[str, list[Place]] = field(default_factory=lambda: defaultdict(list))

    def counts(self) -> dict[str, int]:
        """Number of offending records of each kind that occurs."""
        return {kind: len(places) for kind, places in sorted(self.found.items()) if places}


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
    overlaps = {number: _overlap(logs) for number, logs in whole.items()}
    for number, logs in whole.items():
        _multiset(logs, overlaps[number], truths[number])
    _wrong_partition(whole, truths)
    for number, logs in whole.items():
        _altered(logs, overlaps[number], truths[number])
        _no_overlap(logs, truths[number])
    return truths


def position(logs: Logs, committed: int, synced: int) -> Position:
    """Return where a group that committed this source offset stands, and what the synced target offset does to it.

    The source counts as far as it is known: up to the cut, and what came later and has arrived on the target.
    """
    logs = _written(logs)
    s, later, t = _trimmed(logs, _overlap(logs))
    first, last, end, end_of_copies = [], [], [], []
    skipped = repeated = 0
    for record in {record for _, record in [*s, *later]}:
        there = _offsets(t, record)
        ours = _offsets(s, record)
        ours += _offsets(later, record)[: max(len(there) - len(ours), 0)]
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


def _offsets(log: Log, record: Record) -> list[int]:
    return [offset for offset, other in log if other == record]


def _images(logs: Logs) -> list[tuple[int, int]]:
    """Return source and target offsets of records that correspond.

    As many as possible keep their order (the longest common subsequence); which of several identical ones is chosen
    cannot be told. Records left over correspond to identical ones left over, the n-th to the n-th. Where a log lost
    its beginning, identical records are aligned from the end, because retention removes from the beginning.
    """
    from_end = logs.source_start > 0 or logs.target_start > 0
    source, target = list(logs.source), list(logs.target)
    pairs = _backwards(source, target) if from_end else _in_order(source, target)
    here, there = {one for one, _ in pairs}, {other for _, other in pairs}
    rest = [(n, record) for n, record in source if n not in here]
    left = [(n, record) for n, record in target if n not in there]
    for record in {record for _, record in rest}:
        pairs += zip(_offsets(rest, record), _offsets(left, record), strict=False)
    return sorted(pairs)


def _backwards(source: list[tuple[int, Record]], target: list[tuple[int, Record]]) -> list[tuple[int, int]]:
    return _in_order(source[::-1], target[::-1])


def _in_order(source: list[tuple[int, Record]], target: list[tuple[int, Record]]) -> list[tuple[int, int]]:
    """A longest common subsequence, as early as possible."""
    longest = [[0] * (len(target) + 1) for _ in range(len(source) + 1)]
    for i in range(len(source) - 1, -1, -1):
        for j in range(len(target) - 1, -1, -1):
            same = source[i][1] == target[j][1]
            longest[i][j] = longest[i + 1][j + 1] + 1 if same else max(longest[i + 1][j], longest[i][j + 1])
    found, i, j = [], 0, 0
    while i < len(source) and j < len(target):
        if source[i][1] == target[j][1]:
            found.append((source[i][0], target[j][0]))
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return found


def _overlap(logs: Logs) -> tuple[int, int]:
    """Return the source and the target offset at which the overlap begins.

    What lies below is expired, which is possible only where the other log lost its own beginning.
    """
    images = _images(logs)
    from_s = from_t = 0
    if logs.target_start > 0:
        if images:
            from_s = min(source for source, _ in images)
        elif not logs.target:
            from_s = logs.cut if logs.position is None else min(logs.cut, logs.position + 1)
    if logs.source_start > 0:
        if images:
            from_t = min(target for _, target in images)
        elif all(offset >= logs.cut for offset, _ in logs.source):
            from_t = max((offset + 1 for offset, _ in logs.target), default=0)
    return from_s, from_t


def _trimmed(logs: Logs, overlap: tuple[int, int]) -> tuple[Log, Log, Log]:
    s = [(n, record) for n, record in logs.source if overlap[0] <= n < logs.cut]
    later = [(n, record) for n, record in logs.source if n >= max(logs.cut, overlap[0])]
    t = [(n, record) for n, record in logs.target if n >= overlap[1]]
    return s, later, t


def _multiset(logs: Logs, overlap: tuple[int, int], truth: Truth) -> None:
    """Lost, doubled, foreign, aborted and expired records, and those out of order.

    The target's log counts up to the image of the cut: what stands behind it was written later.
    """
    s, later, t = _trimmed(logs, overlap)
    truth.found["expired_at_target"] = [Place(n) for n, _ in logs.source if n < min(overlap[0], logs.cut)]
    truth.found["expired_at_source"] = [Place(target=n) for n, _ in logs.target if n < overlap[1]]
    images = _images(logs)
    here, there = {one for one, _ in images}, {other for _, other in images}
    end = min((other for one, other in images if one >= logs.cut), default=None)
    truth.found["lost"] = [Place(n) for n, _ in s if n not in here]
    aborted = [record for _, record in logs.aborted]
    for n, record in t:
        if n in there or (end is not None and n >= end):
            continue
        originals = _offsets(s, record) + _offsets(later, record)
        if record in aborted:
            if originals:
                aborted.remove(record)
            truth.found["aborted"].append(Place(target=n))
        elif originals:
            truth.found["doubled"].append(Place(originals[0], n))
        else:
            truth.found["foreign"].append(Place(target=n))
    truth.compared = sum(one < logs.cut for one, _ in images)
    # Which image is that of which of several identical records cannot be told: the order of those is not judged.
    every = [record for _, record in logs.source]
    alone = {n for n, record in logs.source if every.count(record) == 1}
    furthest = -1
    for at_target, at_source in sorted((other, one) for one, other in images if one in alone):
        if at_source < min(furthest, logs.cut):
            truth.found["out_of_order"].append(Place(at_source, at_target))
        furthest = max(furthest, at_source)


def _wrong_partition(partitions: Mapping[int, Logs], truths: Mapping[int, Truth]) -> None:
    """Lost in one partition, foreign in another: counted once, under the partition of the source."""
    for number, logs in sorted(partitions.items()):
        content = dict(logs.source)
        for place in list(truths[number].found["lost"]):
            for other, others in sorted(partitions.items()):
                there = dict(others.target)
                same = [one for one in truths[other].found["foreign"] if there[one.target] == content[place.source]]
                if other != number and same:
                    truths[number].found["lost"].remove(place)
                    truths[other].found["foreign"].remove(same[0])
                    moved = Place(place.source, same[0].target, target_partition=other)
                    truths[number].found["wrong_partition"].append(moved)
                    break


def _altered(logs: Logs, overlap: tuple[int, int], truth: Truth) -> None:
    """Pair a lost with a foreign record that agrees in all parts but one, or has the same key and is near."""
    s, _, t = _trimmed(logs, overlap)
    here, there = dict(s), dict(t)
    for odd in PARTS:
        for place in sorted(truth.found["lost"]):
            for other in sorted(truth.found["foreign"]):
                if _differs(here[place.source], there[other.target]) == (odd,):
                    _take(truth, place, other, (odd,))
                    break
    rank_s, rank_t = [n for n, _ in s], [n for n, _ in t]

    def apart(place: Place, other: Place) -> int:
        return abs(bisect_left(rank_t, other.target) - bisect_left(rank_s, place.source))

    near = sorted(
        (apart(place, other), place, other)
        for place in truth.found["lost"]
        for other in truth.found["foreign"]
        if here[place.source].key is not None
        and here[place.source].key == there[other.target].key
        and apart(place, other) <= NEIGHBOURHOOD
    )
    for _, place, other in near:
        if place in truth.found["lost"] and other in truth.found["foreign"]:
            _take(truth, place, other, _differs(here[place.source], there[other.target]))


def _take(truth: Truth, lost: Place, foreign: Place, differs: tuple[str, ...]) -> None:
    truth.found["lost"].remove(lost)
    truth.found["foreign"].remove(foreign)
    truth.found["altered"].append(Place(lost.source, foreign.target, differs))


def _differs(one: Record, other: Record) -> tuple[str, ...]:
    return tuple(name for name in PARTS if getattr(one, name) != getattr(other, name))


def _no_overlap(logs: Logs, truth: Truth) -> None:
    """Both sides hold records before the cut, and not one of the source has an image."""
    before = [record for n, record in logs.source if n < logs.cut]
    shared = {record for _, record in logs.source} & {record for _, record in logs.target}
    if before and logs.target and not shared:
        truth.found["no_overlap"] = [Place(n) for n, _ in logs.source if n < logs.cut]


def _last_of_each_key(logs: Logs, truth: Truth) -> None:
    """A compacted log is what remains of each key. A tombstone equals an absent key. Either may lose its beginning."""
    overlap = _overlap(logs)
    before = {record.key: (n, record) for n, record in logs.source if n < logs.cut}
    there = {record.key: (n, record) for n, record in logs.target}
    after: dict[bytes | None, list[Record]] = defaultdict(list)
    for n, record in logs.source:
        if n >= logs.cut:
            after[record.key].append(record)
    for key in before.keys() | there.keys():
        s, t = before.get(key), there.get(key)
        s_live, t_live = s is not None and s[1].value is not None, t is not None and t[1].value is not None
        if (s and t and s[1] == t[1]) or (not s_live and not t_live) or (t and t[1] in after[key]):
            truth.compared += 1
        elif (s is None or t is None) and after[key]:
            truth.compared += 1  # superseded at the source after the cut: either log may have dropped what is older
        elif t is None and s is not None:
            truth.found["expired_at_target" if s[0] < overlap[0] else "lost"].append(Place(s[0]))
        elif s is None and t is not None:
            truth.found["expired_at_source" if t[0] < overlap[1] else "foreign"].append(Place(target=t[0]))
        elif s is not None and t is not None:
            truth.found["altered"].append(Place(s[0], t[0], _differs(s[1], t[1])))
