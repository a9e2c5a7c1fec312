"""Packets that are lost on their way to and from ports of 127.0.0.1, as on a bad line.

The kernel's packet filter drops them, and TCP has to send them again. Its table belongs to one process of nftables,
with which it goes, however a test ends. Needs root, and Debian's packages, which are unpacked beside what is installed.
"""

import os
import re
import subprocess
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from sandbox.toolchain import installed_tools
from sandbox.toolchain.commands import Commands, Processes

from .waiting import wait_until

_PACKAGE = "nftables"
_STOPPED_WITHIN_S = 10
_DROPPED = re.compile(r"counter packets (\d+)")


@dataclass(frozen=True)
class PacketFilter:
    """The program `nft`, with the libraries that it needs."""

    root: Path

    @contextmanager
    def losing(self, percent: int, ports: Collection[int]) -> Iterator["Loss"]:
        """Lose so many of a hundred packets to and from these ports until the block ends."""
        if not ports:
            raise ValueError("ports: there must be one whose packets are lost (got none).")
        loss = Loss(self, f"rt_inventory_{os.getpid()}")
        table, which = f"inet {loss.table}", ", ".join(map(str, sorted(ports)))
        drop = f"numgen random mod 100 < {percent} counter drop"
        lines = [
            f"add table {table} {{ flags owner; }}",
            f"add chain {table} lost {{ type filter hook input priority 0; policy accept; }}",
            *(f'add rule {table} lost iifname "lo" tcp {side} {{ {which} }} {drop}' for side in ("dport", "sport")),
        ]
        owner = subprocess.Popen(
            [self._nft, "--interactive"],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            assert owner.stdin is not None
            owner.stdin.write("\n".join([*lines, ""]))
            owner.stdin.flush()
            wait_until("packets are lost", loss.rules, 10)
            yield loss
        finally:
            said = owner.communicate(timeout=_STOPPED_WITHIN_S)[0]
        assert not said.strip(), said
        assert loss.table not in self.listed("tables"), "the table must go with its process"

    def listed(self, *what: str) -> str:
        """What the packet filter lists."""
        command = [self._nft, "list", *what]
        return subprocess.run(command, env=self._environment, check=True, capture_output=True, text=True).stdout

    @property
    def _nft(self) -> Path:
        return self.root / "usr" / "sbin" / "nft"

    @cached_property
    def _environment(self) -> dict[str, str]:
        libraries = sorted({str(file.parent) for file in (self.root / "usr" / "lib").rglob("*.so*")})
        return os.environ | {"LD_LIBRARY_PATH": os.pathsep.join(libraries)}


@dataclass(frozen=True)
class Loss:
    """Packets that are lost now."""

    packet_filter: PacketFilter
    table: str

    def rules(self) -> list[int]:
        """How many packets each rule has dropped."""
        if self.table not in self.packet_filter.listed("tables"):
            return []
        return [int(count) for count in _DROPPED.findall(self.packet_filter.listed("table", "inet", self.table))]

    @property
    def packets(self) -> int:
        """How many were lost."""
        return sum(self.rules())


def packet_filter(folder: Path) -> PacketFilter:
    """Unpack nftables below a folder. Fails the test where that cannot be done."""
    missing = [name for name in installed_tools.APT_TOOLS if installed_tools.on_path(name, os.environ) is None]
    if missing or os.geteuid() != 0:
        pytest.fail(f"packets are lost by root on Debian only (user {os.geteuid()}, missing: {missing})", pytrace=False)
    commands = Commands(folder / "log", os.environ, Processes())
    packages = installed_tools.Packages(folder / "apt", commands)
    packages.update()
    archives = folder / "archives"
    archives.mkdir()
    found = packages.download_with_dependencies((_PACKAGE,), archives, installed_tools.INSTALLED_PACKAGES)
    installed_tools.unpack(found, folder / "root", commands)
    return PacketFilter(folder / "root")
