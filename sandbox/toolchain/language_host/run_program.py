"""Runs one Pulumi program in the program's own Python; the host names it in an environment variable.

Exit code 0: the program ran. 32: it failed and has sent the reason to the engine. Any other: it could not be run.
"""

import asyncio
import gc
import json
import logging
import os
import runpy
import signal
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import pulumi
import pulumi.runtime

REQUEST_VARIABLE = "PULUMI_PYTHON_REQUEST"
REPORTED = 32
INTERRUPTED = 130
THREADS_PER_RESOURCE = 4


def readable(error: BaseException, program: Path) -> str:
    """The error's traceback from the program's first frame on: what ran the program is no news to its author."""
    files = {str(program), str(program / "__main__.py")}
    frame: TracebackType | None = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename not in files:
        frame = frame.tb_next
    if frame is None and not isinstance(error, SyntaxError):  # a syntax error names its own place
        frame = error.__traceback__
    return "".join(traceback.format_exception(type(error), error, frame))


def run(request: dict[str, Any]) -> int:
    """Run the program that the request names, report its errors to the engine, and return the exit code."""
    program = Path(request["pwd"], request["program"]).resolve()
    pulumi.runtime.set_all_config(
        pulumi.runtime.config.get_config_env(), pulumi.runtime.config.get_config_secret_keys_env()
    )
    pulumi.runtime.configure(pulumi.runtime.Settings(**request["settings"]))
    os.chdir(request["pwd"])
    sys.argv = [request["program"], *request["args"]]
    # The program's own folder, also for what it imports after its main module has ended.
    sys.path.insert(0, str(program if program.is_dir() else program.parent))
    # The engine gave up and has reported why.
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(INTERRUPTED))

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    executor = ThreadPoolExecutor(THREADS_PER_RESOURCE * max(request["settings"]["parallel"], 1))
    loop.set_default_executor(executor)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # it would repeat errors that are reported below
    try:
        loop.run_until_complete(pulumi.runtime.run_in_stack(lambda: run_main(program)))
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        return 1
    except Exception as error:
        pulumi.log.error(f"Program failed with an unhandled exception:\n{readable(error, program)}")
        return REPORTED
    finally:
        executor.shutdown(wait=True)
        loop.close()
    return 0


def run_main(program: Path) -> None:
    """Run a folder's `__main__.py`, or a file, as the main module."""
    runpy.run_path(str(program), run_name="__main__")


def main() -> None:
    """Run the program that the host asks for; it must not see the request in its environment."""
    gc.disable()  # it ends in seconds, and would spend a tenth of them on collecting garbage while it imports
    sys.exit(run(json.loads(os.environ.pop(REQUEST_VARIABLE))))


if __name__ == "__main__":
    main()
