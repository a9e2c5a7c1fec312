"""What verifications found. A case begins at the moment 0, so that a run which ended at 0 is as old as the case."""

from tests.support.alert_cases.case import MIRROR, STACK, Case, Fired, of

_OF = {"stack": STACK, "mirror": MIRROR}
_RUN = "rt_inventory_verification_"
_FINISHED, _EXIT = of(f"{_RUN}finished_timestamp_seconds"), of(f"{_RUN}exit_code")
_UNPROVEN = of("rt_inventory_mirror_unproven")
_WHOSE = "mirror mm2 of stg"


def _verdict(word: str, mirror: str = MIRROR) -> str:
    return of(f"{_RUN}verdict", mirror, verdict=word)


def _found(kind: str) -> str:
    return of(f"{_RUN}finding_records", kind=kind)


def _check(name: str) -> str:
    return of(f"{_RUN}check", check=name)


def _reported_by(teller: str, finished_s: int, verdict: str, *, lost: int = 0, exit_code: int = 0) -> dict[str, str]:
    """All that one teller says of one run: a push gateway, or `ops`, which reads the run's report."""
    source = f',instance="{teller}",job="{teller}"}}'
    exported = {
        _FINISHED: finished_s,
        _EXIT: exit_code,
        **{_verdict(word): int(word == verdict) for word in ("pass", "fail", "error")},
        _found("lost"): lost,
        _found("no_overlap"): 0,
        _check("records_complete"): int(not lost),
        of(f"{_RUN}group_skipped_records", group="stock"): lost,
    }
    return {name.replace("}", source): f"{value}x60" for name, value in exported.items()}


def _fired(summary: str, severity: str = "critical") -> tuple[Fired]:
    return (Fired(labels=_OF, severity=severity, summary=summary),)


VERIFICATION_CASES = (
    Case(
        alert="VerificationFailed",
        name="the verdict is fail",
        series={_verdict("fail"): "0x5 1x20"},
        at="7m",
        fires=_fired(f"The verification of {_WHOSE} failed"),
    ),
    Case(
        alert="VerificationFailed",
        name="it passed, and the other failed before it was stopped",
        series={_verdict("fail"): "0x20", _verdict("pass"): "1x20", _verdict("fail", "resting"): "1x20"},
        at="7m",
    ),
    Case(
        alert="VerificationOfEmptyPair",
        name="records flow, and nobody has verified them",
        series={_UNPROVEN: "0x10 1x90"},
        at="75m",
        fires=_fired(f"Nothing proves the records of {_WHOSE}", "warning"),
    ),
    Case(
        alert="VerificationOfEmptyPair",
        name="they have been verified soon",
        series={_UNPROVEN: "1x50 0x50"},
        at="75m",
    ),
    Case(alert="VerificationOfEmptyPair", name="not for an hour yet", series={_UNPROVEN: "1x90"}, at="50m"),
    Case(
        alert="VerificationUnknown",
        name="it could not begin",
        series={_verdict("error"): "1x60", _EXIT: "2x60"},
        at="40m",
        fires=_fired(f"The verification of {_WHOSE} could not judge", "warning"),
    ),
    Case(
        alert="VerificationUnknown",
        name="what is unknown is allowed",
        series={_verdict("unknown"): "1x60", _EXIT: "0x60"},
        at="40m",
    ),
    Case(
        alert="VerificationUnknown",
        name="the next run could judge",
        series={_verdict("error"): "1x20 0x60", _EXIT: "2x20 0x60"},
        at="20m",
    ),
    Case(
        alert="VerificationStale",
        name="yesterday's did not run",
        series={_FINISHED: "0x60"},
        interval="30m",
        at="28h",
        fires=_fired(f"The last verification of {_WHOSE} is 28 hours old", "warning"),
    ),
    Case(
        alert="VerificationStale",
        name="its number vanishes",
        series={_FINISHED: "0 0 stale"},
        interval="30m",
        at="28h",
        fires=_fired(f"The last verification of {_WHOSE} is 28 hours old", "warning"),
    ),
    Case(
        alert="VerificationStale",
        name="one a day, and none of a stopped mirror",
        series={
            _FINISHED: f"0x47 {24 * 3600}x20",
            of(f"{_RUN}finished_timestamp_seconds", "resting"): "0x60",
        },
        interval="30m",
        at="28h",
    ),
    Case(
        alert="VerificationStale",
        name="late, but within half an hour",
        series={_FINISHED: f"0x53 {27 * 3600}x20"},
        interval="30m",
        at="26h30m",
    ),
    Case(
        alert="VerificationMissing",
        name="never",
        series={},
        interval="30m",
        at="27h",
        fires=_fired(f"Nobody verifies {_WHOSE}", "warning"),
    ),
    Case(alert="VerificationMissing", name="not yet on a new pair", series={}, interval="30m", at="20h"),
    Case(alert="VerificationMissing", name="once", series={_FINISHED: "_x20 3600x60"}, interval="30m", at="27h"),
    Case(
        alert="RecordsLost",
        name="two records",
        series={
            _found("lost"): "1x20",
            _found("no_overlap"): "1x20",
            _check("records_complete"): "0x20",
            _FINISHED: "0x20",
        },
        at="7m",
        fires=_fired(f"2 records of {_WHOSE} are not on the target"),
    ),
    Case(
        alert="RecordsLost",
        name="none",
        series={_found("doubled"): "2x20", _check("records_complete"): "1x20", _FINISHED: "0x20"},
        at="7m",
    ),
    Case(
        alert="GroupWouldSkip",
        name="three records",
        series={of(f"{_RUN}group_skipped_records", group="stock"): "3x20"},
        at="7m",
        fires=(
            Fired(
                labels={**_OF, "group": "stock"},
                severity="critical",
                summary="Group stock would skip 3 records after a failover",
            ),
        ),
    ),
    Case(
        alert="GroupWouldSkip",
        name="it would only repeat some",
        series={
            of(f"{_RUN}group_skipped_records", group="stock"): "0x20",
            of(f"{_RUN}group_repeated_records", group="stock"): "3x20",
        },
        at="7m",
    ),
    Case(
        alert="RecordsAltered",
        name="of two kinds",
        series={
            _found("altered"): "2x20",
            _found("out_of_order"): "1x20",
            _check("records_intact"): "0x20",
            _check("records_ordered"): "0x20",
            _FINISHED: "0x20",
        },
        at="7m",
        fires=_fired(f"3 records of {_WHOSE} are not as they were written"),
    ),
    Case(
        alert="RecordsAltered",
        name="none",
        series={_check("records_intact"): "1x20", _check("records_ordered"): "1x20", _FINISHED: "0x20"},
        at="7m",
    ),
    Case(
        alert="RecordsDoubled",
        name="more than is allowed",
        series={_found("doubled"): "9x20", _check("records_unique"): "0x20", _FINISHED: "0x20"},
        at="7m",
        fires=_fired(f"9 records of {_WHOSE} stand twice on the target", "warning"),
    ),
    Case(
        alert="RecordsDoubled",
        name="after a restart, as allowed",
        series={_found("doubled"): "9x20", _check("records_unique"): "1x20", _FINISHED: "0x20"},
        at="7m",
    ),
    Case(
        alert="RecordsForeign",
        name="somebody writes to the target",
        series={_found("foreign"): "5x20", _check("records_foreign"): "0x20", _FINISHED: "0x20"},
        at="7m",
        fires=_fired(f"5 records at the target of {_WHOSE} come from elsewhere", "warning"),
    ),
    Case(
        alert="RecordsForeign",
        name="they are allowed",
        series={_found("foreign"): "5x20", _check("records_foreign"): "1x20", _FINISHED: "0x20"},
        at="7m",
    ),
    Case(
        alert="RecordsLost",
        name="two exporters of one run",
        series=_reported_by("gateway", 60, "fail", lost=7) | _reported_by("ops", 60, "fail", lost=7),
        at="7m",
        fires=_fired(f"7 records of {_WHOSE} are not on the target"),
    ),
    *(
        Case(
            alert=alert,
            name="a gateway keeps an older run",
            series=_reported_by("gateway", 60, "fail", lost=7, exit_code=1) | _reported_by("ops", 120, "pass"),
            at="7m",
        )
        for alert in ("VerificationFailed", "RecordsLost", "GroupWouldSkip")
    ),
    Case(
        alert="VerificationFailed",
        name="the newer of two fails",
        series=_reported_by("gateway", 60, "pass") | _reported_by("ops", 120, "fail"),
        at="7m",
        fires=_fired(f"The verification of {_WHOSE} failed"),
    ),
    Case(
        alert="VerificationUnknown",
        name="a gateway keeps one that could not begin",
        series=_reported_by("gateway", 60, "error", exit_code=2) | _reported_by("ops", 120, "pass"),
        at="40m",
    ),
)
