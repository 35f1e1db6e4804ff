"""The time that finished runs have taken, from their folders."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from archlang.files.limits import LARGEST_INTEGER
from archlang.record.mistakes import RunError
from archlang.record.reading import has, read_record, read_timings
from archlang.record.schemas import RESULTS, VERSIONS, EvaluationTiming, StepTiming, VersionsRecord

_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True)
class TimeSpent:
    """The wall time of the training steps and validations of finished runs, without their evaluations at the end.

    Args:
        runs: The number of these runs.
        core_hours: For runs on a CPU, the wall time multiplied by the threads of torch.
        gpu_hours: For runs on a GPU, the wall time.

    The numbers are upper bounds of what training has computed: a thread may wait, a machine may be shared, and seeds
    that trained together have logged the time of all of them each."""

    runs: int = 0
    core_hours: float = 0.0
    gpu_hours: float = 0.0

    def sentence(self) -> str:
        """Returns the time as a sentence, rounded up to hundredths of an hour."""
        hours = [(self.core_hours, "core-hours"), (self.gpu_hours, "GPU-hours")]
        amounts = " and ".join(f"{ceil(100 * count) / 100:.2f} {unit}" for count, unit in hours if count)
        times_threads = ", on a CPU times the threads" if self.core_hours else ""
        return (
            f"Cost: at most {amounts or '0.00 core-hours'} of training in {self.runs} finished "
            f"run{'s' if self.runs > 1 else ''} (wall time of steps and validation{times_threads})."
        )


def time_spent(folders: Iterable[Path]) -> TimeSpent:
    """Returns the time that the finished ones of these runs have taken, without those whose times are missing or cannot
    be read."""
    runs, core_seconds, gpu_seconds = 0, 0.0, 0.0
    for folder in folders:
        try:
            if not has(folder, RESULTS):
                continue
            began = read_record(folder, VERSIONS, VersionsRecord)
            timings = read_timings(folder)
        except RunError:
            continue
        if not timings:
            continue
        seconds = training_seconds([timing for timing in timings if isinstance(timing, StepTiming)]) or 0.0
        seconds += sum(timing.seconds for timing in timings if isinstance(timing, EvaluationTiming))
        if not 0 <= seconds <= LARGEST_INTEGER:
            continue  # The speeds of a damaged file may be next to nothing.
        processes = (began, *began.resumed)
        if all(process.device == "cpu" for process in processes):
            core_seconds += seconds * max(process.threads for process in processes)
        else:
            gpu_seconds += seconds
        runs += 1
    return TimeSpent(runs, core_seconds / _SECONDS_PER_HOUR, gpu_seconds / _SECONDS_PER_HOUR)


def training_seconds(timings: Sequence[StepTiming]) -> float | None:
    """Returns the seconds that the training steps of a run took, without evaluations; None without a logged step."""
    steps = [0, *(timing.step for timing in timings)]
    intervals = (
        (step - before) / timing.steps_per_second
        for before, step, timing in zip(steps, steps[1:], timings, strict=False)
        if timing.steps_per_second
    )
    return sum(intervals) if timings else None
