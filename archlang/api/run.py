"""A trained model in Python: its module, what it reads, its predictions, and what a notebook shows of it."""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any

from archlang.api import mistakes
from archlang.backend.architecture import Architecture
from archlang.backend.decode.sampling import Sampling
from archlang.compile import add_origin
from archlang.errors import ProgramError, Source
from archlang.errors.machine import needs_extra
from archlang.plan.plan import Plan
from archlang.plugins import NO_PLUGINS
from archlang.reports.inspection.inspect import Inspection, item_batch, source_lines, typed_input
from archlang.reports.inspection.inspect import inspect as inspect_batch
from archlang.reports.pictures.formats import print_svg
from archlang.reports.pictures.picture import draw
from archlang.reports.run_report import RunReport
from archlang.resolve.resolve import load_file
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind
from archlang.train.record import reading
from archlang.train.record.reading import read_text
from archlang.train.record.schemas import RUN, VOCABULARY, ModelRecord
from archlang.train.runs.evaluation import OpenedRun, explaining_stored_model, open_run, trained_module
from archlang.train.runs.inputs import FieldFormat, InputFormat, Item, pointing_fields
from archlang.train.runs.prediction import DEFAULT_BATCH, Likelihood, Prediction, likelihoods, predict_inputs, stream
from archlang.types.statics import StaticValue


class Run(OpenedRun):
    """A trained model from a run folder or a saved model: its `module`, in evaluation mode, with the weights of `step`,
    its `task`, and what it reads and answers."""

    @property
    def recipe(self) -> str | None:
        return self.record.recipe

    @property
    def settings(self) -> Mapping[str, StaticValue]:
        """Every setting of the run by its dotted path; `--set` has changed some of them."""
        return self.record.settings

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The text of each token that the model answers with."""
        return self.input_format.words

    @cached_property
    def plan(self) -> Plan:
        """The plan of the run: its graphs, its task, its optimizer, its claims.

        Raises:
            RunError: it was saved by an earlier version, without a plan."""
        return reading.read_plan(self.folder, [plugin.path for plugin in self.plugins.files])[0]

    def samples(self, split: str = "test") -> Split:
        """Returns the samples of a split of the task, for `predict`.

        Raises:
            RunError: the task has no such split."""
        return self.load([split])[split]

    def predict(
        self,
        inputs: Sequence[Item] | Split,
        *,
        batch: int = DEFAULT_BATCH,
        length: int | None = None,
        sampling: Sampling | None = None,
        samples: int = 1,
        stop: str = "",
    ) -> list[Prediction]:
        """Returns the prediction for each input, in order; with `samples`, so many for each.

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
            sampling: How the tokens of an answer are drawn, such as `archlang.Sampling(temperature=0.8, seed=1)`; the
                likeliest if it is None.
            stop: A written answer is cut before this text.

        Raises:
            RunError: an input does not fit the model, and the message names it; or a number is less than 1."""
        with explaining_input_format(self):
            return predict_inputs(
                self.module, self.input_format, inputs, self.device,
                batch=batch, length=length, sampling=sampling, samples=samples, stop=stop,
            )  # fmt: skip

    def stream(
        self, prompt: Item, *, length: int | None = None, sampling: Sampling | None = None, stop: str = ""
    ) -> Iterator[str]:
        """Yields the text with which a language model continues a prompt, piece by piece as it is written.

            for piece in run.stream("The sky", length=100, sampling=archlang.Sampling(temperature=0.8)):
                print(piece, end="", flush=True)

        The arguments are those of `predict`, which answers the same text.

        Raises:
            RunError: the model continues no texts, or the prompt has an unknown token."""
        with explaining_input_format(self):
            yield from stream(
                self.module, self.input_format, prompt, self.device, length=length, sampling=sampling, stop=stop
            )

    def likelihoods(self, texts: Sequence[tuple[Item, Item]], *, batch: int = DEFAULT_BATCH) -> list[Likelihood]:
        """Returns how likely a language model finds the continuations of prompts: for each the `logarithm` of its
        probability, its number of `tokens`, and whether the model would write it, `is_likeliest`.

            run.likelihoods([("The sky is", " blue"), ("The sky is", " green")])

        Raises:
            RunError: the model is no language model, or a text has an unknown token or no continuation."""
        with explaining_input_format(self):
            return likelihoods(self.module, self.input_format, texts, self.device, batch)

    def lm_eval(self, *, length: int | None = None, batch: int = DEFAULT_BATCH) -> Any:  # Any: of a package
        """Returns a language model for EleutherAI's harness of evaluations.

            lm_eval.simple_evaluate(run.lm_eval(), tasks=["lambada_openai"])

        It reads `length` tokens at most, by default as many as the windows of the task.

        Raises:
            MachineError: `lm-eval` is not installed.
            RunError: the model is no language model."""
        with needs_extra("lm-eval"):
            from archlang.api.harness import HarnessModel
        return HarnessModel(self, length, batch)

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
            program = self.folder / reading.RECIPE
            lines = {} if self.recipe is None else source_lines(program, self.recipe)
            return inspect_batch(self.module, self.input_format, batch, title, lines)

    def report(self) -> RunReport:
        """Returns the report of the run: its curves, metrics and claims. A saved model has no curves.

        Raises:
            RunError: a file of the run is missing or damaged."""
        return RunReport.read(self.folder)

    def __repr__(self) -> str:
        model = self.module.program.graph.name
        return f"<{model} on {self.bound_task.name}, from {self.folder}, step {self.step}>"

    def _repr_html_(self) -> str | None:
        return self.module._repr_html_() if reading.is_saved(self.folder) else self.report()._repr_html_()


def explaining_input_format(run: Run) -> AbstractContextManager[None]:
    """Raises a RunError where a saved model has a vocabulary of another model, or a run folder such a graph."""
    return explaining_stored_model(run.folder / (VOCABULARY if reading.is_saved(run.folder) else reading.GRAPH_AT_TEST))


def load_run(
    folder: str | Path, checkpoint: str | int = "best", *, device: str = "cpu", plugins: Iterable[str | Path] = ()
) -> Run:
    """Returns the trained model of a run folder, or of a saved model that was saved from a run.

    Args:
        checkpoint: `best`, the weights that the run selects by its validation metric; `last`; or a step whose
            checkpoint is kept. A saved model has one set of weights.
        device: As after `--device`.
        plugins: The Python files of the user's own that the run was trained with. They are run: read them first.

    Raises:
        RunError: the folder is no run folder or saved model, is damaged, or has no such checkpoint.
        PluginError: a plugin cannot be imported, or the run was trained with others."""
    opened = open_run(Path(folder), checkpoint=checkpoint, device=device, plugins=plugins)
    _add_origin(opened.module, opened.folder, opened.record)
    opened.module.eval()
    return Run(**{each.name: getattr(opened, each.name) for each in fields(opened)})


def load_module(folder: Path, checkpoint: str | int = "best", plugins: Iterable[str | Path] = ()) -> Architecture:
    """Returns the trained module of a run folder or of a saved model, with arguments as of `load_run`. The task needs
    no plugin.

    Raises:
        RunError, PluginError: as `load_run`."""
    reading.require_intact(folder)
    record, graph, plugins = reading.read_record(folder, RUN, ModelRecord), reading.read_graph(folder), tuple(plugins)
    trusted = reading.read_plugins(folder, record, plugins) if plugins or graph.has_own_python else NO_PLUGINS
    module, _ = trained_module(folder, record, checkpoint, graph, trusted)
    _add_origin(module, folder, record)
    return module.eval()


def _add_origin(module: Architecture, folder: Path, record: ModelRecord) -> None:
    """Adds the program of a folder, and the files that it uses, if it has a program. A program of another version of
    archlang may have errors by now: then the files that it uses are unknown."""
    if not reading.has(folder, reading.RECIPE):
        return
    path = folder / reading.RECIPE
    try:
        program, *used = load_file(path).sources
    except ProgramError:
        program, used = Source(str(path), read_text(folder, reading.RECIPE)), []
    add_origin(module, program, used, record.settings, record.recipe)


def picture(model: Architecture | Run) -> str:
    """Returns the picture of a module, or of a run's module, as HTML: an image of the boxes of its program, which a
    notebook shows for a cell that ends with the module. `archlang viz` draws pictures of programs that fold.

    Raises:
        SavedModelError: it is no model."""
    module = model.module if isinstance(model, Run) else model
    if not isinstance(module, Architecture):
        raise mistakes.not_a_model(type(module).__name__)
    origin = module.program.origin
    svg = print_svg(draw(module.program.graph if origin is None else origin.graph))
    data = base64.b64encode(str(svg).encode()).decode()
    return f'<img alt="model {module.program.graph.name}" src="data:image/svg+xml;base64,{data}">'


def inspect(model: Architecture | Run, item: Any) -> Inspection:  # Any: an input, as `Run.predict` takes it
    """Returns what a model does with one input: its answers, and a panel for each of its attention maps, gates, halting
    probabilities, pointers and memories.

    A notebook shows the page of `archlang inspect`; `html()` returns it, and `panels` are the numbers.

    Args:
        model: A run, whose inputs may be texts; or a module, whose inputs are token ids and numbers.
        item: The input, or samples of the task, of which the first is shown.

    Raises:
        RunError: the input does not fit the model."""
    if isinstance(model, Run):
        return model.inspect(item)
    if not isinstance(model, Architecture):
        raise mistakes.not_a_model(type(model).__name__)
    if isinstance(item, Split):
        raise mistakes.samples_need_a_run()
    input_format = _format_without_task(model)
    return inspect_batch(model, input_format, typed_input(model, input_format, item), "input")


def _format_without_task(module: Architecture) -> InputFormat:
    fields = tuple(
        FieldFormat(name=field.name, words=tuple(map(str, range(field.vocabulary))))
        if field.vocabulary is not None
        else FieldFormat(name=field.name, size=0 if field.type.feature is None else field.type.feature.constant)
        for field in module.program.inputs
    )
    points_from, points_at = pointing_fields(module, [field.name for field in fields])
    kind = Kind.POINTING if points_at else Kind.TAGGING if module.program.result.lengths else Kind.CLASSIFICATION
    return InputFormat(kind=kind, fields=fields, words=(), points_at=points_at, points_from=points_from)
