"""A check is declared once: its place in the report, its name, its remedy and its line in the docs follow."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from contract.documents import parse
from spark.checks import __main__ as written
from spark.checks import registry
from spark.checks.registry import DOCTOR, Check, Definition, Remedy, definitions, in_order
from spark.comparison import spark_session
from spark.run_context import RunContext

from ..contract.test_request import ENVIRONMENT, GOOD

REMEDY = Remedy(text="Do something.", commands=(DOCTOR,), page="docs/doctor.md")
MADE_UP = """
from spark.checks.registry import check
from spark.checks.registry import DOCTOR, Remedy

@check("made_up", after="topics_present", remedy=Remedy(text="", commands=(DOCTOR,), page="docs/doctor.md"))
def _made_up(context):
    return None
"""


def made_up(name: str, after: str | None, reason: str | None = None) -> Definition:
    return Definition(
        name=name,
        after=after,
        needs_records=False,
        left_out=lambda mirror: reason,
        remedy=REMEDY,
        judge=lambda context: Check(name=name, ok=True, expected="", observed=""),
    )


def chosen(*every: Definition) -> dict[str, Definition]:
    return in_order({one.name: one for one in every})


def test_what_follows_from_the_checks_is_written() -> None:
    stale = "run: python -m spark.checks"
    assert written.NAMES.read_text(encoding="utf-8") == written.names(), stale
    page = written.PAGE.read_text(encoding="utf-8")
    assert written.page(page) == page, stale


def test_the_order_is_that_of_after() -> None:
    assert [*chosen(made_up("c", "b"), made_up("a", None), made_up("b", "a"))] == ["a", "b", "c"]


def test_several_checks_behind_one_follow_it_by_name_wherever_they_are_declared() -> None:
    every = [made_up("a", None), made_up("c", "a"), made_up("b", "a"), made_up("d", "b")]
    assert [*chosen(*every)] == [*chosen(*reversed(every))] == ["a", "b", "d", "c"]


def test_a_module_is_all_that_a_new_check_needs_also_in_a_zip(tmp_path: Path) -> None:
    packages = spark_session.archive(tmp_path)
    with zipfile.ZipFile(packages, "a") as written:
        written.writestr("spark/checks/made_up.py", MADE_UP)
    listed = "from spark.checks.registry import definitions; print(*definitions())"
    done = subprocess.run(
        [sys.executable, "-P", "-c", listed],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    names = done.stdout.split()
    assert [name for name in names if name != "made_up"] == [*definitions()]
    assert names.index("made_up") == names.index("topics_present") + 1


def test_a_check_behind_one_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="checks c, d: `after` must lead to the first check"):
        chosen(made_up("a", None), made_up("c", "d"), made_up("d", "c"))


def test_a_name_is_declared_once() -> None:
    definitions()
    declare = registry.check("lag", after=None, remedy=REMEDY)
    with pytest.raises(ValueError, match="check lag: must be declared once"):
        declare(lambda context: None)


def test_a_check_that_is_declared_is_judged_or_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    context = RunContext(request=parse(GOOD, ENVIRONMENT))
    every = chosen(made_up("a", None), made_up("b", "a", reason="nobody asked for it"))
    monkeypatch.setattr(registry, "definitions", lambda: every)
    assert [one.name for one in registry.judge(context)] == ["a"]
    assert registry.not_judged(context.request.mirror) == [{"name": "b", "reason": "nobody asked for it"}]
    assert registry.judge_part(context) == []
    context.waited = True
    assert [one.name for one in registry.judge_part(context)] == ["a"]
