"""A line of some length to the source's second listener: packets that arrive late, or toxiproxy where that cannot be.

`TunnelLine` delays packets of the system's own TCP, so that windows, socket buffers and slow start are real: a tunnel
device returns each packet with its two addresses exchanged, half a round trip later. It needs root and /dev/net/tun.
`ToxiproxyLine` ends TCP at itself: it delays bytes, and no window is ever full on it.
"""

import fcntl
import os
import select
import shutil
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Protocol

from benchmarks.clusters import BenchmarkError, FarListener
from sandbox.network import Conditions, NetworkFiles, Proxy, Toxiproxy, toxiproxy
from sandbox.processes import HOST, free_ports
from sandbox.state import PROJECT, write_json
from sandbox.toolchain import Tools

DEVICE = Path("/dev/net/tun")
NAME, NEAR, FAR, MTU, QUEUE = "rt-inventory0", "10.213.77.1", "10.213.77.2", 1500, 10_000
READY_WITHIN_S, END_S = 10.0, 5.0
# Of linux/if_tun.h: a device for IP packets, each without a header of the device's own.
_SET_INTERFACE, _TUN_WITHOUT_HEADER = 0x400454CA, 0x1001
_IPV4, _BATCH, _LARGEST = 4, 64, 65_535


class Line(Protocol):
    """A line whose length can be changed."""

    name: str
    far: FarListener

    def set_round_trip(self, milliseconds: int) -> None:
        """From now on a round trip takes so long."""


def tunnel_problem() -> str | None:
    """Why packets cannot be delayed here, None if they can."""
    if os.geteuid() != 0:
        return "not root"
    if not DEVICE.exists():
        return f"no {DEVICE}"
    return None if shutil.which("ip") else "no program ip"


class TunnelLine:
    """Packets that arrive late."""

    name = "packets delayed"

    def __init__(self, orders: IO[bytes]) -> None:
        self._orders = orders
        (port,) = free_ports(1)
        self.far = FarListener(NEAR, port, FAR, port)

    def set_round_trip(self, milliseconds: int) -> None:
        """From now on a packet takes half of this."""
        self._orders.write(f"{milliseconds}\n".encode())
        self._orders.flush()


@contextmanager
def tunnel_line() -> Iterator[Line]:
    """The line by a program of its own, which ends with this one; raises BenchmarkError if it does not start."""
    command = [sys.executable, "-m", "benchmarks.line"]
    child = subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        output, orders = child.stdout, child.stdin
        ready = output and select.select([output], [], [], READY_WITHIN_S)[0]
        if orders is None or output is None or not ready or output.readline() != b"ready\n":
            raise BenchmarkError(f"line: {NAME} must be ready within {READY_WITHIN_S:.0f} s (its error is above).")
        yield TunnelLine(orders)
    finally:
        _end(child)


class ToxiproxyLine:
    """Bytes that arrive late."""

    name = "toxiproxy"

    def __init__(self, api: Toxiproxy) -> None:
        self._api = api
        port, behind = free_ports(2)
        self.far = FarListener(HOST, behind, HOST, port)
        self._proxy = Proxy("benchmark", "source", 1, "far", port, behind)
        api.add(self._proxy, Conditions())

    def set_round_trip(self, milliseconds: int) -> None:
        """From now on bytes take half of this."""
        self.change(Conditions(latency_ms=milliseconds))

    def change(self, conditions: Conditions) -> None:
        """From now on this happens on the line."""
        present = self._api.proxies()[self._proxy.name]["toxics"]
        self._api.set_toxics(self._proxy.name, present, conditions)


@contextmanager
def toxiproxy_line(tools: Tools, folder: Path) -> Iterator[ToxiproxyLine]:
    """The line by a toxiproxy; raises BenchmarkError if it does not start."""
    files, (port,) = NetworkFiles(folder), free_ports(1)
    write_json(files.address, {"address": f"{HOST}:{port}"})
    command = [str(tools.toxiproxy), "-host", HOST, "-port", str(port)]
    # It names each connection to a broker that is away.
    with (folder / "toxiproxy.log").open("wb") as log:
        child = subprocess.Popen(command, env={"LOG_LEVEL": "error"}, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    end = time.monotonic() + READY_WITHIN_S
    try:
        with toxiproxy(files) as api:
            while api is None or not api.answers():
                if time.monotonic() > end:
                    raise BenchmarkError(
                        f"line: toxiproxy must be ready within {READY_WITHIN_S:.0f} s (got no answer)."
                    )
                time.sleep(0.05)
            yield ToxiproxyLine(api)
    finally:
        _end(child)


def _end(child: "subprocess.Popen[bytes]") -> None:
    child.terminate()
    try:
        child.wait(END_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def returned(packet: bytes) -> bytes:
    """An IPv4 packet with source and destination exchanged: its checksums are sums, so they stay right."""
    return packet[:12] + packet[16:20] + packet[12:16] + packet[20:]


def carry(device: int, orders: int) -> None:
    """Return every packet of the device late, until the other program ends; it writes round trips in milliseconds."""
    waiting: deque[tuple[float, bytes]] = deque()
    delay_s = 0.0
    os.set_blocking(device, False)
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            with suppress(OSError):  # a packet that the system has no room for is lost, as on any line
                os.write(device, waiting.popleft()[1])
        timeout_s = max(0.0, waiting[0][0] - now) if waiting else None
        ready, _, _ = select.select([device, orders], [], [], timeout_s)
        if orders in ready:
            lines = os.read(orders, 100).split()
            if not lines:
                return
            delay_s = int(lines[-1]) / 2000
        if device in ready:
            due = time.monotonic() + delay_s
            with suppress(BlockingIOError):
                for _ in range(_BATCH):
                    packet = os.read(device, _LARGEST)
                    if packet[0] >> 4 == _IPV4:
                        waiting.append((due, returned(packet)))


def main() -> int:
    """Make the device, say so, and carry packets; the device is gone with this program."""
    device = os.open(DEVICE, os.O_RDWR)
    fcntl.ioctl(device, _SET_INTERFACE, struct.pack("16sH22x", NAME.encode(), _TUN_WITHOUT_HEADER))
    for words in (
        ["addr", "add", f"{NEAR}/30", "dev", NAME],
        ["link", "set", NAME, "mtu", str(MTU), "txqueuelen", str(QUEUE), "up"],
    ):
        subprocess.run(["ip", *words], check=True, timeout=READY_WITHIN_S)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    carry(device, sys.stdin.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
