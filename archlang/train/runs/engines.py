"""Engines that run points: processes of this machine, a Ray cluster, or SLURM jobs."""

import logging
import math
import multiprocessing
import os
import re
import signal
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from pebble import ProcessExpired, ProcessPool

from archlang.errors.machine import first_line, needs_extra
from archlang.train.record.mistakes import RunWarning
from archlang.train.runs import mistakes
from archlang.train.runs.points import JOBS, RESUMES, Point, PointResult, explain_death, run_point
from archlang.train.stop import TIME_LIMIT, Stop, keeping_handlers


def make_engine(
    name: str, workers: int | None = None, options: Mapping[str, str] | None = None, retries: int = 0, devices: int = 1
) -> "Engine":
    """Returns the engine of a name.

    Args:
        workers: Points at a time; by default as many as the machine or the cluster has room for.
        options: An address of Ray, or parameters of SLURM.
        retries: How often a point that the machine has ended begins again, from its last checkpoint.
        devices: Those of a point.

    Raises:
        MachineError: The package of the engine is not installed.
        RunError: An option is unknown or cannot have its value."""
    engines = {"local": LocalEngine, "ray": RayEngine, "slurm": SlurmEngine}
    return engines[name](workers, options, retries, devices)


_SECONDS_BETWEEN_CHECKS = 0.5
# Points at a time if their number is unknown, as in a search.
_DEFAULT_JOBS = 8


class _Lost(Exception):
    """Why a job has ended without results."""


@dataclass(frozen=True)
class _Job:
    """Points that a process runs one after another, perhaps later on a cluster. Their time begins when the job does."""

    points: Sequence[Point]
    seconds: float | None
    results: list[PointResult] = field(default_factory=list)

    @staticmethod
    def of(points: Sequence[Point]) -> "_Job":
        deadline = points[0].deadline
        return _Job(points, None if deadline is None else deadline - time.time())

    def __call__(self) -> list[PointResult]:
        stop = Stop()
        deadline = None if self.seconds is None else time.time() + self.seconds
        for point in self.points[len(self.results) :]:
            if stop.number is None:  # a pruned run does not stop the others
                stop = Stop()
            run = replace(point, deadline=deadline)
            self.results.append(PointResult(run, 0.0, stopped=True) if stop.requested else run_point(run, stop))
            if stop.number == TIME_LIMIT and callable(signal.getsignal(TIME_LIMIT)):
                os.kill(os.getpid(), TIME_LIMIT)  # now submitit, whose handler waited for the checkpoint
        return self.results

    def checkpoint(self) -> Any:
        """Returns what submitit runs when it has queued a job again."""
        import submitit

        finished = [result for result in self.results if not result.stopped]
        return submitit.helpers.DelayedSubmission(replace(self, results=finished))


class Engine:
    """Runs jobs of one or several points, as many at a time as it has room for. Engines differ in how a job begins, and
    how its end is known."""

    _points_per_job = 1

    def __init__(
        self, workers: int | None = None, options: Mapping[str, str] | None = None, retries: int = 0, devices: int = 1
    ) -> None:
        self._workers, self._options, self._retries, self._devices = workers, dict(options or {}), retries, devices
        self.nodes = 1
        self._configure(workers, self._options, devices)

    def _configure(self, workers: int | None, options: dict[str, str], devices: int) -> None:
        """Checks the options, and that what the engine needs is installed."""

    def _count(self, name: str, engine: str) -> int:
        text = self._options.get(name, "1")
        if not text.isdecimal() or not int(text):
            raise mistakes.engine_value(name, engine, text, "a whole number from 1", 2)
        return int(text)

    def run(self, points: Iterable[Point], stopping: Callable[[], bool]) -> Iterator[PointResult]:
        """Yields how each point ended, in the order in which they end.

        If the process of a job dies, its unfinished points end with an error and the others continue. A point is taken
        from `points` only when there is room for it. Once `stopping()` is true, no further points begin, and running
        ones are asked to stop."""
        count = len(points) if isinstance(points, Sized) else None
        waiting, tries, stop_asked = iter(points), Counter[Path](), False
        running: dict[Any, Sequence[Point]] = {}  # Any: the jobs of pebble, Ray and submitit have no common type
        with nullcontext(0) if count == 0 else self._working(count) as limit:
            while True:
                if stopping() and not stop_asked:
                    stop_asked = True
                    self._stop(running)
                jobs: list[Sequence[Point]] = []
                while not stop_asked and len(running) + len(jobs) < limit:
                    if not (points_of_job := tuple(islice(waiting, self._points_per_job))):
                        break
                    jobs.append(points_of_job)
                if jobs:
                    begun = [_Job.of([replace(point, nodes=self.nodes) for point in points]) for points in jobs]
                    running.update(zip(self._begin(begun), jobs, strict=True))
                if not running:
                    return
                for job in self._wait_for_ended(running):
                    for result in self._results_of(job, running.pop(job), stop_asked):
                        point = result.point
                        tries[point.folder] += 1
                        is_of_machine = any(run.is_of_machine for run in result.per_run())
                        if is_of_machine and tries[point.folder] <= self._retries and not stop_asked:
                            waiting = chain([point], waiting)
                        else:
                            yield result

    def _results_of(self, job: Any, points: Sequence[Point], stop_asked: bool) -> Sequence[PointResult]:
        try:
            results = self._results(job)
        except _Lost as lost:
            error = "" if stop_asked else f"{lost}; {RESUMES}"
            unfinished = PointResult(points[0], 0.0, stopped=stop_asked, error=error, is_of_machine=True)
            results = [PointResult(point, 0.0) if point.is_finished() else unfinished for point in points]
        return [replace(result, point=point) for result, point in zip(results, points, strict=True)]

    def _working(self, points: int | None) -> AbstractContextManager[int]:
        """Inside, points can run, as many at a time as the context is. `points` is their number, if it is known."""
        raise NotImplementedError

    def _begin(self, jobs: Sequence[_Job]) -> Sequence[Any]:
        raise NotImplementedError

    def _wait_for_ended(self, running: Collection[Any]) -> Collection[Any]:
        raise NotImplementedError

    def _results(self, job: Any) -> Sequence[PointResult]:
        """
        Raises:
            _Lost: the job has none."""
        raise NotImplementedError

    def _stop(self, running: Collection[Any]) -> None:
        raise NotImplementedError


def _results_of_nodes(results: Sequence[Sequence[PointResult]]) -> list[PointResult]:
    points = list(zip(*results, strict=True))
    errors = [dict.fromkeys(result.error for result in nodes if result.error) for nodes in points]
    return [
        replace(nodes[0], error="; ".join(error), is_of_machine=any(result.is_of_machine for result in nodes))
        for nodes, error in zip(points, errors, strict=True)
    ]


class LocalEngine(Engine):
    """As many processes as there are GPUs, or else cores, for the devices of a point. Each process starts once and runs
    one point after another."""

    def _configure(self, workers: int | None, options: dict[str, str], devices: int) -> None:
        if options:
            raise mistakes.engine_option("local", next(iter(options)))
        self._gpus = torch.cuda.device_count()
        self.workers = workers or max((self._gpus or _core_count()) // devices, 1)

    @contextmanager
    def _working(self, points: int | None) -> Iterator[int]:
        workers = self.workers if points is None else min(self.workers, points)
        # A user sets OMP_NUM_THREADS where other processes need the cores.
        threads = max(min(_core_count() // workers, torch.get_num_threads()), 1)
        # A forked process would inherit locks of threads that torch has started.
        context = multiprocessing.get_context("spawn")
        arguments = (threads, self._gpus, self._devices)
        pool: Any = ProcessPool(workers, context=context, initializer=_prepare_worker, initargs=arguments)
        self._pool = pool
        try:
            yield workers  # a point per process: a scheduled point cannot be taken back
            pool.close()
        finally:
            pool.stop()
            pool.join()

    def _begin(self, jobs: Sequence[_Job]) -> Sequence[Any]:
        return [self._pool.schedule(_run_on_own_gpu, args=[job]) for job in jobs]

    def _wait_for_ended(self, running: Collection[Any]) -> Collection[Any]:
        return wait(running, timeout=_SECONDS_BETWEEN_CHECKS, return_when=FIRST_COMPLETED).done

    def _results(self, job: Any) -> Sequence[PointResult]:
        try:
            results: list[PointResult] = job.result()
        except ProcessExpired as error:
            raise _Lost(explain_death("its process", error.exitcode)) from error
        return results

    def _stop(self, running: Collection[Any]) -> None:
        for process in multiprocessing.active_children():
            if process.pid is not None:
                os.kill(process.pid, signal.SIGTERM)


def _core_count() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def _prepare_worker(threads: int, gpus: int, devices: int) -> None:
    """Gives a new process its share of the cores and its GPUs, and ends it when its parent has ended."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # Ctrl-C reaches only the parent, which then asks each process once.
    threading.Thread(target=_exit_with_parent, args=[os.getppid()], daemon=True).start()
    torch.set_num_threads(threads)
    first = devices * (multiprocessing.current_process()._identity[-1] - 1)  # workers count from 1
    if gpus and devices > 1:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(gpus)))).split(",")
        own = [visible[(first + index) % gpus] for index in range(min(devices, gpus))]
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(own)  # of its processes
    elif gpus:
        torch.cuda.set_device(first % gpus)


def _exit_with_parent(parent: int) -> None:
    """Ends this process when its parent has ended: it would keep the run folder locked."""
    while os.getppid() == parent:
        time.sleep(_SECONDS_BETWEEN_CHECKS)
    os._exit(1)


def _run_on_own_gpu(job: _Job) -> list[PointResult]:
    if torch.cuda.is_available() and job.points[0].devices == 1:
        own = f"cuda:{torch.cuda.current_device()}"
        points = [replace(point, device=own if point.device == "auto" else point.device) for point in job.points]
        job = replace(job, points=points)
    return job()


# When a node of a run has failed, the others may end so long by themselves, and say why.
_SECONDS_TO_FAIL = 10.0


@dataclass(eq=False)
class _Tasks:
    """The tasks of Ray that run a job, one on each of its nodes, in a placement group if there are several."""

    tasks: Sequence[Any]
    group: Any = None
    running: list[Any] = field(default_factory=list)
    limit: float = math.inf
    """when the tasks are ended"""

    def __post_init__(self) -> None:
        self.running = list(self.tasks)


class RayEngine(Engine):
    """Each point is a task of Ray, or one on each of its nodes. Ray's processes run one task after another."""

    def _configure(self, workers: int | None, options: dict[str, str], devices: int) -> None:
        """
        Args:
            options: `address` of a cluster whose machines share the folder of the table; without it Ray starts on this
                machine. `cpus` and `gpus` of each device of a run: one core, and one GPU if the cluster has some. The
                `nodes` of each point: on different machines if there are enough.

        Raises:
            MachineError: Ray is not installed.
            RunError: an option is unknown or not a number."""
        with needs_extra("ray"):
            import ray
        self._ray: Any = ray  # Any: Ray is hardly typed
        for unknown in sorted(options.keys() - {"address", "cpus", "gpus", "nodes"}):
            raise mistakes.engine_option("ray", unknown)
        for name in options.keys() & {"cpus", "gpus"}:
            if not re.fullmatch(r"\d+(\.\d+)?|\.\d+", options[name]):
                raise mistakes.engine_value(name, "ray", options[name], "a number", 2)
        self._address = options.get("address", os.environ.get("RAY_ADDRESS"))
        self.nodes = self._count("nodes", "ray")
        self._cpus = devices * float(options.get("cpus", "1"))
        self._gpus = devices * float(options["gpus"]) if "gpus" in options else None

    @contextmanager
    def _working(self, points: int | None) -> Iterator[int]:
        ray, cpus = self._ray, self._cpus * self.nodes
        is_own = not ray.is_initialized()
        if is_own:
            with keeping_handlers():  # Ray's own would abort this process
                address = self._address
                cores = self._workers * cpus if self._workers else max(_core_count(), cpus)
                try:
                    ray.init(
                        address=address, num_cpus=None if address else math.ceil(cores), include_dashboard=False,
                        logging_level=logging.ERROR, log_to_driver=False,
                    )  # fmt: skip
                except (ValueError, OSError, RuntimeError) as error:
                    if address is None:
                        raise
                    raise mistakes.refused_by_engine("ray", "address", address, first_line(error)) from error
        resources = dict(ray.cluster_resources())
        self._has_gpus = "GPU" in resources
        try:
            yield self._workers or max(int(resources.get("CPU", 1) / max(cpus, 1e-9)), 1)
        finally:
            if is_own:
                ray.shutdown()

    def _begin(self, jobs: Sequence[_Job]) -> Sequence[Any]:
        has_gpu = self._has_gpus and jobs[0].points[0].device != "cpu"
        gpus = self._devices * has_gpu if self._gpus is None else self._gpus
        remote = self._ray.remote(num_cpus=self._cpus, num_gpus=gpus, max_retries=0)
        self._needs = {"CPU": self.nodes * self._cpus, "GPU": self.nodes * gpus}
        self._look_for_room()
        if self.nodes > 1:
            return [self._begin_on_nodes(job, remote(_run_on_node), gpus) for job in jobs]
        task = remote(_Job.__call__)
        return [_Tasks([task.remote(job)]) for job in jobs]

    def _look_for_room(self) -> None:
        has = self._ray.cluster_resources()
        missing = [f"{count:g} {kind}" for kind, count in self._needs.items() if has.get(kind, 0) < count]
        if missing:
            if self._address is None:
                raise mistakes.no_room(" and ".join(missing))
            message = f"Ray has no {' and '.join(missing)} for a run, which waits for other machines"
            warnings.warn(message, RunWarning, stacklevel=2)

    def _begin_on_nodes(self, job: _Job, task: Any, gpus: float) -> _Tasks:
        """Begins the tasks of a job together, so that none waits for one that has no room."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        bundle = {"CPU": self._cpus or 0.001, "GPU": gpus}  # Ray refuses one of nothing
        group = self._ray.util.placement_group([bundle] * self.nodes, strategy="SPREAD")
        places = [PlacementGroupSchedulingStrategy(group, node) for node in range(self.nodes)]
        meeting = self._ray.remote(num_cpus=0, scheduling_strategy=places[0])(_rendezvous_variables).remote()
        tasks = [
            task.options(scheduling_strategy=place).remote(job, meeting, node) for node, place in enumerate(places)
        ]
        return _Tasks(tasks, group)

    def _wait_for_ended(self, running: Collection[Any]) -> Collection[Any]:
        tasks = [task for job in running for task in job.running]
        ended, _ = self._ray.wait(tasks, num_returns=1, timeout=_SECONDS_BETWEEN_CHECKS)
        if not ended:
            self._look_for_room()
        for job in running:
            own = set(job.running) & set(ended)
            job.running = [task for task in job.running if task not in own]
            if any(map(self._has_failed, own)):
                job.limit = min(job.limit, time.monotonic() + _SECONDS_TO_FAIL)
            if time.monotonic() > job.limit:
                for task in job.running:
                    self._ray.cancel(task, force=True)
        return [job for job in running if not job.running]

    def _has_failed(self, task: Any) -> bool:
        try:
            return any(result.error for result in self._ray.get(task))
        except self._ray.exceptions.RayError:
            return True

    def _results(self, job: _Tasks) -> Sequence[PointResult]:
        if job.group is not None:
            self._ray.util.remove_placement_group(job.group)
        results: list[list[PointResult]] = []
        lost = []
        for node, task in enumerate(job.tasks):
            try:
                results.append(self._ray.get(task))
            except self._ray.exceptions.TaskCancelledError:
                pass  # because another node has failed, or all are stopped
            except self._ray.exceptions.RayError as error:
                name = "it" if job.group is None else f"node {node} of {self.nodes}"
                lost.append(f"Ray lost {name}: {'. '.join(first_line(error).split('. ')[:2])}")
        if len(results) < len(job.tasks):
            errors = [result.error.removesuffix(f"; {RESUMES}") for own in results for result in own if result.error]
            raise _Lost("; ".join(dict.fromkeys(errors + lost)))
        return _results_of_nodes(results)

    def _stop(self, running: Collection[Any]) -> None:
        for task in (task for job in running for task in job.running):
            self._ray.cancel(task)


def _rendezvous_variables() -> dict[str, str]:
    from lightning_fabric.plugins.environments.lightning import find_free_network_port
    from ray.util import get_node_ip_address

    address = get_node_ip_address()  # type: ignore[no-untyped-call]
    return {"MASTER_ADDR": str(address), "MASTER_PORT": str(find_free_network_port())}


def _run_on_node(job: _Job, meeting: Mapping[str, str], node: int) -> list[PointResult]:
    own = {**meeting, "GROUP_RANK": str(node)}
    return replace(job, points=[replace(point, meeting=own) for point in job.points])()


# A job that reaches its time limit resumes so often.
_MOST_TIME_LIMITS = 1_000
_LONGEST_LOCAL_JOB = 525_600  # minutes


class SlurmEngine(Engine):
    """Each job of SLURM has one point or several. Logs are in the folder `JOBS` beside the run folders."""

    def _configure(self, workers: int | None, options: dict[str, str], devices: int) -> None:
        """
        Args:
            options: submitit's: `slurm_partition=gpu`, `timeout_min=60`, `gpus_per_node=1`; `cluster=local` runs jobs
                without SLURM. `points` that a job runs one after another, and the `nodes` of each point.

        Raises:
            MachineError: submitit is not installed.
            RunError: `points` or `nodes` is not a positive number."""
        with needs_extra("slurm"):
            import submitit  # noqa: F401
        self._cluster = options.pop("cluster", "slurm")
        self._points_per_job, self.nodes = self._count("points", "slurm"), self._count("nodes", "slurm")
        options.pop("points", None)  # submitit takes the others
        self._executor: Any = None  # Any: submitit's executors have no common type

    def _working(self, points: int | None) -> AbstractContextManager[int]:
        return nullcontext(self._workers or (_DEFAULT_JOBS if points is None else points))

    def _begin(self, jobs: Sequence[_Job]) -> Sequence[Any]:
        self._executor = self._executor or self._make_executor(jobs[0].points[0].folder.parent / JOBS)
        with self._executor.batch():  # as one array of SLURM
            return [self._executor.submit(job) for job in jobs]

    def _wait_for_ended(self, running: Collection[Any]) -> Collection[Any]:
        ended = [job for job in running if job.done()]
        if not ended:
            time.sleep(_SECONDS_BETWEEN_CHECKS)
        return ended

    def _results(self, job: Any) -> Sequence[PointResult]:
        failure = job.exception()
        if failure is not None:
            info = job.get_info()
            place, state = info.get("NodeList", "this machine"), info.get("State") or info.get("jobState")
            raise _Lost(f"its job {job.job_id} on {place} ended without results ({state}), see {job.paths.stderr}")
        return _results_of_nodes(job.results())

    def _stop(self, running: Collection[Any]) -> None:
        for job in running:
            job.cancel()

    def _make_executor(self, logs: Path) -> Any:
        import submitit

        try:
            most = {f"{self._cluster}_max_num_timeout": _MOST_TIME_LIMITS}
            executor = submitit.AutoExecutor(logs, cluster=self._cluster, **most)
        except RuntimeError as error:
            raise mistakes.no_cluster(str(error)) from error
        except (ValueError, TypeError, AssertionError) as error:
            raise mistakes.engine_value("cluster", "slurm", self._cluster, "slurm or local", "local") from error
        options = {name: int(text) if text.isdecimal() else text for name, text in self._options.items()}
        # Without SLURM, a job would end after minutes.
        defaults = {"name": "archlang"} | ({"timeout_min": _LONGEST_LOCAL_JOB} if self._cluster == "local" else {})
        for name, value in (defaults | options).items():
            try:
                executor.update_parameters(**{name: value})
            except NameError:
                raise mistakes.engine_option("slurm", name) from None
            except (AssertionError, TypeError, ValueError, NotImplementedError) as error:
                raise mistakes.refused_by_engine("slurm", name, value, first_line(error)) from error
        return executor
