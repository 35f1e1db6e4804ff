"""Only the Python files that a user names run, as they were then; their errors name file and line."""

import os
import sys
from pathlib import Path

import pytest

from archlang.plugins import NO_PLUGINS, PluginError, Plugins
from archlang.plugins.plugins import PluginFunction
from archlang.train.stop import Terminated


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_class_is_loaded_from_the_file_of_its_name() -> None:
    plugins = Plugins.read([write("a.py", "class A: pass"), write("b.py", "class B: pass")])
    loaded = plugins.load("b:B", "`b`")
    assert isinstance(loaded, type)
    assert loaded.__name__ == "B"
    assert plugins.load("package.b:B", "`b`") is loaded
    assert "b" not in sys.modules, "a plugin hides no module"


def test_reading_runs_nothing() -> None:
    plugins = Plugins.read([write("a.py", "open('ran', 'w').close()\nclass A: pass")])
    assert not os.path.exists("ran")
    plugins.load("a:A", "`a`")
    assert os.path.exists("ran")


@pytest.mark.parametrize("plugins", [NO_PLUGINS, Plugins((), "runs/x")])
def test_python_that_is_not_named_is_refused_with_the_option_to_add(plugins: Plugins) -> None:
    with pytest.raises(PluginError) as error:
        plugins.load("mine:Shift", "`shift`")
    path = os.path.join(plugins.folder, "mine.py")
    assert error.value.message == "`shift` is Python of its own, `mine:Shift`, which runs only if you name its file"
    assert error.value.remedy == (
        f"read {path}, and if you trust it, add `--plugin {path}`; in Python, pass `plugins=['{path}']`"
    )


def test_the_option_for_a_path_with_spaces_can_be_pasted() -> None:
    with pytest.raises(PluginError, match="add `--plugin 'my runs/mine.py'`"):
        Plugins((), "my runs").load("mine:Shift", "`shift`")


def test_an_imported_module_is_no_plugin() -> None:
    with pytest.raises(PluginError, match="add `--plugin os.py`"):
        NO_PLUGINS.load("os:system", "`evil`")


def test_what_runs_is_the_text_that_was_named() -> None:
    file = write("a.py", "class A: number = 1")
    plugins = Plugins.read([file])
    file.write_text("class A: number = 2")
    assert getattr(plugins.load("a:A", "`a`"), "number", None) == 1
    assert getattr(Plugins.read([file]).load("a:A", "`a`"), "number", None) == 2


def test_a_plugin_imports_those_that_were_named_before_it() -> None:
    first, second = write("first.py", "number = 1"), write("second.py", "import first\nnumber = first.number + 1")
    assert Plugins.read([first, second]).load("second:number", "`x`") == 2
    assert "first" not in sys.modules
    with pytest.raises(PluginError, match=r"second\.py:1 fails: ModuleNotFoundError: No module named 'first'"):
        Plugins.read([write("other/second.py", "import first")]).load("second:number", "`x`")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("class A: pass\n\n1 / 0\n", r"^a\.py:3 fails: ZeroDivisionError: division by zero: correct the file$"),
        ("class A: pass\nthis is no Python\n", r"^a\.py:2 fails: SyntaxError: invalid syntax"),
        ("class B: pass\n", r"^`a` names `A`, but a\.py does not define it: it has `B`$"),
        (
            "from torch.nn import Linear\n",
            r"a\.py does not define it: define it, or correct `python` of the signature$",
        ),
    ],
)
def test_a_file_without_the_class_is_an_error_at_its_line(text: str, complaint: str) -> None:
    with pytest.raises(PluginError, match=complaint):
        Plugins.read([write("a.py", text)]).load("a:A", "`a`")


def test_files_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(PluginError, match="gone.py is not a Python file"):
        Plugins.read(["gone.py"])
    Path("latin.py").write_bytes(b"# \xe9")
    with pytest.raises(PluginError, match="latin.py cannot be read: it is not UTF-8"):
        Plugins.read(["latin.py"])
    with pytest.raises(PluginError, match="a.py and other.a.py have the same name: rename one"):
        Plugins.read([write("a.py", ""), write("other/a.py", "")])
    assert len(Plugins.read(["a.py", Path("a.py").absolute()]).files) == 1


@pytest.mark.parametrize("paths", ["mine.py", True])
def test_plugins_are_a_list(paths: object) -> None:
    with pytest.raises(PluginError, match="pass a list of Python files"):
        Plugins.read(paths)  # type: ignore[arg-type]  # the mistake


def test_files_are_compared_with_recorded_digests(folder: Path) -> None:
    plugins = Plugins.read([write("a.py", "1")])
    run, copies = Path("run"), Path("run/plugins")
    write("run/plugins/a.py", "1")
    plugins.require_recorded(plugins.digests(), run, copies)
    plugins.require_recorded({}, run, copies)
    with pytest.raises(
        PluginError, match=r"run was made with .*, a\.py, .*: add `--plugin a\.py`; or .*run/plugins/a\.py"
    ):
        NO_PLUGINS.require_recorded(plugins.digests(), run, copies)
    write("run/plugins/a.py", "2")
    with pytest.raises(PluginError, match=r"a\.py is not the file that run was made with"):
        Plugins.read(["run/plugins/a.py"]).require_recorded(plugins.digests(), run, copies)
    with pytest.raises(PluginError, match=r"a\.py is not the file that run was made with: .*digest"):
        plugins.require_recorded({"a.py": "0"}, run, copies)
    with pytest.raises(PluginError, match=r"run was made without b\.py: leave out `--plugin b\.py`"):
        Plugins.read(["a.py", write("b.py", "")]).require_recorded(plugins.digests(), run)


@pytest.mark.parametrize("text", ["import sys\nsys.exit('no data')\n", "\nraise SystemExit('no data')\n"])
def test_an_exit_of_a_file_is_an_error_at_its_line(text: str) -> None:
    with pytest.raises(PluginError, match=r"^a\.py:2 fails: SystemExit: no data"):
        Plugins.read([write("a.py", text)]).load("a:A", "`a`")


@pytest.mark.parametrize("error", ["KeyboardInterrupt()", "Terminated(15)"])
def test_a_signal_while_a_file_is_imported_ends_the_command(error: str) -> None:
    file = write("a.py", f"from archlang.train.stop import Terminated\nraise {error}\n")
    for _ in range(2):  # The half-imported file is not left behind.
        with pytest.raises((KeyboardInterrupt, Terminated)):
            Plugins.read([file]).load("a:A", "`a`")


MINE = """\
number = 3


def half(x):
    return x / 2


def stop(error):
    raise error
"""


@pytest.fixture
def plugins() -> Plugins:
    return Plugins.read([write("mine.py", MINE)])


def test_a_function_is_called(plugins: Plugins) -> None:
    assert PluginFunction.load(plugins, "mine:half", "`rate = mine.half`")(3) == 1.5


def test_an_error_of_a_function_names_its_line(plugins: Plugins) -> None:
    half = PluginFunction.load(plugins, "mine:half", "`rate = mine.half`")
    with pytest.raises(PluginError, match=r"^mine\.py:5 fails: TypeError: unsupported operand"):
        half("x")
    with pytest.raises(PluginError, match=r"^mine\.py fails: TypeError: .*missing 1 required"):
        half()


def test_a_wrong_result_names_the_first_line_of_the_function(plugins: Plugins) -> None:
    half = PluginFunction.load(plugins, "mine:half", "`rate = mine.half`")
    assert half.wrong("returns nan", "return a number").message == "mine.py:4: `rate = mine.half` returns nan"


def test_a_value_that_cannot_be_called_is_refused(plugins: Plugins) -> None:
    with pytest.raises(PluginError, match=r"names `number` of mine\.py, which is not a function"):
        PluginFunction.load(plugins, "mine:number", "`rate = mine.number`")


def test_an_exit_of_a_function_is_an_error_at_its_line(plugins: Plugins) -> None:
    stop = PluginFunction.load(plugins, "mine:stop", "`rate = mine.stop`")
    with pytest.raises(PluginError, match=r"^mine\.py:9 fails: SystemExit: 3"):
        stop(SystemExit(3))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Terminated(15)])
def test_a_signal_during_a_function_ends_the_command(error: BaseException, plugins: Plugins) -> None:
    stop = PluginFunction.load(plugins, "mine:stop", "`rate = mine.stop`")
    with pytest.raises(type(error)):
        stop(error)
