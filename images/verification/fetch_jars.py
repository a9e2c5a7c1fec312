"""Downloads the jars of a list, for the build of the image: `python fetch_jars.py LIST URL FOLDER`.

A line of the list is a SHA-256 and a path below the URL, which is any server laid out as Maven Central. A jar with
another checksum ends the build.
"""

import hashlib
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

WITHIN_S = 60


def jars(text: str) -> Iterator[tuple[str, str]]:
    """Yield checksum and path of each line."""
    for line in text.splitlines():
        checksum, path = line.split()
        yield checksum, path


def fetch(url: str, checksum: str, folder: Path) -> None:
    """Download one jar into the folder; exits with a message if it cannot be had or is another one."""
    try:
        with urllib.request.urlopen(url, timeout=WITHIN_S) as answer:  # noqa: S310  # whoever builds names it
            content = answer.read()
    except (OSError, ValueError) as error:
        sys.exit(f"MAVEN_URL: {url} must be readable ({error}). Name a server that is laid out as Maven Central.")
    got = hashlib.sha256(content).hexdigest()
    if got != checksum:
        sys.exit(f"{url}: SHA-256 must be {checksum} (got {got}). The server has another file under this name.")
    (folder / url.rpartition("/")[2]).write_bytes(content)


def main(listed: str, url: str, folder: str) -> None:
    """Download every jar of the list."""
    if not url:
        sys.exit("MAVEN_URL must be given: --build-arg MAVEN_URL=https://maven.example.com/maven2")
    for checksum, path in jars(Path(listed).read_text("utf-8")):
        fetch(f"{url.rstrip('/')}/{path}", checksum, Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
