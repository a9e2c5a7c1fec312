"""This project's images, built by buildah from their Dockerfiles, and containers of them without a container engine.

A container is a process with mounts and process ids of its own in the image's root, which nobody may write. It runs as
OpenShift runs one: as a user of whom the image does not know, in the group root, without any capability. The network
and /dev are the machine's.
"""

import functools
import http.server
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil

from sandbox.state import PROJECT
from sandbox.toolchain import Tools, image_parts
from sandbox.toolchain.paths import here
from tests.support.waiting import wait_until

USER = 1_000_680_000  # as OpenShift gives them to namespaces
BUILD_S = 300
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
REGISTRY = "registry.invalid"  # nothing comes from it
PACKAGES = "/mnt"  # while an image is built
SHOWN = 4000  # characters of a build's output, for a message
# Kafka's own script as far as an image meets it: it keeps logs below its folder unless LOG_DIR says otherwise.
MIRROR_MAKER = """#!/bin/sh
set -eu
home=$(dirname "$0")/..
: "${LOG_DIR:=$home/logs}"
mkdir -p "$LOG_DIR"
exec java ${KAFKA_HEAP_OPTS:--Xms256M -Xmx2G} -Dkafka.logs.dir="$LOG_DIR" ${KAFKA_LOG4J_OPTS:-} -cp "$home/libs/*" \\
  ${KAFKA_OPTS:-} org.apache.kafka.connect.mirror.MirrorMaker "$@"
"""
# Arguments: root, user, working folder, then four words a mount (type, options, source, target), `--`, the command.
RUN = """
root=$1 user=$2 folder=$3; shift 3
/bin/mount --bind "$root" "$root"
/bin/mount -t proc proc "$root/proc"
/bin/mount --rbind /dev "$root/dev"
/bin/mount -o remount,bind,ro "$root"
while [ "$1" != -- ]; do
  case $1 in
    tmpfs) /bin/mount -t tmpfs -o "$2" "$3" "$root$4" ;;
    bind) /bin/mount --bind "$3" "$root$4"; /bin/mount -o "remount,bind,$2" "$root$4" ;;
  esac
  shift 4
done
shift
exec /usr/bin/setpriv --no-new-privs --inh-caps=-all --bounding-set=-all,+setuid,+setgid,+sys_chroot \\
  /usr/sbin/chroot --userspec="$user:0" --groups= "$root" /usr/bin/env --chdir="$folder" "$@"
"""


@dataclass(frozen=True)
class Mount:
    """A volume of a container: a file or folder of this machine, or with no source an empty folder in memory."""

    target: str
    source: Path | None = None
    writable: bool = False

    def words(self) -> list[str]:
        """The four words that RUN reads."""
        if self.source is None:
            return ["tmpfs", "mode=1777", "none", self.target]
        return ["bind", "rw" if self.writable else "ro", str(self.source), self.target]


@dataclass(frozen=True)
class Image:
    """A built image: its configuration, its history and a folder with its files, of which containers have the use."""

    config: Mapping[str, Any]
    history: Sequence[Mapping[str, Any]]
    root: Path

    def command(
        self, *arguments: str, mounts: Sequence[Mount] = (), entrypoint: Sequence[str] | None = None
    ) -> list[str]:
        """Return the command that runs a container as root; its arguments are those of the image unless given."""
        mounts = [Mount("/etc/hosts", Path("/etc/hosts")), *mounts]
        for mount in mounts:
            self._make_mount_point(mount)
        start = list(self.config.get("Entrypoint", []) if entrypoint is None else entrypoint)
        words = [*start, *(arguments or self.config.get("Cmd", []))]
        folder = self.config.get("WorkingDir") or "/"
        run = ["/usr/bin/unshare", "--mount", "--pid", "--fork", "--kill-child", "/bin/sh", "-euc", RUN, "container"]
        mounted = [word for mount in mounts for word in mount.words()]
        return [*run, str(self.root), str(USER), folder, *mounted, "--", *words]

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of a container: the image's, and those that it is given."""
        own = dict(each.split("=", 1) for each in self.config.get("Env", []))
        return {"PATH": PATH, "HOME": "/", **own, **variables}

    def _make_mount_point(self, mount: Mount) -> None:
        place = self.root / mount.target.lstrip("/")
        if mount.source is None or mount.source.is_dir():
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()


def first_process(container: psutil.Process | subprocess.Popen[bytes]) -> psutil.Process:
    """Return the container's process with the id 1, which a signal must reach."""
    (child,) = psutil.Process(container.pid).children()
    return child


class Images:
    """Builds each image once, when it is first asked for, in a folder of its own. Nothing is pulled."""

    def __init__(self, folder: Path, tools: Tools) -> None:
        self._folder, self._tools, self._place = folder, tools, here()
        for name in ("served", "tmp"):
            (folder / name).mkdir()
        (folder / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        for name in ("registries.conf", "containers.conf"):
            (folder / name).touch()
        (folder / "storage.conf").write_text('[storage]\ndriver = "vfs"\n')
        self._buildah = image_parts.buildah(self._place)
        self._server = self._serve()

    def close(self) -> None:
        """Stop serving and remove everything that was built."""
        self._server.shutdown()
        self._server.server_close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def address(self) -> str:
        """Where this serves what builds download."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @cached_property
    def demo_clients(self) -> Image:
        """The image of the demo clients."""
        return self._build("demo-clients", BASE_IMAGE=self._python)

    @cached_property
    def verification(self) -> Image:
        """The image of the verification."""
        maven = self._folder / "served" / "maven"
        for line in (PROJECT / "images" / "verification" / "jars.txt").read_text("utf-8").splitlines():
            jar = maven / line.split()[1]
            jar.parent.mkdir(parents=True)
            jar.symlink_to(self._tools.spark_jars / jar.name)
        bases = {"BASE_IMAGE": self._python, "JAVA_IMAGE": self._java}
        return self._build("verification", **bases, MAVEN_URL=f"{self.address}/maven")

    @cached_property
    def mirror(self) -> Image:
        """The image of the dedicated mirror."""
        (self._folder / "served" / "jmx.jar").symlink_to(self._tools.jmx_exporter)
        return self._build("mirror", BASE_IMAGE=self._kafka, JMX_EXPORTER_URL=f"{self.address}/jmx.jar")

    @cached_property
    def _python(self) -> str:
        return self._commit("python", "scratch", {"/": image_parts.base(self._place, "python")})

    @cached_property
    def _java(self) -> str:
        path = f"PATH=/{image_parts.JAVA_HOME}/bin:{PATH}"
        return self._commit("java", "scratch", {"/": image_parts.base(self._place, "java")}, path)

    @cached_property
    def _kafka(self) -> str:
        """A Kafka where Strimzi's images have it."""
        script = self._folder / "connect-mirror-maker.sh"
        script.write_text(MIRROR_MAKER, encoding="utf-8")
        script.chmod(0o755)
        copied = {"/opt/kafka/libs": self._tools.kafka_libs, f"/opt/kafka/bin/{script.name}": script}
        return self._commit("kafka", self._java, copied)

    def _commit(self, name: str, base: str, copied: Mapping[str, Path], *env: str) -> str:
        """Make a base image; return its name."""
        own = [] if base == "scratch" else [*self._policy, "--pull-never"]
        container = self._run("from", *own, base).strip()
        for target, source in copied.items():
            self._run("copy", "--quiet", container, str(source), target)
        for each in env:
            self._run("config", "--env", each, container)
        image = f"localhost/{name}"
        self._run("commit", "--quiet", *self._policy, "--rm", container, image)
        return image

    def _build(self, name: str, **arguments: str) -> Image:
        folder, tag = PROJECT / "images" / name, f"localhost/rt-inventory-{name}"
        pip = self._folder / "pip.conf"
        pip.write_text(f"[global]\nno-index = true\nfind-links = {PACKAGES}\n", encoding="utf-8")
        given = {"REGISTRY": REGISTRY, **arguments}
        self._run(
            "build", *self._policy, "--pull-never", "--file", str(folder / "Dockerfile"),
            "--ignorefile", str(folder / "Dockerfile.dockerignore"), "--secret", f"id=pip,src={pip}",
            "--volume", f"{image_parts.python_packages(self._place)}:{PACKAGES}:ro",
            *(word for key, value in given.items() for word in ("--build-arg", f"{key}={value}")),
            "--tag", tag, str(PROJECT),
        )  # fmt: skip
        described = json.loads(self._run("inspect", "--type", "image", tag))
        found = described["OCIv1"]
        return Image(found["config"], found["history"], self._root(described["FromImageID"]))

    def _root(self, image: str) -> Path:
        """Return the image's files. In storage of this kind each layer is a folder with those below it too.

        A container of buildah's own would be another copy of them, of more than a gibibyte.
        """
        storage = self._folder / "storage"
        known = json.loads((storage / "vfs-images" / "images.json").read_text("utf-8"))
        (layer,) = [each["layer"] for each in known if each["id"] == image]
        return storage / "vfs" / "dir" / layer

    @property
    def _policy(self) -> list[str]:
        return ["--signature-policy", str(self._folder / "policy.json")]

    def _run(self, *arguments: str) -> str:
        """Run buildah; return what it wrote to standard output."""
        own = self._folder
        storage = ["--root", str(own / "storage"), "--runroot", str(own / "run"), "--storage-driver", "vfs"]
        environment = {
            **os.environ,
            "BUILDAH_ISOLATION": "chroot",
            "TMPDIR": str(own / "tmp"),
            "CONTAINERS_CONF": str(own / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(own / "storage.conf"),
            "CONTAINERS_REGISTRIES_CONF": str(own / "registries.conf"),
        }
        out, err = own / "out", own / "err"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            command = [*self._buildah, *storage, *arguments]
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, cwd=own
            )
        what = f"buildah {arguments[0]} {arguments[-1]}"
        try:
            wait_until(what, lambda: process.poll() is not None, BUILD_S, every_s=0.05)
        finally:
            process.kill()
            code = process.wait(10)
        said = out.read_text("utf-8")
        assert code == 0, f"{what}: {said[-SHOWN:]}\n{err.read_text('utf-8')[-SHOWN:]}"
        return said

    def _serve(self) -> http.server.ThreadingHTTPServer:
        class Files(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Say nothing."""

        handler = functools.partial(Files, directory=str(self._folder / "served"))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, name="files for builds", daemon=True).start()
        return server
