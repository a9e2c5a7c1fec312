"""The rules by which the JMX exporter names what workers and brokers expose."""

from pathlib import Path

WORKERS, BROKERS = "mirror-maker-2.yaml", "kafka.yaml"


def rules(file: str) -> str:
    """Return the text of one of the two files."""
    return (Path(__file__).parent / file).read_text(encoding="utf-8")
