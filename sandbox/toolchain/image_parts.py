"""What the tests of the images need: buildah, roots of base images from Debian's packages, and the Python packages.

No image can be pulled here, so the bases are made. Nothing of the machine changes: buildah is unpacked beside it unless
it is on PATH. Only those tests need any of it, so the set-up leaves it out, and they make it when they first run.
"""

import os
import shutil
from pathlib import Path

from . import installed_tools
from .commands import Commands
from .paths import Entry, ToolchainPaths, key_of
from .steps import Step

NAME = "image-parts"
BUILDAH = "buildah"
_USUAL = ("base-files", "bash", "coreutils", "dash", "grep", "libc-bin", "sed")
# What images/*/Dockerfile expects of the bases that it names.
BASES = {
    "python": (*_USUAL, "libstdc++6", "login", "passwd", "python3", "python3-pip", "python-is-python3"),
    "java": (*_USUAL, "curl", "default-jre-headless"),
}
IMAGES = ("demo-clients", "verification")  # those with Python packages
PYTHON_PACKAGES = "python-packages"
# Programs of every Debian, of which the first two fetch, and the others build and run images.
PROGRAMS = (*installed_tools.APT_TOOLS, "tar", "unshare", "mount", "setpriv", "chroot")
_LAYOUT = "1"  # of the entry; another one makes it anew
_MERGED = ("bin", "sbin", "lib", "lib64")
_LEFT_OUT = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info")
JAVA_HOME = "opt/java/openjdk"
USERS = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
GROUPS = "root:x:0:\nnogroup:x:65534:\n"
# buildah starts itself anew without any variable, so its libraries must lie on the loader's path: in a namespace of
# mounts of its own, its unpacked packages lie below /usr.
_IN_OVERLAY = 'mount -t overlay overlay -o "lowerdir=$0:/usr" /usr; exec buildah "$@"'


def entry(paths: ToolchainPaths) -> Entry:
    """The cache entry: folders `buildah`, `python` and `java` (roots), and `python-packages`."""
    files = [file for file in _locks(paths) if file.exists()]
    packages = [f"{name} {' '.join(names)}" for name, names in BASES.items()]
    return paths.entry(NAME, key_of(_LAYOUT, *packages, *files))


def buildah(paths: ToolchainPaths) -> list[str]:
    """The command that runs buildah as root, without its arguments."""
    if (tool := installed_tools.on_path(BUILDAH, paths.environ)) is not None:
        return [str(tool)]
    return ["unshare", "--mount", "sh", "-euc", _IN_OVERLAY, str(entry(paths).path / BUILDAH / "usr")]


def base(paths: ToolchainPaths, name: str) -> Path:
    """The root folder of one of BASES."""
    return entry(paths).path / name


def python_packages(paths: ToolchainPaths) -> Path:
    """The folder of the Python packages of all images."""
    return entry(paths).path / PYTHON_PACKAGES


def is_done(paths: ToolchainPaths) -> bool:
    """Whether everything is there, and buildah too, wherever it comes from."""
    unpacked = entry(paths).path / BUILDAH / "usr" / "bin" / BUILDAH
    return entry(paths).is_complete() and (
        unpacked.exists() or installed_tools.on_path(BUILDAH, paths.environ) is not None
    )


def problem(paths: ToolchainPaths) -> str | None:
    """Why images cannot be built and run on this machine, with what to do about it."""
    missing = [name for name in PROGRAMS if installed_tools.on_path(name, paths.environ) is None]
    if missing:
        return (
            f"images: {', '.join(PROGRAMS)} must be on PATH (no {' and no '.join(missing)}). "
            "Build and run images on Debian or Ubuntu."
        )
    if os.geteuid() != 0:
        return (
            f"images: must be built and run by root (got user {os.geteuid()}), who alone may mount their roots. "
            "Run the tests of the images as root, for example in a virtual machine."
        )
    return None


def step(paths: ToolchainPaths) -> Step:
    """Fetches and unpacks the packages."""
    return Step(
        name=NAME,
        title="Parts of images",
        is_done=lambda: is_done(paths),
        run=lambda commands: _make(paths, commands),
        needs=("venv",),
        tool=NAME,
        disk_mib=1000,
        is_deferred=True,
    )


def _make(paths: ToolchainPaths, commands: Commands) -> None:
    with entry(paths).build() as folder:
        packages = installed_tools.Packages(folder / "apt", commands)
        packages.update()
        if installed_tools.on_path(BUILDAH, paths.environ) is None:
            _unpack(packages, (BUILDAH,), folder / BUILDAH, installed_tools.INSTALLED_PACKAGES, commands)
        for name, names in BASES.items():
            _make_root(folder / name)
            _unpack(packages, names, folder / name, None, commands)
            _finish_root(folder / name)
        _put_java_in_place(folder / "java")
        _fetch_python_packages(paths, folder, commands)
        shutil.rmtree(folder / "apt")


def _unpack(
    packages: installed_tools.Packages, names: tuple[str, ...], root: Path, status: Path | None, commands: Commands
) -> None:
    archives = root.with_name(f"{root.name}-archives")
    archives.mkdir()
    installed_tools.unpack(packages.download_with_dependencies(names, archives, status), root, commands)
    shutil.rmtree(archives)


def _make_root(root: Path) -> None:
    """An empty root with the links of today's Debian, `bin` to `usr/bin` and so on."""
    for name in _MERGED:
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")


def _finish_root(root: Path) -> None:
    """Do what the packages' scripts would do, as far as an image needs it, and leave out what only takes room."""
    for name in _LEFT_OUT:
        shutil.rmtree(root / name, ignore_errors=True)
    # pip may install beside Debian's own packages: nobody else manages the Python of an image.
    for marker in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        marker.unlink()
    if not (root / "usr/bin/sh").exists():
        (root / "usr/bin/sh").symlink_to("dash")
    (root / "etc" / "passwd").write_text(USERS, encoding="utf-8")
    (root / "etc" / "group").write_text(GROUPS, encoding="utf-8")


def _put_java_in_place(root: Path) -> None:
    """Move Debian's Java to where images of Eclipse Temurin have it, with its settings inside it and not in /etc."""
    (debians,) = [path for path in root.glob("usr/lib/jvm/java-*") if not path.is_symlink()]
    home = root / JAVA_HOME
    home.parent.mkdir(parents=True)
    debians.rename(home)
    for name in ("docs", "legal", "man"):
        if (home / name).is_symlink():
            (home / name).unlink()
        shutil.rmtree(home / name, ignore_errors=True)
    for link in [path for path in home.rglob("*") if path.is_symlink()]:
        target = str(link.readlink())
        if not target.startswith("/"):
            continue
        link.unlink()
        if (there := root / target.lstrip("/")).is_file():
            shutil.copy2(there, link)
    shutil.rmtree(root / "usr" / "lib" / "jvm")


def _fetch_python_packages(paths: ToolchainPaths, folder: Path, commands: Commands) -> None:
    """Fetch the locked packages of all images, for the Python of the base. Those that come as source stay source."""
    (library,) = (folder / "python").glob("usr/lib/python3.*")
    pip: list[str | Path] = [paths.venv_python, "-m", "pip", "--disable-pip-version-check", "--no-input", "download"]
    # Without isolation: pip asks a source which version it has, for which setuptools is there.
    options = ["--require-hashes", "--no-deps", "--no-build-isolation", "--use-pep517", "--python-version"]
    version = library.name.removeprefix("python")
    for lock in _locks(paths):
        commands.run([*pip, *options, version, "--dest", folder / PYTHON_PACKAGES, "--requirement", lock], cwd=folder)


def _locks(paths: ToolchainPaths) -> list[Path]:
    return [paths.project / "images" / image / "requirements.lock" for image in IMAGES]
