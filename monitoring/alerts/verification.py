"""Alerts on the latest verification, and on the status that `ops` exports."""

from monitoring.alerts import OF_OPERATOR, Alert, AlertGroup, Severity, with_verification

_LABELS = ("stack", "mirror")
_RUN = "rt_inventory_verification"
_FINISHED = f"{_RUN}_finished_timestamp_seconds{{<mirror>}}"
_MIRROR = "mirror {{ $labels.mirror }} of {{ $labels.stack }}"


def latest_verification(series: str, finished: str) -> str:
    """Return a series of the latest run, where the series of several runs are scraped.

    A push gateway keeps an old run beside a newer one that `ops` exports, or both export the same. A run without a
    finish time is taken where no other has one.
    """
    latest = f"({finished} == on (stack, mirror) group_left () max by (stack, mirror) ({finished}))"
    return f"{series} and on (stack, mirror, instance, job) {latest} or {series} unless on (stack, mirror) {finished}"


def _latest(metric: str, *matchers: str) -> str:
    """Return a metric of the latest run."""
    return latest_verification(f"{_RUN}_{metric}{{{','.join(('<mirror>', *matchers))}}}", _FINISHED)


def _found(kinds: str) -> str:
    """Records of some kinds, each counted once; a run that found none exports no number."""
    found = _latest("finding_records", f'kind=~"{kinds}"')
    return (
        f"sum by (stack, mirror) (max by (stack, mirror, kind) ({found})) or 0 * max by (stack, mirror) ({_FINISHED})"
    )


def _fails(checks: str) -> str:
    """Findings within what is allowed are no news."""
    return "and on (stack, mirror) (" + _latest("check", f'check=~"{checks}"') + ") < 1"


VERIFICATION = AlertGroup(
    name="verification",
    dashboard="rt-inventory-verification",
    alerts=(
        Alert(
            name="VerificationFailed",
            severity=Severity.CRITICAL,
            value="max by (stack, mirror) (" + _latest("verdict", 'verdict="fail"') + ")",
            comparison=">",
            threshold=0,
            hold="0m",
            labels=_LABELS,
            summary=f"The verification of {_MIRROR} failed",
            description="The target does not hold what it should. Do not fail over on it before the report is read.",
        ),
        Alert(
            name="VerificationUnknown",
            severity=Severity.WARNING,
            value="max by (stack, mirror) (" + _latest("verdict", 'verdict=~"unknown|error|stopped"') + ")",
            comparison=">",
            threshold=0,
            # What `allowUnknown` names ends with 0.
            guard=f"and on (stack, mirror) max by (stack, mirror) ({_latest('exit_code')}) > 0",
            hold="30m",
            labels=_LABELS,
            summary=f"The verification of {_MIRROR} could not judge",
            description="The last run ended without a judgement, half an hour ago, and none has followed.",
        ),
        Alert(
            name="VerificationStale",
            severity=Severity.WARNING,
            value=f"(time() - max by (stack, mirror) (last_over_time({_FINISHED}[7d]))) / 3600",
            comparison=">",
            threshold="verification_age_hours",
            hold="30m",
            labels=_LABELS,
            mirrors=with_verification,
            summary="The last verification of " + _MIRROR + ' is {{ $value | printf "%.0f" }} hours old',
            description="It should run at least every <verification_age_hours> hours: its last result is no proof now.",
        ),
        Alert(
            name="VerificationMissing",
            severity=Severity.WARNING,
            value=f"count by (stack, mirror) ({_FINISHED})",
            missed=_FINISHED,
            comparison="<",
            threshold=1,
            hold="<verification_age_hours>h",
            labels=_LABELS,
            mirrors=with_verification,
            summary=f"Nobody verifies {_MIRROR}",
            description="For <verification_age_hours> hours there was no result of a verification at all.",
        ),
        Alert(
            name="VerificationOfEmptyPair",
            severity=Severity.WARNING,
            value="max by (stack, mirror) (rt_inventory_mirror_unproven{<mirror>})",
            comparison=">",
            threshold=0,
            hold="1h",
            labels=_LABELS,
            summary=f"Nothing proves the records of {_MIRROR}",
            description="The last verification ran while there was no record, and passed what it could not judge. Now "
            "the source has records, for an hour, and none has verified them.",
        ),
        Alert(
            name="RecordsLost",
            severity=Severity.CRITICAL,
            value=_found("lost|no_overlap"),
            comparison=">",
            threshold=0,
            guard=_fails("records_complete"),
            hold="0m",
            labels=_LABELS,
            summary="{{ $value }} records of " + _MIRROR + " are not on the target",
            description="They were written before the verification's cut, and the mirror has passed them.",
        ),
        Alert(
            name="GroupWouldSkip",
            severity=Severity.CRITICAL,
            value=f"max by (stack, mirror, group) ({_latest('group_skipped_records')})",
            comparison=">",
            threshold=0,
            hold="0m",
            labels=("stack", "mirror", "group"),
            summary="Group {{ $labels.group }} would skip {{ $value }} records after a failover",
            description=f"At the target it stands behind records that it has not read, in {_MIRROR}.",
        ),
        Alert(
            name="RecordsAltered",
            severity=Severity.CRITICAL,
            value=_found("altered|wrong_partition|out_of_order"),
            comparison=">",
            threshold=0,
            guard=_fails("records_(intact|ordered)"),
            hold="0m",
            labels=_LABELS,
            summary="{{ $value }} records of " + _MIRROR + " are not as they were written",
            description="Their content, partition or order at the target differs from the source.",
        ),
        Alert(
            name="RecordsDoubled",
            severity=Severity.WARNING,
            value=_found("doubled"),
            comparison=">",
            threshold=0,
            guard=_fails("records_unique"),
            hold="0m",
            labels=_LABELS,
            summary="{{ $value }} records of " + _MIRROR + " stand twice on the target",
            description="More than the settings allow. A worker that stops copies again what it had not noted.",
        ),
        Alert(
            name="RecordsForeign",
            severity=Severity.WARNING,
            value=_found("foreign"),
            comparison=">",
            threshold=0,
            guard=_fails("records_foreign"),
            hold="0m",
            labels=_LABELS,
            summary="{{ $value }} records at the target of " + _MIRROR + " come from elsewhere",
            description="Somebody writes to mirrored topics at the target although the source is active.",
        ),
    ),
)


STATUS = AlertGroup(
    name="status",
    dashboard="rt-inventory-fleet",
    alerts=(
        Alert(
            name="SideUnreachable",
            severity=Severity.CRITICAL,
            value="min by (stack, mirror, side) (rt_inventory_cluster_reachable{<mirror>})",
            comparison="<",
            threshold=1,
            hold="10m",
            labels=(*_LABELS, "side"),
            summary="The {{ $labels.side }} of mirror {{ $labels.mirror }} of {{ $labels.stack }} cannot be reached",
            description="It has not answered `ops` for 10 minutes. If it is the source, this may be "
            "the day for an unplanned failover.",
        ),
        Alert(
            name="StatusStale",
            severity=Severity.WARNING,
            value="time() - max by (stack, mirror)"
            " (last_over_time(rt_inventory_status_timestamp_seconds{<mirror>}[15d]))",
            comparison=">",
            threshold="status_age_seconds",
            hold="10m",
            labels=_LABELS,
            summary="Nobody observes mirror {{ $labels.mirror }} of {{ $labels.stack }}",
            description="`ops` reported its status {{ $value | humanizeDuration }} ago for the last time. Alerts about "
            "lag in seconds, groups and certificates are not evaluated meanwhile.",
        ),
        Alert(
            name="StatusFails",
            severity=Severity.WARNING,
            # Without one successful status no mirror is known: the label is empty then.
            value="max by (stack, mirror) (rt_inventory_status_error{<stack>})",
            comparison=">",
            threshold=0,
            hold="15m",
            labels=_LABELS,
            mirrors=None,
            summary="`ops` cannot inspect {{ with $labels.mirror }}mirror {{ . }} of {{ end }}{{ $labels.stack }}",
            description="Every snapshot for 15 minutes has failed. Alerts about lag in seconds, groups, sides and "
            "certificates are not evaluated meanwhile.",
        ),
        Alert(
            name="OperatorDown",
            severity=Severity.WARNING,
            value="<operators>",
            comparison="<",
            threshold=1,
            hold="15m",
            labels=OF_OPERATOR,
            mirrors=None,
            dashboard="rt-inventory-cluster",
            summary="The operator of {{ $labels.stack }} does not answer",
            description="Nobody brings resources to what is declared. Alerts about mirrors that are not Ready and "
            "about its authorities are not evaluated meanwhile.",
        ),
    ),
)
