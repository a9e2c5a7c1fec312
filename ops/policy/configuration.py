"""The files that configure the policy pack for a stack, in the order in which they count.

First comes the pack's own `config.<stack>.json`, which the pack reads itself and only for stacks of the project around
it. On top go `policy.<stack>.json` beside the stack file, and last a file that is given. Pulumi takes one file, so the
last two are merged if both are there. What is wrong with rules and options is reported by the pack.
"""

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from ops.errors import OpsError
from ops.pulumi.stack import EngineRun, PulumiStack

Configuration = dict[str, Any]
_ALL = "all"


def files(pack: Path, folder: Path, stack: str, given: Path | None) -> list[Path]:
    """Return every file that configures the pack for a stack of the project in `folder`, the last one counts most."""
    own = pack / f"config.{_short(stack)}.json"
    return [*([own] if own.is_file() and _configures(pack, folder) else []), *on_top(folder, stack, given)]


def on_top(folder: Path, stack: str, given: Path | None) -> list[Path]:
    """Return the files that the pack does not find by itself."""
    beside = folder / f"policy.{_short(stack)}.json"
    return [*([beside] if beside.is_file() else []), *([given] if given else [])]


@contextlib.contextmanager
def one_file(chosen: Sequence[Path]) -> Iterator[Path | None]:
    """Yield one file with the content of these, None if there are none. Several are merged into a temporary file."""
    if len(chosen) < 2:
        yield next(iter(chosen), None)
        return
    with tempfile.TemporaryDirectory(prefix="rt-inventory-policy-") as folder:
        file = Path(folder) / "policy.json"
        file.write_text(json.dumps(merged(chosen)), encoding="utf-8")
        yield file


def preview_with_pack(
    stack: PulumiStack,
    pack: Path,
    given: Path | None,
    *,
    within_s: float,
    config_file: Path | None = None,
    watch: Callable[[str], None] | None = None,
) -> EngineRun:
    """Run a preview that the policy pack judges, configured for the stack; `given` goes on top if it is not None."""
    with one_file(on_top(stack.folder, stack.name, given)) as pack_config:
        return stack.preview(
            within_s=within_s, pack=pack, pack_config=pack_config, config_file=config_file, watch=watch
        )


def merged(chosen: Sequence[Path]) -> Configuration:
    """Return one configuration of several files: of a rule that two configure, the later options and level count."""
    found: Configuration = {}
    for file in chosen:
        content = read(file)
        if "enforcementLevel" in _as_options(content.get(_ALL, {})):  # the later file's level counts for all rules
            found = {rule: kept for rule, settings in found.items() if (kept := _without_level(settings))}
        for rule, settings in content.items():
            options = {**_as_options(found.get(rule, {})), **_as_options(settings)}
            found[rule] = options if isinstance(found.get(rule), dict) or isinstance(settings, dict) else settings
    return found


def read(file: Path) -> Configuration:
    """Return the content of a file; raises OpsError if it holds no object."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise OpsError(f"file {file}: must be a configuration that exists ({error.strerror}).") from error
    except ValueError as error:
        raise OpsError(f"file {file}: must be JSON ({error}).") from error
    if not isinstance(content, dict):
        raise OpsError(f"file {file}: must hold an object with a key per rule (got {type(content).__name__}).")
    return content


def _without_level(settings: object) -> Configuration:
    return {key: value for key, value in _as_options(settings).items() if key != "enforcementLevel"}


def _as_options(settings: object) -> Configuration:
    return dict(settings) if isinstance(settings, dict) else {"enforcementLevel": settings}


def _short(stack: str) -> str:
    """A stack's name without organization and project."""
    return stack.rsplit("/", 1)[-1]


def _configures(pack: Path, folder: Path) -> bool:
    """Whether the pack's own files are for stacks of this project. They are for any if the pack lies in no project."""
    around, project = _name(pack.resolve().parent), _name(folder)
    return around is None or project is None or around == project


def _name(folder: Path) -> str | None:
    file = folder / "Pulumi.yaml"
    if not file.is_file():
        return None
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError):
        return None  # Pulumi says what is wrong with it
    return str(content["name"]) if isinstance(content, dict) and "name" in content else None
