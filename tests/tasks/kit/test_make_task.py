"""make_task instantiates archlang's tasks, and a user's own classes from a named file."""

from pathlib import Path

import pytest

from archlang.plugins import PluginError, Plugins
from archlang.tasks.ctl import Ctl
from archlang.tasks.kit import cache
from archlang.tasks.kit.make_task import check_vocabulary, make_task
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.task import Kind, spell
from archlang.types.statics import Interval, Symbol

PLUGIN = """
from dataclasses import dataclass
import numpy as np
from archlang.tasks.kit.split import Ragged
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, Unit

@dataclass(frozen=True)
class Even:
    size: int = 3
    kind = Kind.CLASSIFICATION
    vocabulary = ("zero", "one")
    breakdown = "length"
    in_distribution = ("train",)
    unit = Unit.SAMPLE
    metrics = ("accuracy",)
    version = 1

    def split_names(self):
        return ("train",)

    def generate(self, split, seed):
        x = Ragged.of([[1, 0]] * self.size)
        return Split({"x": x}, np.ones(self.size, dtype=np.int64), groups={"length": x.lengths})

class Half:
    kind = Kind.CLASSIFICATION

number = 3
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    place = tmp_path / "mine.py"
    place.write_text(PLUGIN)
    return place


def test_make_task_passes_the_statics() -> None:
    task = make_task("ctl", "archlang.tasks.ctl:Ctl", {"order": Symbol("forward"), "test": Interval(9, 12)})
    assert isinstance(task, Ctl)
    assert (task.order, task.test, task.train) == ("forward", Interval(9, 12), Interval(1, 5))


@pytest.mark.parametrize(
    "python",
    [
        "os:system", "subprocess:run", "mine:Even", "archlang.tasks.kit.cache:os", "archlang.tasks.kit.cache:load",
        "archlang.tasks.ctl:Interval", "archlang.tasks.nothing:Nothing", "archlang.tasks.ctl:", "archlang.cli.app:app",
    ],
)  # fmt: skip
def test_only_task_classes_are_imported_and_called(python: str, plugin: Path) -> None:
    with pytest.raises((TaskError, PluginError), match=r"is not the class of a task|is Python of its own"):
        make_task("mine", python, {})


def test_with_plugin_the_class_is_instantiated(plugin: Path) -> None:
    task = make_task("even", "mine:Even", {"size": 2}, Plugins.read([plugin]))
    assert (task.kind, len(task.generate("train", 0))) == (Kind.CLASSIFICATION, 2)
    check_vocabulary(task, "even", {"vocab": 2, "classes": 2})
    with pytest.raises(TaskError, match=r"`even` gives vocab = 3, and its class has 2 tokens: write `gives vocab = 2`"):
        check_vocabulary(task, "even", {"vocab": 3})


def test_a_changed_plugin_is_not_read_from_the_cache(plugin: Path, tmp_path: Path) -> None:
    def loaded(place: Path) -> str:
        task = make_task("even", "mine:Even", {}, Plugins.read([place]))
        return spell(task, cache.load("even", {}, task, "train", 0).inputs["x"][0])

    assert loaded(plugin) == "one zero"
    changed = tmp_path / "other" / "mine.py"
    changed.parent.mkdir()
    changed.write_text(PLUGIN.replace("[1, 0]", "[0, 0]"))
    assert loaded(changed) == "zero zero"


@pytest.mark.parametrize(
    ("python", "reason"),
    [
        ("mine:number", "names `mine:number`, which is not the class of a task"),
        ("mine:Half", "lacks vocabulary, breakdown, in_distribution, unit, metrics, version, split_names, generate"),
    ],
)
def test_an_unsuitable_class_is_refused(python: str, reason: str, plugin: Path) -> None:
    with pytest.raises(TaskError, match=reason):
        make_task("even", python, {}, Plugins.read([plugin]))


def test_a_failing_class_is_an_error_without_a_traceback(plugin: Path) -> None:
    with pytest.raises(TaskError, match=r"the class `mine:Even` of the task `even` fails: TypeError: .*colour"):
        make_task("even", "mine:Even", {"colour": 1}, Plugins.read([plugin]))


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("[[1, 0]]", "[[1, 7]]", "the field `x` has tokens from 1 to 7, and its vocabulary has 2"),
        (
            "np.ones(self.size, dtype=np.int64)",
            "np.ones(self.size)",
            "its targets are of float64, and classes are integers",
        ),
        (
            "np.ones(self.size, dtype=np.int64)",
            "np.ones(2, dtype=np.int64)",
            "`targets` has 2 items, and the field `x` has 3",
        ),
        ("np.ones(self.size, dtype=np.int64)", "-np.ones(self.size, dtype=np.int64)", "its targets are from -1 to -1"),
        ("x.lengths}", "x.lengths[:1]}", "the group `length` has 1 item"),
        ('groups={"length"', 'groups={"width"', "it has no group `length`"),
        ('metrics = ("accuracy",)', 'metrics = ("bits_per_byte",)', 'it has no `notes["bytes"]`'),
        ("return Split(", "return None and Split(", "it is a NoneType, not a Split"),
        ("Kind.CLASSIFICATION\n    vocabulary", "Kind.TAGGING\n    vocabulary", "those of `Kind.TAGGING`"),
        ('return ("train",)', "return ()", "`split_names` returns no tuple of texts"),
        ('return ("train",)', 'return ("test",)', "it has no split `train`"),
        ('breakdown = "length"', "breakdown = None", "`breakdown` is no text"),
        ('in_distribution = ("train",)', 'in_distribution = ("foo",)', "`in_distribution` names the split `foo`"),
    ],
)
def test_what_a_class_of_ones_own_says_and_generates_is_checked(
    plugin: Path, before: str, after: str, fault: str
) -> None:
    assert before in PLUGIN
    plugin.write_text(PLUGIN.replace(before, after, 1))
    with pytest.raises(TaskError) as raised:
        cache.load("even", {}, make_task("even", "mine:Even", {}, Plugins.read([plugin])), "train", 0)
    assert fault in raised.value.message
