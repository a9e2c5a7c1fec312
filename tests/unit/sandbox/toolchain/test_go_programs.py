"""Programs from Go modules of their own: their pins, what is shared with the other programs, what one lacks without."""

import re

import pytest

from sandbox.toolchain import go, locate, optional_tools
from sandbox.toolchain.__main__ import ensure
from sandbox.toolchain.optional_tools import GoProgram
from sandbox.toolchain.paths import GO_MODULE

from .conftest import Machine

PROGRAMS = (optional_tools.ACTIONLINT, optional_tools.TOXIPROXY)
_REQUIRED = re.compile(r"^(?:require )?\t?(\S+/\S+) v(\S+)", re.MULTILINE)


def required(text: str) -> dict[str, str]:
    """Module → version of a go.mod."""
    return dict(_REQUIRED.findall(text))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_module_names_the_pinned_version_and_the_package(program: GoProgram) -> None:
    found = required((program.module / "go.mod").read_text(encoding="utf-8"))
    module = next(name for name in found if program.package.startswith(name))
    assert found[module] == program.version
    assert program.variable.startswith(module)
    assert f'import _ "{program.package}"' in (program.module / "tools.go").read_text(encoding="utf-8")


def test_what_toxiproxy_shares_with_the_tools_has_their_version_so_that_it_is_compiled_once() -> None:
    own = required((optional_tools.TOXIPROXY.module / "go.mod").read_text(encoding="utf-8"))
    tools = required((GO_MODULE / "go.mod").read_text(encoding="utf-8"))
    shared = own.keys() & tools.keys()
    assert len(shared) > 10
    assert {name: own[name] for name in shared} == {name: tools[name] for name in shared}


def test_each_is_built_in_its_own_module_with_the_flags_of_the_others(machine: Machine) -> None:
    assert ensure(machine.paths, [program.name for program in PROGRAMS]) == 0
    built = [call for call in machine.calls() if call.startswith("go build")]
    assert len(built) == len(PROGRAMS)
    for program, call in zip(PROGRAMS, built, strict=True):
        assert f"-gcflags={go.COMPILE} " in call
        assert f"-X {program.variable}={program.version} " in call
        assert call.endswith(f"/{program.name} {program.package}")
        assert {file.name for file in program.path(machine.paths).parent.iterdir()} == {program.name, ".complete"}


def test_a_sandbox_without_a_network_needs_no_toxiproxy(machine: Machine) -> None:
    assert ensure(machine.paths) == 0
    tools = locate(machine.paths)
    assert tools.toxiproxy.exists()
    tools.toxiproxy.unlink()
    (tools.toxiproxy.parent / ".complete").unlink()
    assert not locate(machine.paths).toxiproxy.exists()
