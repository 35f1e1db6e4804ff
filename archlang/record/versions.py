"""The software and the machine of a run: of its beginning, and of each time that it was resumed with others."""

from pathlib import Path

from archlang.record.mistakes import RunError
from archlang.record.reading import has, read_record
from archlang.record.schemas import VERSIONS, ResumedRecord, SoftwareRecord, VersionsRecord

# What the bits of a result may depend on. The name of the system and the number of cores are not among it.
_COMPARED = ("archlang", "torch", "python", "machine", "processor", "device", "gpus", "threads")


def with_resumption(recorded: VersionsRecord, step: int, now: VersionsRecord) -> tuple[VersionsRecord, str]:
    """Returns the record of a run that this process resumes at `step`, and what has changed since the run last began or
    resumed, in words. Nothing is recorded if nothing has changed."""
    changes = _changes(recorded.resumed[-1] if recorded.resumed else recorded, now)
    if not changes:
        return recorded, ""
    resumption = ResumedRecord(step=step, **now.model_dump(exclude={"resumed"}))
    return recorded.model_copy(update={"resumed": (*recorded.resumed, resumption)}), changes


def recorded_threads(folder: Path) -> int | None:
    """Returns the number of threads with which the run of a folder was last computed; None if that is unknown."""
    try:
        record = read_record(folder, VERSIONS, VersionsRecord) if has(folder, VERSIONS) else None
    except RunError:
        return None
    return None if record is None else (record.resumed[-1] if record.resumed else record).threads


def read_history(folder: Path) -> tuple[str, ...]:
    """Returns a sentence for the beginning of a run, and for each time that it was resumed with other software or on
    another machine; none if `versions.json` is missing or damaged."""
    try:
        record = read_record(folder, VERSIONS, VersionsRecord) if has(folder, VERSIONS) else None
    except RunError:
        return ()
    if record is None:
        return ()
    sentences = [
        f"begun with archlang {record.archlang}, torch {record.torch}, Python {record.python} on {record.device}"
    ]
    before: SoftwareRecord = record
    for resumption in record.resumed:
        sentences.append(f"resumed at step {resumption.step} with {_changes(before, resumption)}")
        before = resumption
    return tuple(sentences)


def _changes(before: SoftwareRecord, now: SoftwareRecord) -> str:
    values = ((name, getattr(before, name), getattr(now, name)) for name in _COMPARED)
    return ", ".join(f"{name} {_text(new)} instead of {_text(old)}" for name, old, new in values if old != new)


def _text(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text or "none"
