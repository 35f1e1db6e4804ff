"""The JSON files of a run folder, and the state of a checkpoint, as pydantic models that write and read them.

A number that is NaN or infinite is null in JSON and None when read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AllowInfNan,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    PlainSerializer,
    RootModel,
    model_validator,
)
from pydantic_core import core_schema

from archlang.files.limits import LARGEST_INTEGER
from archlang.plan.plan import BoundExtern, Plan, PublishedResult
from archlang.tasks.kit.metrics import rank
from archlang.types.statics import InstanceOf, Interval, StaticValue, Symbol

RUN, DATA, VERSIONS, RESULTS = "run.json", "data.json", "versions.json", "results.json"
VOCABULARY = "vocabulary.json"
METRICS, TIMINGS = "metrics.jsonl", "timings.jsonl"
WEIGHTS, STATE, MANIFEST = "weights.safetensors", "state.pt", "manifest.json"


def static_to_json(value: StaticValue) -> Any:  # Any: JSON
    """Returns a static as JSON that `static_from_json` reads back."""
    match value:
        case Symbol(text=text):
            return {"symbol": text}
        case Interval(low=low, high=high):
            return {"range": [low, high]}
        case InstanceOf(path=path):
            return {"instance": path}
        case tuple():
            return [static_to_json(item) for item in value]
    return value


def static_from_json(value: Any) -> StaticValue:  # Any: JSON
    """Returns the static that `static_to_json` wrote, or a static unchanged.

    Raises:
        ValueError: `value` is neither."""
    match value:
        case {"symbol": str(text)}:
            return Symbol(text)
        case {"range": [int(low), int(high)]}:
            return Interval(low, high)
        case {"instance": str(path)}:
            return InstanceOf(path)
        case list() | tuple():
            return tuple(static_from_json(item) for item in value)
        case int() | float() if not -LARGEST_INTEGER <= value <= LARGEST_INTEGER and not _is_finite_float(value):
            raise ValueError("the number is out of range")
        case bool() | int() | float() | str() | Symbol() | Interval() | InstanceOf():
            return value
    raise ValueError("it is not a static")


def _is_finite_float(value: float) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _finite_or_none(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _is_none(value: object) -> bool:
    return value is None


# pydantic cannot derive a schema from the recursive union.
Static = Annotated[
    StaticValue,
    GetPydanticSchema(
        lambda source, handler: core_schema.no_info_plain_validator_function(
            static_from_json, serialization=core_schema.plain_serializer_function_ser_schema(static_to_json)
        )
    ),
]
Statics = dict[str, Static]
Measurement = Annotated[float | None, BeforeValidator(_finite_or_none)]
Metrics = dict[str, Measurement]
Integer = Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
Count = Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]
Amount = Annotated[float, Field(ge=0, le=LARGEST_INTEGER)]
Number = Integer | Annotated[float, AllowInfNan(False)]
# The key is absent if there is no number.
# The SHA-256 digests of a user's own Python files by their names. The key is absent if there are none.
Digests = Annotated[dict[str, str], Field(exclude_if=lambda digests: not digests)]
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


class ExternRecord(FileModel):
    """A task or an optimizer, with its Python class and all its statics."""

    name: str
    python: str
    statics: Statics

    @classmethod
    def of(cls, extern: BoundExtern) -> ExternRecord:
        return cls(name=extern.name, python=extern.python, statics=dict(extern.statics))

    def extern(self) -> BoundExtern:
        return BoundExtern(self.name, self.python, self.statics)


class ClaimRecord(FileModel):
    """A published result that the recipe claims."""

    metric: str
    index: Integer | None
    value: Number
    deviation: Number | None
    at: Statics
    origin: str = Field(validation_alias="from", serialization_alias="from")
    median: Annotated[bool, Field(exclude_if=lambda median: not median)] = False
    """whether the result is the median over seeds, and not the mean"""

    @classmethod
    def of(cls, claim: PublishedResult) -> ClaimRecord:
        return cls(
            metric=claim.metric, index=claim.index, value=claim.value, deviation=claim.deviation, at=dict(claim.at),
            origin=claim.origin, median=claim.median,
        )  # fmt: skip

    def claim(self) -> PublishedResult:
        return PublishedResult(self.metric, self.index, self.value, self.deviation, self.at, self.origin, self.median)


def _upgraded(statics: Statics, prefix: str = "") -> Statics:
    """Adds the settings that a record from before they existed lacks: runs dropped the last incomplete batch, and
    `label_smoothing` was the weight of each other class."""
    smoothing, weight = f"{prefix}label_smoothing", f"{prefix}other_class_weight"
    if smoothing in statics and weight not in statics:
        statics = {**statics, smoothing: 0.0, weight: statics[smoothing]}
    return {f"{prefix}drop_last": True, **statics}


def _downgraded(statics: Statics, prefix: str = "") -> Statics:
    """Returns statics as `_upgraded` was given them, or unchanged if it gives no such statics."""
    smoothing, weight, drop_last = (
        f"{prefix}{name}" for name in ("label_smoothing", "other_class_weight", "drop_last")
    )
    if statics.get(smoothing) or not statics.get(drop_last):
        return statics
    kept = {name: value for name, value in statics.items() if name not in (weight, drop_last)}
    return {name: statics[weight] if name == smoothing else value for name, value in kept.items()}


class RunRecord(FileModel):
    """`run.json`: what a run is, apart from its program."""

    recipe: str
    model: str
    seed: Integer
    precision: Annotated[str, Field(pattern=r"^(32|bf16|16)$")]
    task: ExternRecord
    gives: dict[str, Count]
    train: Annotated[
        ExternRecord, AfterValidator(lambda train: train.model_copy(update={"statics": _upgraded(train.statics)}))
    ]
    settings: Annotated[Statics, AfterValidator(lambda settings: _upgraded(settings, "train."))]
    claims: tuple[ClaimRecord, ...]
    plugins: Digests = Field(default_factory=dict)
    track: Annotated[tuple[str, ...], Field(exclude_if=lambda names: not names)] = ()
    """the trackers that the run began with"""

    @classmethod
    def of(cls, plan: Plan, precision: str, track: Sequence[str] = ()) -> RunRecord:
        return cls(
            recipe=plan.recipe, model=plan.model, seed=plan.seed, precision=precision, task=ExternRecord.of(plan.task),
            gives=dict(plan.gives), train=ExternRecord.of(plan.train), settings=dict(plan.settings),
            claims=tuple(map(ClaimRecord.of, plan.claims)), plugins=plan.plugins.digests(),
            track=tuple(track),
        )  # fmt: skip

    def downgraded(self) -> RunRecord:
        """Returns the record without settings that are newer than some recorded runs, if the run is one of before."""
        train = self.train.model_copy(update={"statics": _downgraded(self.train.statics)})
        return self.model_copy(update={"train": train, "settings": _downgraded(self.settings, "train.")})


# data.json, versions.json


class SplitRecord(FileModel):
    """What a run records of a split: enough to notice that the data have changed."""

    items: Count
    groups: dict[str, list[Integer]]
    """the values of each group, sorted"""
    sha256: str


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


class ResumedRecord(SoftwareRecord):
    """The software and the machine that resumed a run at a step."""

    step: int


class VersionsRecord(SoftwareRecord):
    """`versions.json`: what a run began with, and each time that something else resumed it."""

    resumed: Annotated[tuple[ResumedRecord, ...], Field(exclude_if=lambda records: not records)] = ()


# metrics.jsonl, timings.jsonl


class StepMetrics(FileModel):
    """A line of `metrics.jsonl`: a logged training step."""

    step: Count
    loss: Measurement
    lr: Measurement
    gradient_norm: OptionalNumber
    mean_depth: OptionalNumber
    charges: Annotated[Metrics, Field(exclude_if=lambda charges: not charges)] = {}
    """what blocks add to the loss, before weighting, by name"""

    def scalars(self) -> dict[str, float]:
        """Returns the values that were measured, for curves."""
        values = {"loss": self.loss, "lr": self.lr, "gradient_norm": self.gradient_norm, "mean_depth": self.mean_depth}
        values |= {f"charges.{name}": charge for name, charge in self.charges.items()}
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
    spared: OptionalNumber
    """share of the steps of halting loops that were not computed because samples had halted"""
    memory: Annotated[Count | None, Field(exclude_if=_is_none)] = None
    """the largest number of bytes so far: allocated on the GPU, or of the whole process"""


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

    def value(self, metric: str) -> float | None:
        """Returns the loss or a metric; None if it was not measured or not finite."""
        return self.loss if metric == "loss" else self.metrics.get(metric)


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
    median: Annotated[bool, Field(exclude_if=lambda median: not median)] = False
    """whether the claim is about the median over seeds"""
    has_no_group: Annotated[bool, Field(exclude_if=lambda has_no_group: not has_no_group)] = False
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
    group_names: Annotated[dict[str, tuple[str, ...]], Field(exclude_if=lambda names: not names)] = {}
    """the texts of the values 0, 1, … of each group whose values are names"""
    selection: tuple[Alternative, ...] = ()
    claims: tuple[ClaimResult, ...] = ()

    def value(self, split: str, metric: str) -> float | None:
        """Returns a metric of a split; None if it was not measured."""
        result = self.splits.get(split)
        return None if result is None else result.metrics.get(metric)


# checkpoints


class ManifestRecord(FileModel):
    """`manifest.json`: the SHA-256 digests of a checkpoint's files."""

    weights: str = Field(validation_alias=WEIGHTS, serialization_alias=WEIGHTS)
    state: str = Field(validation_alias=STATE, serialization_alias=STATE)


class CheckpointState(BaseModel):
    """`state.pt`: what resuming needs besides the weights."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    optimizer: dict[str, Any]  # Any: torch's own state
    precision: dict[str, Any]  # Any: Fabric's own state
    random: dict[str, Any]  # Any: the states of the random number generators
    epoch: Count
    position: Count
    """batches of the epoch that were trained on"""
    micro: Annotated[Count, Field(ge=1)] | None = None
    """samples that go through the model at a time; None for the whole batch"""
    evaluated: Count = Field(validation_alias="looked", serialization_alias="looked")
    """the last step with an evaluation"""
    best: Annotated[float, AllowInfNan(False)] | None
    best_step: Count | None
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
    """with `supervise = carried`, the examples that the loop has begun, and its states"""

    def stored(self) -> dict[str, Any]:  # Any: see above
        """Returns a dict of tensors and builtins, as `torch.load(weights_only=True)` accepts it."""
        fields = CheckpointState.model_fields
        values = {field.serialization_alias or name: getattr(self, name) for name, field in fields.items()}
        return {**values, "history": [line.model_dump() for line in self.history]}
