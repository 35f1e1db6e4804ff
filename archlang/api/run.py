"""A trained model in Python: its module, what it reads, and its predictions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from archlang.api import mistakes
from archlang.api.saved_folder import SavedModel, is_saved, read_saved
from archlang.backend.architecture import Architecture
from archlang.compile import add_origin
from archlang.diagnostics import ProgramError
from archlang.names.resolve import load_file
from archlang.pages.inspection.inputs import item_batch, typed_input
from archlang.pages.inspection.inspect import inspect, source_lines
from archlang.pages.inspection.inspection import Inspection
from archlang.pages.reports.run_report import RunReport
from archlang.plan.plan import Plan
from archlang.plugins import NO_PLUGINS, Plugins
from archlang.record.reading import (
    GRAPH_AT_TEST,
    RECIPE,
    read_graph,
    read_plan,
    read_plugins,
    read_record,
    read_run,
    read_text,
)
from archlang.record.schemas import RUN, VOCABULARY, ExternRecord, RunRecord
from archlang.runs.evaluation import OpenedRun, open_run, trained_module
from archlang.runs.inputs import InputFormat, Item
from archlang.runs.prediction import DEFAULT_BATCH, Prediction, predict_inputs
from archlang.runs.stored_model import explaining_stored_model
from archlang.source import Source
from archlang.tasks.kit.make_task import make_task
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Task
from archlang.train.devices import select_device
from archlang.types.statics import StaticValue


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A trained model from a run folder or a saved model."""

    folder: Path
    module: Architecture
    """in evaluation mode, with the weights of `step`"""
    recipe: str | None
    step: int | None
    task_record: ExternRecord
    """the task with all its statics"""
    settings: Mapping[str, StaticValue]
    """every setting of the run by its dotted path; `--set` has changed some of them"""
    device: torch.device
    _source: OpenedRun | SavedModel
    _plugins: tuple[str | Path, ...] = ()

    @property
    def input_format(self) -> InputFormat:
        """The fields that the model reads, and what it answers."""
        if isinstance(self._source, OpenedRun):
            return self._source.input_format
        assert self._source.input_format is not None
        return self._source.input_format

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The text of each token that the model answers with."""
        return self.input_format.words

    @cached_property
    def task(self) -> Task:
        """The task of the run.

        Raises:
            PluginError: it is a task of the user's own, and `load_run` was not given its plugin."""
        if isinstance(self._source, OpenedRun):
            return self._source.task
        record = self.task_record
        return self.input_format.bind(
            make_task(record.name, record.python, record.statics, Plugins.read(self._plugins))
        )

    @cached_property
    def plan(self) -> Plan:
        """The plan of the run: its graphs, its task, its optimizer, its claims.

        Raises:
            SavedModelError: it was loaded from a saved model."""
        self._require_run("plan")
        return read_plan(self.folder, self._plugins)[0]

    def samples(self, split: str = "test") -> Split:
        """Returns the samples of a split of the task, for `predict`.

        Raises:
            RunError: the task has no such split.
            SavedModelError: it was loaded from a saved model."""
        self._require_run("data")
        assert isinstance(self._source, OpenedRun)
        return self._source.load([split], None)[split]

    def predict(
        self, inputs: Sequence[Item] | Split, *, batch: int = DEFAULT_BATCH, length: int | None = None
    ) -> list[Prediction]:
        """Returns the prediction for each input, in order.

            run.predict(["10 a b", "11 b"])
            run.predict([{"source": "jump twice"}])
            run.predict(run.samples("test").select([0, 1, 2]))

        Args:
            inputs: For each input a text, its token ids, or a value for each field, in order or by name; or samples of
                the task. Marks that the task declares may be omitted. A model that writes its
                answer reads the other fields, and writes until its end.
            batch: How many inputs are read at a time.
            length: The number of tokens to write, for answers without an end. A language model continues its inputs by
                as many tokens.

        Raises:
            RunError: an input does not fit the model, and the message names it; or a number is less than 1."""
        with explaining_input_format(self):
            return predict_inputs(self.module, self.input_format, inputs, self.device, batch=batch, length=length)

    def inspect(self, item: Item | Split) -> Inspection:
        """Returns what the model does with an input, or with the first sample of a split: the panels of
        `archlang inspect`.

        Raises:
            RunError: the input does not fit the model."""
        with explaining_input_format(self):
            if isinstance(item, Split):
                batch, title = item_batch(self.module, item, 0), "sample"
            else:
                batch = typed_input(self.module, self.input_format, item)
                title = item if isinstance(item, str) else "input"
            lines = {}
            if isinstance(self._source, OpenedRun) and self.recipe is not None:
                lines = source_lines(self.folder / RECIPE, self.recipe)
            return inspect(self.module, self.input_format, batch, title, lines)

    def report(self) -> RunReport:
        """Returns the report of the run: its curves, metrics and claims.

        Raises:
            SavedModelError: it was loaded from a saved model."""
        self._require_run("report")
        return RunReport.read(self.folder)

    def __repr__(self) -> str:
        step = "" if self.step is None else f", step {self.step}"
        model = self.module.program.graph.name
        return f"<{model} on {self.task_record.name}, from {self.folder}{step}>"

    def _repr_html_(self) -> str | None:
        if isinstance(self._source, OpenedRun):
            return self.report()._repr_html_()
        return self.module._repr_html_()

    def _require_run(self, thing: str) -> None:
        if not isinstance(self._source, OpenedRun):
            raise mistakes.has_no(self.folder, thing)


def explaining_input_format(run: Run) -> AbstractContextManager[None]:
    """Raises a RunError where a saved model has a vocabulary of another model, or a run folder such a graph."""
    return explaining_stored_model(run.folder / (VOCABULARY if is_saved(run.folder) else GRAPH_AT_TEST))


def load_run(
    folder: str | Path, checkpoint: str | int = "best", *, device: str = "cpu", plugins: Iterable[str | Path] = ()
) -> Run:
    """Returns the trained model of a run folder, or of a saved model that was saved from a run.

    Args:
        checkpoint: `best`, the weights that the run selects by its validation metric; `last`; or a step whose
            checkpoint is kept. A saved model has one set of weights, which is `best`.
        device: As after `--device`.
        plugins: The Python files of the user's own that the run was trained with. They are run: read them first.

    Raises:
        RunError: the folder is no run folder, is damaged, or has no such checkpoint.
        PluginError: a plugin cannot be imported, or the run was trained with others.
        SavedModelError: the saved model is damaged, or another checkpoint than `best` of it is asked for."""
    folder, plugins = Path(folder), tuple(plugins)
    if is_saved(folder):
        if checkpoint != "best":
            raise mistakes.one_set_of_weights(folder, checkpoint)
        saved = read_saved(folder, plugins)
        record, torch_device = saved.record, select_device(device)
        if saved.input_format is None or record.task is None:
            raise mistakes.no_input_format(folder)
        return Run(
            folder, saved.module.to(torch_device), record.recipe, record.step, record.task, record.settings,
            torch_device, saved, plugins,
        )  # fmt: skip
    opened = open_run(folder, checkpoint=checkpoint, device=device, plugins=plugins)
    run = read_record(folder, RUN, RunRecord)
    _add_origin(opened.module, folder, run)
    return Run(
        folder, opened.module.eval(), opened.recipe, opened.step, run.task, run.settings, opened.device, opened, plugins
    )


def load_module(folder: Path, checkpoint: str = "best", plugins: Iterable[str | Path] = ()) -> Architecture:
    """Returns the trained module of a run folder or of a saved model, with arguments as of `load_run`. The task needs
    no plugin.

    Raises:
        RunError, PluginError, SavedModelError: as `load_run`."""
    if is_saved(folder):
        if checkpoint != "best":
            raise mistakes.one_set_of_weights(folder, checkpoint)
        return read_saved(folder, plugins).module
    run, graph, plugins = read_run(folder)[0], read_graph(folder), tuple(plugins)
    trusted = read_plugins(folder, run, plugins) if plugins or graph.has_own_python else NO_PLUGINS
    module, _ = trained_module(folder, run, checkpoint, graph, trusted)
    _add_origin(module, folder, run)
    return module.eval()


def _add_origin(module: Architecture, folder: Path, run: RunRecord) -> None:
    program, *used = _sources(folder)
    add_origin(module, program, used, run.settings, run.recipe)


def _sources(folder: Path) -> Sequence[Source]:
    """Returns the program of a run, and the files that it uses. A program of another version of archlang may have
    errors by now: then the files that it uses are unknown."""
    try:
        return load_file(folder / RECIPE).sources
    except ProgramError:
        return [Source(str(folder / RECIPE), read_text(folder, RECIPE))]
