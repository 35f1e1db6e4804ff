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
from archlang.tasks.kit.ragged import Ragged
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
    assert task == Ctl(order="forward", test=Interval(9, 12))


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
