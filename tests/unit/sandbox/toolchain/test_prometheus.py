"""Where Prometheus and Alertmanager come from."""

import subprocess
from dataclasses import replace

import pytest

from sandbox.toolchain import ToolchainError, all_steps, locate, optional_tools, pins
from sandbox.toolchain.__main__ import ensure, problems
from sandbox.toolchain.crds import MONITORING_FILES
from sandbox.toolchain.optional_tools import PROGRAMS, PROMETHEUS_PACKAGES, VERSIONS
from sandbox.toolchain.paths import GO_MODULE, ToolchainPaths

from .conftest import Machine, said_version

# Its packages are made up: unpacking copies programs that lie ready.
APT = """#!/bin/sh
echo "apt-get $*" >> {calls}
case "$*" in *" download "*) touch one_1_amd64.deb two_2_amd64.deb ;; esac
"""
DPKG = """#!/bin/sh
case "$1" in
  --show) echo "$(basename "$3" .deb | tr _ ' ')" ;;
  --extract) mkdir -p "$3/usr/bin" && find {machine}/package -maxdepth 1 -type f -exec cp {{}} "$3/usr/bin" \\; ;;
esac
"""
UNPACK_SHARED = """
[ "$1" != --extract ] || { mkdir -p "$3/usr/share/prometheus" && cp -r SHARE "$3/usr/share/prometheus/alertmanager"; }
"""


@pytest.fixture
def without(machine: Machine) -> ToolchainPaths:
    """The made-up machine without the programs, with a Debian that has them."""
    for name, program in PROGRAMS.items():
        (machine.folder / "bin" / name).unlink()
        machine.tool(f"../package/{program.names[-1]}", said_version(name, *program.least))
    values = {"calls": machine.folder / "calls", "machine": machine.folder}
    machine.tool("apt-get", APT.format(**values))
    machine.tool("dpkg-deb", DPKG.format(**values))
    return machine.paths


def fetches(machine: Machine) -> list[str]:
    return [call for call in machine.calls() if call.startswith("apt-get")]


def test_programs_on_path_are_used_and_nothing_is_fetched(machine: Machine) -> None:
    assert ensure(machine.paths, ["prometheus"]) == 0
    for name in PROGRAMS:
        assert optional_tools.prometheus_program(machine.paths, name).resolve() == machine.folder / "bin" / name
    assert not fetches(machine)


def test_without_them_debians_packages_are_unpacked_once_and_their_versions_kept(
    without: ToolchainPaths, machine: Machine
) -> None:
    assert ensure(without, ["prometheus"]) == 0
    folder = optional_tools.prometheus_program(without, "prometheus").parent
    assert optional_tools.prometheus_program(without, "alertmanager").resolve().name == "prometheus-alertmanager"
    assert all(optional_tools.prometheus_program(without, name).resolve().is_relative_to(folder) for name in PROGRAMS)
    assert (folder / VERSIONS).read_text(encoding="utf-8") == "one 1 amd64\ntwo 2 amd64\n"
    assert {file.name for file in folder.iterdir()} == {*PROGRAMS, "unpacked", VERSIONS, ".complete"}
    update, download = fetches(machine)
    assert download.endswith(f"download {' '.join(PROMETHEUS_PACKAGES)}")
    for call in (update, download):
        assert f"-o Dir::State={without.cache}" in call
        assert f"-o Dir::Cache={without.cache}" in call
    assert ensure(without, ["prometheus"]) == 0
    assert len(fetches(machine)) == 2


def test_an_unpacked_program_reads_what_it_shares_where_it_was_unpacked(
    without: ToolchainPaths, machine: Machine
) -> None:
    said = said_version("alertmanager", *PROGRAMS["alertmanager"].least)
    shown = 'case "$1" in --version) exit ;; esac; cat /usr/share/prometheus/alertmanager/default.tmpl\n'
    machine.tool("../package/prometheus-alertmanager", said + shown)
    share = machine.folder / "package" / "share"
    machine.tool("dpkg-deb", DPKG.format(machine=machine.folder) + UNPACK_SHARED.replace("SHARE", str(share)))
    share.mkdir()
    (share / "default.tmpl").write_text("its own template", encoding="utf-8")
    assert ensure(without, ["prometheus"]) == 0
    program = optional_tools.prometheus_program(without, "alertmanager")
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout.endswith("its own template")
    assert optional_tools.prometheus_program(without, "amtool").is_symlink()


def test_programs_that_are_too_old_are_passed_over(machine: Machine, without: ToolchainPaths) -> None:
    for name in PROGRAMS:
        machine.tool(name, said_version(name, 0, 1))
    assert ensure(without, ["prometheus"]) == 0
    assert fetches(machine)


def test_packages_that_are_too_old_are_refused_with_what_to_put_on_path(
    machine: Machine, without: ToolchainPaths
) -> None:
    machine.tool("../package/prometheus-alertmanager", said_version("alertmanager", 0, 1))
    with pytest.raises(ToolchainError) as refused:
        ensure(without, ["prometheus"])
    assert "alertmanager: version must be >= 0.25 (got from this machine's packages: one 1 amd64" in str(refused.value)
    assert "Put prometheus and promtool (>= 2.42), alertmanager and amtool (>= 0.25) on PATH" in str(refused.value)
    assert not optional_tools.prometheus_entry(without).is_complete()


def test_a_source_that_cannot_be_updated_does_not_matter_if_the_packages_come(
    machine: Machine, without: ToolchainPaths
) -> None:
    apt = APT.format(calls=machine.folder / "calls")
    machine.tool("apt-get", apt + 'case "$*" in *" update") exit 100 ;; esac\n')
    assert ensure(without, ["prometheus"]) == 0
    machine.tool("apt-get", apt + "echo 'E: Unable to locate package prometheus'; exit 100\n")
    optional_tools.prometheus_program(without, "amtool").unlink()
    with pytest.raises(ToolchainError, match="Unable to locate package prometheus"):
        ensure(without, ["prometheus"])


def test_on_a_machine_that_is_no_debian_the_error_names_what_to_put_on_path(
    without: ToolchainPaths, machine: Machine
) -> None:
    bare = replace(without, environ={**without.environ, "PATH": str(machine.folder / "bin")})
    wanted = [step for step in all_steps(bare) if step.name == "prometheus"]
    assert problems(bare, wanted) == []
    (machine.folder / "bin" / "apt-get").unlink()
    found = problems(bare, wanted)
    assert len(found) == 1
    assert "prometheus and promtool (>= 2.42), alertmanager and amtool (>= 0.25) must be on PATH" in found[0]
    assert "(no apt-get)" in found[0]


def test_a_program_of_the_machine_that_is_gone_is_looked_for_again(machine: Machine) -> None:
    assert ensure(machine.paths, ["prometheus"]) == 0
    (machine.folder / "bin" / "amtool").unlink()
    assert not optional_tools.prometheus_is_done(machine.paths)


def test_the_other_tools_are_found_without_them(machine: Machine) -> None:
    ensure(machine.paths)
    for name in PROGRAMS:
        (machine.folder / "bin" / name).unlink()
    assert not locate(machine.paths).prometheus.exists()


def test_the_pins_are_those_of_the_go_module() -> None:
    text = (GO_MODULE / "monitoring" / "go.mod").read_text(encoding="utf-8")
    for module, version in (("prometheus-operator", pins.PROMETHEUS_OPERATOR), ("v2", pins.KEDA)):
        path = next(path for path in MONITORING_FILES if path.endswith(f"/{module}"))
        assert f"{path} v{version}\n" in text
