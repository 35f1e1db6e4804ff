"""The JSON files of a run folder, and the state of a checkpoint, as pydantic models that write and read them.

A number that is NaN or infinite is null in JSON and None when read."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import (
    AllowInfNan,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    RootModel,
    model_validator,
)

from archlang.disk.limits import LARGEST_INTEGER
from archlang.plan.plan import BoundExtern, Plan, PublishedResult
from archlang.tasks.kit.metrics import rank
from archlang.types.statics import StaticValue, static_to_json

RUN, DATA, VERSIONS, RESULTS = "run.json", "data.json", "versions.json", "results.json"
VOCABULARY, START = "vocabulary.json", "start.json"
METRICS, TIMINGS = "metrics.jsonl", "timings.jsonl"
WEIGHTS, STATE, MANIFEST = "weights.safetensors", "state.pt", "manifest.json"


def _finite_or_none(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _is_none(value: object) -> bool:
    return value is None


Statics = dict[str, StaticValue]
Measurement = Annotated[float | None, BeforeValidator(_finite_or_none)]
Metrics = dict[str, Measurement]
Integer = Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
Count = Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]
Amount = Annotated[float, Field(ge=0, le=LARGEST_INTEGER)]
Number = Integer | Annotated[float, AllowInfNan(False)]
# The SHA-256 digests of a user's own Python files by their names. The key is absent if there are none.
Digests = Annotated[dict[str, str], Field(exclude_if=operator.not_)]
# The key is absent if there is no number.
OptionalNumber = Annotated[
    float | None,
    BeforeValidator(_finite_or_none),
    PlainSerializer(_finite_or_none),
    Field(default=None, exclude_if=_is_none),
]


def json_value(model: BaseModel) -> Any:  # Any: JSON
    """Returns a model as JSON, with the keys of the file."""
    return model.model_dump(mode="json", by_alias=True)


def json_text(model: BaseModel) -> str:
    """Returns a model as the text of a JSON file."""
    return json.dumps(json_value(model), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def json_line(model: BaseModel) -> str:
    """Returns a model as a line of a JSON lines file."""
    return json.dumps(json_value(model), allow_nan=False) + "\n"


class FileModel(BaseModel):
    """A JSON object of a run folder. Unknown keys are ignored: a newer version may have written them."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)


# run.json


def _claim_from_json(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    numbers = [number for number in value.values() if isinstance(number, int | float)]
    if not all(abs(number) <= LARGEST_INTEGER for number in numbers):
        raise ValueError("a number is out of range")
    return {"origin" if name == "from" else name: item for name, item in value.items()}


def _claim_to_json(claim: PublishedResult) -> dict[str, object]:
    facts = {name: getattr(claim, name) for name in ("metric", "index", "value", "deviation")}
    at = {name: static_to_json(value) for name, value in claim.at.items()}
    return {**facts, "at": at, "from": claim.origin, **({"median": True} if claim.median else {})}


Claim = Annotated[PublishedResult, BeforeValidator(_claim_from_json), PlainSerializer(_claim_to_json)]


class ModelRecord(FileModel):
    """What a model is, apart from its program: `run.json` of a run, or of a module that was saved without one."""

    recipe: str | None = None
    model: str
    task: Annotated[BoundExtern | None, Field(exclude_if=_is_none)] = None
    gives: Annotated[dict[str, Count], Field(exclude_if=operator.not_)] = {}
    train: Annotated[BoundExtern | None, Field(exclude_if=_is_none)] = None
    settings: Statics
    """every setting of a run, or those that were passed with a program"""
    plugins: Digests = Field(default_factory=dict)
    without_passes: Annotated[tuple[str, ...], Field(exclude_if=operator.not_)] = ()


class RunRecord(ModelRecord):
    """`run.json`: what a run is, apart from its program."""

    recipe: str
    task: BoundExtern
    gives: dict[str, Count]
    train: BoundExtern
    seed: Integer
    precision: Annotated[str, Field(pattern=r"^(32|bf16|16)$")]
    claims: tuple[Claim, ...]
    track: Annotated[tuple[str, ...], Field(exclude_if=operator.not_)] = ()
    """the trackers that the run began with"""

    @classmethod
    def of(cls, plan: Plan, precision: str, track: Sequence[str] = ()) -> RunRecord:
        return cls(
            recipe=plan.recipe, model=plan.model, seed=plan.seed, precision=precision, task=plan.task,
            gives=dict(plan.gives), train=plan.train, settings=dict(plan.settings), claims=plan.claims,
            plugins=plan.plugins.digests(), track=tuple(track),
        )  # fmt: skip


# start.json, data.json, versions.json


class StartRecord(FileModel):
    """`start.json`: the weights of the folder `source` with which a run began, and what was `new` and `unused`."""

    source: str
    sha256: str
    loaded: tuple[str, ...]
    new: tuple[str, ...]
    unused: tuple[str, ...]


class SplitRecord(FileModel):
    """What a run records of a split: enough to notice that the data have changed. Of a stream, these are the items of
    its first part."""

    items: Count
    groups: dict[str, list[Integer]]
    """the values of each group, sorted"""
    sha256: str
    stream: Annotated[str, Field(exclude_if=operator.not_)] = ""
    """what a stream is read from"""


class DataRecord(RootModel[dict[str, SplitRecord]]):
    """`data.json`: every split of the task by name."""

    model_config = ConfigDict(frozen=True)

    @model_validator(mode="after")
    def _has_training_data(self) -> DataRecord:
        if "train" not in self.root:
            raise ValueError("there is no split `train`")
        return self

    @property
    def trained(self) -> dict[str, list[int]]:
        """By group, the values that the training split has."""
        return self.root["train"].groups


class SoftwareRecord(FileModel):
    """The software and the machine of a process."""

    archlang: str
    python: str
    torch: str
    machine: str
    system: str
    processor: str
    cores: int | None
    threads: Count
    device: str
    gpus: tuple[str, ...]
    steps: Annotated[str, Field(exclude_if=operator.not_)] = ""


class ResumedRecord(SoftwareRecord):
    """The software and the machine that resumed a run at a step."""

    step: int


class VersionsRecord(SoftwareRecord):
    """`versions.json`: what a run began with, and each time that something else resumed it."""

    resumed: Annotated[tuple[ResumedRecord, ...], Field(exclude_if=operator.not_)] = ()


# metrics.jsonl, timings.jsonl


class StepMetrics(FileModel):
    """A line of `metrics.jsonl`: a logged training step."""

    step: Count
    loss: Measurement
    lr: Measurement
    gradient_norm: OptionalNumber
    mean_depth: OptionalNumber
    losses: Annotated[Metrics, Field(exclude_if=operator.not_)] = {}
    """the auxiliary losses before weighting, by name"""

    def scalars(self) -> dict[str, float]:
        """Returns the values that were measured, for curves."""
        values = {"loss": self.loss, "lr": self.lr, "gradient_norm": self.gradient_norm, "mean_depth": self.mean_depth}
        values |= {f"losses.{name}": loss for name, loss in self.losses.items()}
        return {name: value for name, value in values.items() if value is not None}


class EvaluationMetrics(FileModel):
    """A line of `metrics.jsonl`: the evaluation of a split, with the task's metrics as further keys."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: Metrics = Field(init=False)

    step: Count
    split: str
    loss: Measurement

    @classmethod
    def of(cls, step: int, split: str, loss: float, metrics: Mapping[str, float]) -> EvaluationMetrics:
        return cls.model_validate({"step": step, "split": split, "loss": loss, **metrics})

    @property
    def metrics(self) -> Metrics:
        """The task's metrics, without the loss."""
        return self.__pydantic_extra__

    def value(self, metric: str) -> float | None:
        """Returns the loss or a metric; None if it was not measured or not finite."""
        return self.loss if metric == "loss" else self.metrics.get(metric)


class StepTiming(FileModel):
    """A line of `timings.jsonl`: the speed since the last logged step."""

    step: Count
    time: float
    """seconds since 1970"""
    steps_per_second: Amount
    samples_per_second: Annotated[Amount | None, Field(exclude_if=_is_none)] = None
    tokens_per_second: Annotated[Amount | None, Field(exclude_if=_is_none)] = None
    """of the longest field of each sample, without padding"""
    memory: Annotated[Count | None, Field(exclude_if=_is_none)] = None
    """the largest number of bytes so far: allocated on the GPU, or of the whole process"""
    flops_per_second: Annotated[Amount | None, Field(exclude_if=_is_none)] = None
    """forward and backward, of the blocks that `archlang summary` counts, with loops that run to their limits"""
    peak_share: Annotated[Amount | None, Field(exclude_if=_is_none)] = None
    """the same as a share of what the device computes at most in this precision"""
    data_seconds: Annotated[Amount | None, Field(exclude_if=_is_none)] = None
    """the part of the time of the steps in which batches were made"""


class SavingTiming(FileModel):
    """A line of `timings.jsonl`: how long training waited for a checkpoint."""

    step: Count
    saving: Amount


class EvaluationTiming(FileModel):
    """A line of `timings.jsonl`: the duration of an evaluation."""

    step: Count
    split: str
    seconds: Amount


# results.json


class DepthRecord(FileModel):
    """The mean steps of halting loops over a split, and by the values of each group."""

    mean: Annotated[float, AllowInfNan(False)]
    groups: dict[str, dict[Integer, Annotated[float, AllowInfNan(False)]]]


class JointRecord(FileModel):
    """The metrics of the samples that have all these group values."""

    of: dict[str, Integer]
    metrics: Metrics


class SplitResult(FileModel):
    """What was measured on a split."""

    items: Count
    written: Annotated[Count, Field(exclude_if=lambda count: count == 0)] = 0
    """samples whose answers the model generated itself"""
    loss: Measurement
    metrics: Metrics
    groups: dict[str, dict[Integer, Metrics]]
    """by group and value"""
    depth: Annotated[DepthRecord | None, Field(exclude_if=_is_none)] = None
    joint: tuple[JointRecord, ...] = ()
    contexts: Annotated[dict[Integer, Measurement], Field(exclude_if=operator.not_)] = Field(default_factory=dict)
    """of a language model, the mean losses of the tokens that are predicted from 1, 2 to 3, 4 to 7, … tokens"""

    def value(self, metric: str, groups: Mapping[str, int] = MappingProxyType({})) -> float | None:
        """Returns the loss or a metric, over the samples that have these group values; None if it was not measured or
        not finite."""
        if not groups:
            return self.loss if metric == "loss" else self.metrics.get(metric)
        if len(groups) == 1:
            ((group, value),) = groups.items()
            return self.groups.get(group, {}).get(value, {}).get(metric)
        return next((joint.metrics.get(metric) for joint in self.joint if joint.of == groups), None)


class Alternative(FileModel):
    """The step that the lowest loss of a split would have selected, with the selecting metric there and at its best,
    both on that split. Loss and accuracy often differ on generalization ("The Devil is in the Detail", section 4)."""

    split: str
    metric: str
    step: Count = Field(validation_alias="lowest_loss_step", serialization_alias="lowest_loss_step")
    value: Measurement = Field(validation_alias="there", serialization_alias="there")
    best_step: Count
    best: Annotated[float, AllowInfNan(False)]

    @property
    def is_worse(self) -> bool:
        """Whether the lowest loss would have selected worse weights."""
        return self.value is not None and rank(self.metric, self.value) < rank(self.metric, self.best)


class ClaimResult(FileModel):
    """A claim with the measurement that it is about; None if this run did not make it."""

    metric: str
    """as the recipe writes it: `test.accuracy[8]`"""
    value: Number
    deviation: Number | None
    at: dict[str, str]
    origin: str = Field(validation_alias="from", serialization_alias="from")
    measured: Measurement
    median: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """whether the claim is about the median over seeds"""
    has_no_group: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """whether the run measured the metric, but its split has no items of the claimed group"""
    text: Annotated[str, Field(exclude=True)] = ""
    """the claimed number as papers print it; empty in a record that is read"""

    @property
    def measured_text(self) -> str:
        """The measurement, or why there is none."""
        if self.measured is None:
            return "no such group" if self.has_no_group else "not run"
        return f"{self.measured:.3f}"


class Results(FileModel):
    """`results.json`: the measurements of a finished run."""

    best_step: Count | None
    """the step of the selected weights"""
    ended_early: Annotated[Count | None, Field(exclude_if=_is_none)] = None
    """the step after which the patience of the run was exhausted; the key is absent if the run took all its steps"""
    breakdown: str
    """the group that reports show first"""
    in_distribution: tuple[str, ...] = ("train", "iid")
    splits: dict[str, SplitResult]
    group_names: Annotated[dict[str, tuple[str, ...]], Field(exclude_if=operator.not_)] = {}
    """the texts of the values 0, 1, … of each group whose values are names"""
    selection: tuple[Alternative, ...] = ()
    claims: tuple[ClaimResult, ...] = ()

    def value(self, split: str, metric: str, groups: Mapping[str, int] = MappingProxyType({})) -> float | None:
        """Returns the loss or a metric of a split, as `SplitResult.value`."""
        result = self.splits.get(split)
        return None if result is None else result.value(metric, groups)


class RecordedRun(FileModel):
    """A line of the records of a table: a finished run, without its weights and its curve."""

    run: str
    """the name of its folder, which is that of its settings"""
    curve: str
    """the SHA-256 digest of `metrics.jsonl`; empty if there was none"""
    versions: VersionsRecord
    costs: dict[str, Amount]
    """what its timings say"""
    results: Results


# checkpoints


class ManifestRecord(FileModel):
    """`manifest.json` of a checkpoint: the SHA-256 digests of its files. A saved model has no state, and a model that
    is not divided among processes no files of their rows."""

    weights: str = Field(validation_alias=WEIGHTS, serialization_alias=WEIGHTS)
    state: Annotated[str | None, Field(validation_alias=STATE, serialization_alias=STATE, exclude_if=_is_none)] = None
    rows: Annotated[tuple[str, ...], Field(exclude_if=lambda rows: not rows)] = ()


class FileRecord(FileModel):
    """The size in bytes and the digest of a file."""

    size: Count
    sha256: str


class SavedRecord(FileModel):
    """`manifest.json` of a saved model: its format, and every other file."""

    format: int
    archlang: str
    files: dict[str, FileRecord]


class CheckpointState(BaseModel):
    """`state.pt`: what resuming needs besides the weights."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    optimizer: dict[str, Any]  # Any: torch's own state
    precision: dict[str, Any]  # Any: Fabric's own state
    random: dict[str, Any]  # Any: the states of the random number generators
    epoch: Count
    position: Count
    """batches of the epoch that were trained on"""
    place: Any = None  # Any: of numbers and texts, as the stream checks when it reads on
    """where the part of a stream begins that is the epoch; None at its beginning, and for data that are stored"""
    micro: Annotated[Count, Field(ge=1)] | None = None
    """samples that go through the model at a time; None for the whole batch"""
    evaluated: Count = Field(validation_alias="looked", serialization_alias="looked")
    """the last step with an evaluation"""
    history: tuple[EvaluationMetrics, ...]
    sizes: dict[str, Count]
    """bytes of each JSON lines file"""
    digests: dict[str, str] = {}
    """SHA-256 of these bytes; older checkpoints have none"""
    step: Count | None = None
    """None in older checkpoints"""
    trained: dict[str, Any] | None = None  # Any: tensors, which are checked when they are loaded
    """the trained weights by name, if the checkpoint's weights are their average"""
    carried: dict[str, Any] | None = None  # Any: as above
    """with `supervise = deep`, earlier `carried`, the examples that the loop has begun, and its states"""

    def stored(self) -> dict[str, Any]:  # Any: see above
        """Returns a dict of tensors and builtins, as `torch.load(weights_only=True)` accepts it."""
        fields = CheckpointState.model_fields
        values = {field.serialization_alias or name: getattr(self, name) for name, field in fields.items()}
        return {**values, "history": [line.model_dump() for line in self.history]}
