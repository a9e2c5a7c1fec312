"""Command line: `python -m sandbox.operator --state DIR --liveness-port N` runs the operator until SIGTERM."""

import argparse
import logging
import sys
from pathlib import Path

from sandbox.processes import Processes
from sandbox.state import SandboxState
from sandbox.toolchain import ToolchainError, locate

from .monitoring import Programs
from .operator import OperatorContext, run


def main() -> int:
    """Exit code: 0 after a signal, 2 if the tools are missing."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.operator", description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="the sandbox's state folder")
    parser.add_argument("--liveness-port", type=int, required=True, help="loopback port that answers /healthz")
    options = parser.parse_args()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    for noisy in ("kopf", "httpx", "asyncio", "aiohttp"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    try:
        tools = locate()
    except ToolchainError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    state = SandboxState(options.state)
    context = OperatorContext(
        folder=state.path,
        logs=state.logs,
        kubeconfig=state.operator_kubeconfig,
        java=tools.java,
        kafka_libs=tools.kafka_libs,
        kafka_versions=tools.kafka_versions,
        class_archives=tools.kafka_classes,
        jmx_exporter=tools.jmx_exporter,
        metrics_reporter=tools.metrics_reporter,
        monitoring=Programs(tools.prometheus, tools.promtool, tools.alertmanager, tools.amtool),
        processes=Processes(state),
    )
    run(context, options.liveness_port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
