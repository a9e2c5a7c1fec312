"""The size of a mirror: tasks, workers, CPU and memory, each with the step of reasoning that leads to it.

Pure arithmetic. It assumes that records spread evenly over partitions and leaders evenly over brokers.
"""

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ops.sizing.clients import (
    BROKER_BUFFER,
    LEAST_IDLE,
    MIB,
    Bound,
    Clients,
    Network,
    Throughput,
    consumer_bound,
    producer_bound,
    shown,
    task_memory,
    tuned,
)
from settings.text import format_count

# What a worker uses besides its tasks: Connect's framework, the checkpoint connector, a warm JVM.
BASE_CPU, BASE_HEAP = 0.2, 256 * MIB
HEAP_SLACK = 1.25  # a collector needs room; a heap filled to the brim only collects
HEAP_SHARE = 0.75  # of a container's memory; the rest is threads, classes and network buffers
COMPRESSION_CPU = 1.3  # assumed: compressing and decompressing beside copying
_STEP = 128 * MIB
_ROUNDING = 1 + 1e-9


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What has to be copied, and how. `compression_ratio` 4 means that records shrink to a quarter."""

    topics: int
    partitions: int
    record_bytes: int
    records_per_second: float
    latency_ms: float
    catch_up: float = 2.0
    compression_ratio: float = 1.0
    workers_at: str = "target"
    local_ms: float = 1.0
    acknowledge_ms: float = 2.0
    source_brokers: int = 3
    target_brokers: int = 3
    broker_buffer: int = BROKER_BUFFER
    worker_cpu: float = 2.0
    availability: bool = False

    @property
    def needed(self) -> float:
        """Records a second that the mirror must be able to copy."""
        return self.records_per_second * self.catch_up

    @property
    def wire_bytes(self) -> float:
        """Bytes of a compressed record."""
        return self.record_bytes / self.compression_ratio

    def network(self) -> Network:
        """Return the round trips: the workers are near one side and far from the other."""
        far, near = self.latency_ms, min(self.local_ms, self.latency_ms)
        at_target = self.workers_at == "target"
        return Network(
            consumer_ms=far if at_target else near,
            producer_ms=near if at_target else far,
            acknowledge_ms=self.acknowledge_ms,
            source_brokers=self.source_brokers,
            target_brokers=self.target_brokers,
            broker_buffer=self.broker_buffer,
        )


@dataclass(frozen=True)
class Step:
    """One step of the reasoning: what it is about, the calculation with its numbers, and what follows."""

    about: str
    calculation: str
    result: str


@dataclass(frozen=True)
class Size:
    """A mirror's size. Not `feasible`: no number of tasks is enough; the numbers are those of one task a partition.

    `copies` is in records a second: what so many tasks copy where each has a processor for itself.
    """

    feasible: bool
    tasks: int
    replicas: int
    cpu: float
    cpu_per_worker: float
    cpu_limit: float
    heap_mib: int
    memory_mib: int
    copies: float
    producer: dict[str, int | str]
    consumer: dict[str, int | str]
    steps: tuple[Step, ...]
    advice: tuple[str, ...]
    measured: str = ""
    workload: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return everything, keys in camelCase."""
        content = asdict(self)
        content["workload"] = _camel(content["workload"])
        return _camel(content)


@dataclass(frozen=True)
class _Task:
    """What limits one task that has so many partitions, in records a second."""

    partitions: int
    cpu: float
    consumer: float
    producer: float
    consumer_formula: str
    producer_formula: str

    @property
    def rate(self) -> float:
        """A task asks for more only when it polls, so that copying and fetching overlap in part; it sends meanwhile."""
        return min(1 / math.hypot(1 / self.cpu, 1 / self.consumer), self.producer)

    @property
    def limit(self) -> str:
        bounds = {"CPU": self.cpu, "fetching over latency": self.consumer, "producing over latency": self.producer}
        return min(bounds, key=lambda name: bounds[name])


@dataclass(frozen=True)
class _Case:
    """One way to configure the clients and the network."""

    load: Workload
    measured: Throughput
    clients: Clients
    network: Network

    def task(self, partitions: int) -> _Task:
        out = self.load.wire_bytes if self.clients.compression != "none" else self.load.record_bytes
        consumer = consumer_bound(self.clients, self.network, partitions)
        producer = producer_bound(self.clients, self.network, partitions, out)
        slower = COMPRESSION_CPU if self.load.compression_ratio > 1 else 1.0
        return _Task(
            partitions,
            self.measured.records_per_second(self.load.record_bytes) / slower,
            _records(consumer, self.load.wire_bytes),
            _records(producer, out),
            consumer.formula,
            producer.formula,
        )

    def tasks(self, only_cpu: bool = False) -> int | None:
        """The fewest tasks of which the busiest keeps up with its share; None if one a partition does not."""
        total, checked = self.load.partitions, 0
        for tasks in range(1, total + 1):
            most = math.ceil(total / tasks)
            if most == checked:
                continue
            checked, task = most, self.task(most)
            if self.load.needed * most / total <= (task.cpu if only_cpu else task.rate) * _ROUNDING:
                return tasks
        return None


def size(load: Workload, measured: Throughput) -> Size:
    """Return the size of the mirror that copies this workload."""
    case = _Case(load, measured, _start(load), load.network())
    plain, cpu_only = case.tasks(), case.tasks(only_cpu=True)
    limited_by_latency = plain is None or plain > (cpu_only or load.partitions)
    before = case.task(math.ceil(load.partitions / (cpu_only or load.partitions)))
    if limited_by_latency:
        case = _tuned(case)
    found = case.tasks()
    tasks = found or load.partitions
    task = case.task(math.ceil(load.partitions / tasks))
    steps = [*_needs(load), *_limits(load, measured, before, "Kafka's default settings")]
    if limited_by_latency:
        steps += _limits(load, measured, task, "the overrides below")[1:]
    steps.append(_tasks(load, task, tasks, feasible=found is not None))
    cpu = load.needed * _cpu_seconds(load, measured)
    if found is None:
        cpu *= min(1.0, load.partitions * task.rate / load.needed)
    replicas = _replicas(load, cpu, tasks)
    per_worker = math.ceil((cpu / replicas + BASE_CPU) * 10) / 10
    steps.append(_cpu(load, measured, cpu, tasks, replicas))
    heap, memory, step = _memory(case, task.partitions, tasks, replicas)
    return Size(
        feasible=found is not None,
        tasks=tasks,
        replicas=replicas,
        cpu=round(cpu, 2),
        cpu_per_worker=per_worker,
        cpu_limit=max(load.worker_cpu, per_worker),
        heap_mib=heap // MIB,
        memory_mib=memory // MIB,
        copies=round(copied(load, measured, case.clients, tasks), 1),
        producer=case.clients.producer_overrides(),
        consumer=case.clients.consumer_overrides(),
        steps=(*steps, step),
        advice=tuple(_advice(case, found, cpu_only, task)),
        measured=measured.origin,
        workload=asdict(load),
    )


def copied(load: Workload, measured: Throughput, clients: Clients, tasks: int) -> float:
    """Return the records a second that tasks with these clients copy: the busiest one's rate, by its share."""
    task = _Case(load, measured, clients, load.network()).task(math.ceil(load.partitions / tasks))
    return task.rate * load.partitions / task.partitions


def _start(load: Workload) -> Clients:
    """Kafka's defaults. Compressed records stay so only if the mirror's producer compresses: it never keeps batches."""
    return Clients(compression="lz4") if load.compression_ratio > 1 else Clients()


def _tuned(case: _Case) -> _Case:
    """The case with the clients that let the fewest tasks carry it, as far as settings can."""
    load = case.load
    out = load.wire_bytes if case.clients.compression != "none" else load.record_bytes
    found = case
    busiest = {math.ceil(load.partitions / tasks) for tasks in range(1, load.partitions + 1)}
    for partitions in sorted(busiest, reverse=True):
        share = load.needed * partitions / load.partitions
        busy = share / case.task(partitions).cpu
        alone = share / math.sqrt(max(LEAST_IDLE, 1 - busy * busy))  # what the line must carry if nothing else limits
        clients = tuned(case.clients, case.network, partitions, alone * load.wire_bytes, share * out)
        found = replace(case, clients=clients)
        if share <= found.task(partitions).rate * _ROUNDING:
            break
    return found


def _records(bound: Bound, record_bytes: float) -> float:
    return math.inf if bound.bytes_per_second is None else bound.bytes_per_second / record_bytes


def _cpu_seconds(load: Workload, measured: Throughput) -> float:
    return measured.cpu_seconds(load.record_bytes) * (COMPRESSION_CPU if load.compression_ratio > 1 else 1.0)


def _replicas(load: Workload, cpu: float, tasks: int) -> int:
    """Workers that carry the CPU, no more than there are tasks; two at least if one may be lost."""
    carried = max(1, min(tasks, math.ceil(cpu / (load.worker_cpu - BASE_CPU))))
    return max(2, carried) if load.availability else carried


def _needs(load: Workload) -> list[Step]:
    outage = f"after an outage of 60 minutes it has caught up in {60 / (load.catch_up - 1):.0f}"
    return [
        Step(
            "what must pass",
            f"{load.records_per_second:g} records/s x catch-up factor {load.catch_up:g}; {outage}",
            f"{load.needed:g} records/s, {shown(load.needed * load.record_bytes)}/s",
        )
    ]


def _limits(load: Workload, measured: Throughput, task: _Task, settings: str) -> list[Step]:
    slower = f" / {COMPRESSION_CPU} for compression" if load.compression_ratio > 1 else ""
    rate = measured.records_per_second(load.record_bytes)
    share = f"a task with {format_count(task.partitions, 'partition')}"
    return [
        Step("one task: CPU", f"measured {rate:.0f} records/s at {load.record_bytes} bytes{slower}", _rate(task.cpu)),
        Step(
            f"{share}: fetching, {settings}",
            f"{task.consumer_formula}; {load.wire_bytes:g} bytes a record on the wire",
            _rate(task.consumer),
        ),
        Step(f"{share}: producing, {settings}", task.producer_formula, _rate(task.producer)),
    ]


def _tasks(load: Workload, task: _Task, tasks: int, *, feasible: bool) -> Step:
    share = load.needed * task.partitions / load.partitions
    sign = "<=" if feasible else ">"
    return Step(
        "tasks",
        f"{format_count(load.partitions, 'partition')} / {format_count(tasks, 'task')}: "
        f"at most {task.partitions} a task, "
        f"{share:.0f} records/s {sign} {task.rate:.0f} = min(1 / sqrt(1 / CPU^2 + 1 / fetching^2), producing) "
        f"({task.limit} limits most); tasks <= partitions",
        format_count(tasks, "task") if feasible else "not enough, with one task a partition",
    )


def _cpu(load: Workload, measured: Throughput, cpu: float, tasks: int, replicas: int) -> Step:
    words = (
        f"{load.needed:g} records/s x {_cpu_seconds(load, measured) * 1e6:.1f} us of CPU = {cpu:.2f} cores, "
        f"{cpu / tasks:.2f} a task; / ({load.worker_cpu:g} cores a worker - {BASE_CPU} for itself)"
    )
    if load.availability:
        words += f"; at least 2, and with {replicas - 1} of {replicas} left the plain rate still passes"
    return Step("workers", words, format_count(replicas, "replica"))


def _memory(case: _Case, partitions: int, tasks: int, replicas: int) -> tuple[int, int, Step]:
    """Heap and container memory of a worker, with the tasks it has when another worker is lost."""
    left = max(1, replicas - 1) if case.load.availability else replicas
    held = math.ceil(tasks / left)
    each = task_memory(case.clients, case.network, partitions, case.load.record_bytes)
    heap = _up((BASE_HEAP + held * each) * HEAP_SLACK)
    memory = _up(max(heap / HEAP_SHARE, heap + 2 * _STEP))
    lost = ", one worker lost" if case.load.availability else ""
    words = (
        f"({shown(BASE_HEAP)} + {format_count(held, 'task')}{lost} x {shown(each)} (buffer.memory "
        f"{shown(case.clients.buffer_memory)}, fetched data, polled records)) x {HEAP_SLACK}; "
        f"container = heap / {HEAP_SHARE}"
    )
    return heap, memory, Step("memory of a worker", words, f"heap {heap // MIB} MiB, container {memory // MIB} MiB")


def _advice(case: _Case, found: int | None, cpu_only: int | None, task: _Task) -> list[str]:
    load, advice = case.load, []
    if found is None:
        single = case.task(1)
        least = math.ceil(round(load.needed / single.rate, 6))
        advice.append(
            f"partitions: must be at least {least} for this rate (got {load.partitions}); one task a partition copies "
            f"{_rate(load.partitions * single.rate)}, and {single.limit} limits."
        )
    if load.broker_buffer >= 0 and found != cpu_only:
        opened = replace(case, network=replace(case.network, broker_buffer=-1)).tasks()
        if opened is not None and (found is None or opened < found):
            setting = "socket.send" if load.workers_at == "target" else "socket.receive"
            side = "source" if load.workers_at == "target" else "target"
            advice.append(
                f"{side} brokers: with {setting}.buffer.bytes -1 {format_count(opened, 'task')} would do; now "
                f"{shown(load.broker_buffer)} limit every connection. "
                "Size again with --broker-buffer-bytes -1 when it is set."
            )
    if -1 in (case.clients.receive_buffer, case.clients.send_buffer):
        advice.append("system: net.ipv4.tcp_rmem must allow 6 MiB, Linux's default, for windows to grow.")
    if case.clients.in_flight > 1:
        advice.append("producer: idempotence keeps the order with 5 requests in flight; Write on the topics is enough.")
    if load.workers_at == "source" and load.latency_ms > load.local_ms:
        advice.append("workers: put them at the target; records are fetched over distance better than produced.")
    return advice


def _rate(value: float) -> str:
    return "no limit" if math.isinf(value) else f"{value:.0f} records/s"


def _up(count: float) -> int:
    return math.ceil(count / _STEP) * _STEP


def _camel(values: dict[str, Any]) -> dict[str, Any]:
    def name(key: str) -> str:
        first, *rest = key.split("_")
        return first + "".join(part.capitalize() for part in rest)

    return {name(key): value for key, value in values.items()}
