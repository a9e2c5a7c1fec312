"""The soak's own truth: what the ledger says of small logs, and how a report is held against it."""

import copy
from typing import Any

from benchmarks.soak import differences, group_differences, total
from benchmarks.truth import Entry, Ledger, Position, Truth, digest, judge, never_read, position

PLACE = ("orders", 0)


def log(letters: str, start: int = 0) -> list[Entry]:
    return [(start + n, letter.encode()) for n, letter in enumerate(letters) if letter != "."]


def found(source: str, target: str, cut: int | None = None, aborted: str = "") -> dict[str, int]:
    return dict(judge(log(source), log(aborted), log(target, 7), len(source) if cut is None else cut).found)


def test_a_digest_distinguishes_null_from_empty_and_header_from_header() -> None:
    variants = [
        digest(None, b"v", [], 1),
        digest(b"", b"v", [], 1),
        digest(b"", None, [], 1),
        digest(b"", b"v", [("h", None)], 1),
        digest(b"", b"v", [("h", b"")], 1),
        digest(b"", b"v", [], 2),
    ]
    assert len(set(variants)) == len(variants)


def test_equal_logs_hold_nothing_wrong_whatever_their_offsets() -> None:
    assert found("ab..cd", "abcd") == {}


def test_each_fault_is_counted() -> None:
    assert found("abcd", "acd") == {"lost": 1}
    assert found("abcd", "abcbcd") == {"doubled": 2}
    assert found("abcd", "abxcd") == {"foreign": 1}
    assert found("abcd", "abxcd", aborted="x") == {"aborted": 1}
    assert found("abcd", "abxcxd", aborted="x") == {"aborted": 2}
    assert found("abcd", "acbd") == {"out_of_order": 1}


def test_what_a_restarted_worker_copies_again_is_doubled_and_not_out_of_order() -> None:
    assert found("abcdef", "abcdbcdef") == {"doubled": 3}


def test_what_stands_behind_the_image_of_the_cut_is_out_of_scope() -> None:
    assert found("abcd", "abcdcd", cut=2) == {}
    assert found("abcd", "ab", cut=2) == {}


def test_a_group_stands_where_its_next_record_is() -> None:
    assert position(log("abcd"), log("abcd", 10), 4, 2, 13) == Position(12, 12, 1, 0)
    assert position(log("abcd"), log("abcd", 10), 4, 2, 11) == Position(12, 12, 0, 1)


def test_a_group_that_works_stands_behind_the_cut() -> None:
    assert position(log("abcdef"), log("abcdef", 10), 2, 3, 15) == Position(13, 13, 2, 0)
    assert position(log("abcdef"), log("abcdef", 10), 2, 5, 11) == Position(15, 15, 0, 4)
    assert position(log("abcdef"), log("abc", 10), 2, 3, 13) == Position(13, 13, 0, 0)


def test_only_acknowledged_records_of_committed_transactions_are_expected() -> None:
    ledger = Ledger()
    ledger.add(PLACE, 0, b"a")
    ledger.add(PLACE, 1, b"b", committed=False)
    assert ledger.records == 1
    assert ledger.aborted[PLACE] == [(1, b"b")]


def report() -> dict[str, Any]:
    finding = {"kind": "doubled", "count": 3}
    part = {"topic": "orders", "partition": 0, "source_records": 5, "target_records": 8, "findings": [finding]}
    return {"partitions": [part]}


def test_a_report_that_says_the_truth_has_no_differences() -> None:
    assert differences(report(), {PLACE: Truth(5, 8, {"doubled": 3})}) == []


def test_a_report_that_says_anything_else_is_reported() -> None:
    truth = {PLACE: Truth(5, 8, {"doubled": 2})}
    assert differences(report(), truth) == ["orders-0: findings {'doubled': 3}, truth {'doubled': 2}"]
    wrong = copy.deepcopy(report())
    wrong["partitions"] = []
    assert differences(wrong, truth) == ["orders-0: must be in the report (got nothing)"]


def test_a_wrong_group_position_is_reported() -> None:
    row = {"group": "g", "topic": "orders", "partition": 0, "synced": 3}
    row |= {"lowest": 4, "highest": 4, "skipped": 0, "repeated": 1}
    assert group_differences(row, Position(4, 4, 0, 1)) == []
    assert group_differences(row, Position(4, 4, 0, 2)) == ["g on orders-0: repeated 1, truth 2"]


def test_findings_are_added_up_over_partitions() -> None:
    assert total(
        [[{"kind": "doubled", "count": 3}], [{"kind": "doubled", "count": 1}, {"kind": "lost", "count": 2}]]
    ) == {
        "doubled": 4,
        "lost": 2,
    }


def test_a_record_that_no_member_has_read_must_lie_ahead_of_the_group() -> None:
    source, target = log("abcd"), log("abcd", 10)
    assert never_read(source, {0, 1}, target, 4, 12) == 0
    assert never_read(source, {0, 1}, target, 4, 13) == 1, "the group's own position would have hidden it"
    assert never_read(source, {0, 2}, target, 4, 13) == 1, "the member was not given the second one"
    assert never_read(source, {0, 1}, target, 2, 13) == 0, "behind the cut"
    assert never_read(source, {0, 1}, log("ab.d", 10), 4, 12) == 0, "it is lost, which is another fault"
    assert never_read(log("aaaa"), {0, 1}, log("aaaaa", 10), 4, 12) == 0


def test_what_a_broker_aborts_after_its_acknowledgement_is_aborted_and_what_its_log_lacks_is_not() -> None:
    ledger, tp = Ledger(), ("items", 0)
    for offset in range(5):
        ledger.add(tp, offset, b"%d" % offset)
    given = [(0, b"0")]
    log = [(0, b"0"), (1, b"1"), (2, b"another")]
    ledger.follow_markers(tp, 4, given, lambda: log)
    assert ledger.revoked == 1
    assert ledger.aborted[tp] == [(1, b"1")]
    assert ledger.source(tp) == [(0, b"0"), (2, b"2"), (3, b"3"), (4, b"4")], "the log lacks two, one is not judged yet"


def test_what_a_broker_commits_after_it_has_acknowledged_the_abort_is_committed() -> None:
    ledger, tp = Ledger(), ("items", 0)
    for offset in range(4):
        ledger.add(tp, offset, b"%d" % offset, committed=offset not in (1, 2))
    ledger.follow_markers(tp, 4, [(0, b"0"), (1, b"1"), (3, b"3")], list)
    assert (ledger.restored, ledger.revoked) == (1, 0)
    assert ledger.aborted[tp] == [(2, b"2")]
    assert ledger.source(tp) == [(0, b"0"), (1, b"1"), (3, b"3")]


def test_a_deleted_topic_has_no_acknowledged_records() -> None:
    ledger = Ledger()
    ledger.add(("gone", 0), 0, b"a")
    ledger.add(("kept", 0), 0, b"a")
    ledger.forget("gone")
    assert ledger.records == 1
