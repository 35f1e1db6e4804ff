"""An agent checks, corrects, counts, compares and trains programs of a folder, by the client of the package `mcp`."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from archlang.plan.check import check
from archlang.play.agent_tools import AgentTools
from archlang.play.mistakes import RequestError
from tests.corpus.test_edits import SAFE, UNSAFE, failing_program

PROGRAM = """\
model small[d = 16](x: tokens[n]) -> logits[n, classes] {
    h = embed[d](x)
    return norm(h + attention[1](h)) |> linear[classes]
}

recipe quick {
    task  word_problem[train_size = 64, valid_size = 16, test_size = 16]
    model small
    train adamw[lr = 1e-3, batch = 16, steps = 2]
}
"""
Call = Callable[..., Any]  # Any: what a tool answers


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "served").mkdir()
    monkeypatch.chdir(tmp_path / "served")
    Path("small.arch").write_text(PROGRAM, encoding="utf-8")
    return Path.cwd()


def official_client() -> Any:  # Any: the package may be missing
    mcp = pytest.importorskip("mcp", reason="the package mcp is not installed")
    if not hasattr(mcp, "Client"):
        pytest.skip("the package mcp is older than 2.0")
    return mcp


def answers(client: Any, talk: Callable[[Call], Awaitable[None]]) -> None:  # Any: a transport or a server
    """Talks to a server by the official client, with a function that calls a tool and reads its answer."""
    mcp = official_client()

    async def run() -> None:
        async with mcp.Client(client) as session:

            async def call(tool: str, **arguments: object) -> Any:
                result = await session.call_tool(tool, arguments)
                assert not result.is_error, result
                return json.loads(result.content[0].text)

            await talk(call)

    asyncio.run(run())


TEN = ("E0101", "E0102", "E0202", "E0209", "E0214", "E0224", "E0231", "E0301", "E0306", "E0502")


def test_a_client_repairs_ten_broken_pages_by_the_edits_of_fix(folder: Path) -> None:
    assert {*TEN} <= {*SAFE}
    for code in TEN:
        Path(f"{code}.arch").write_text(failing_program(code), encoding="utf-8")

    async def talk(call: Call) -> None:
        for code in TEN:
            (mistake,) = await call("check", file=f"{code}.arch")
            assert (mistake["code"], mistake["file"]) == (code, f"{code}.arch")
            fixed = await call("fix", file=f"{code}.arch")
            assert ([each["code"] for each in fixed["corrected"]], fixed["left"]) == ([code], [])
            assert await call("check", file=f"{code}.arch") == []

    mcp = official_client()
    command = [sys.executable, "-m", "archlang", "mcp", "."]
    answers(mcp.StdioServerParameters(command=command[0], args=command[1:], cwd=str(folder)), talk)
    assert all(check(f"{code}.arch") == () for code in TEN)


def test_a_client_repairs_others_by_the_edits_of_their_diagnostics(folder: Path) -> None:
    """`fix` leaves corrections that are not sure; the client makes those that the diagnostics offer."""
    codes = [code for code in UNSAFE if code not in ("E0105", "E0408")][:10]

    async def talk(call: Call) -> None:
        for code in codes:
            text = failing_program(code)
            (mistake,) = await call("check", file="page.arch", text=text)
            for edit in sorted(mistake["edits"], key=lambda each: each["start"], reverse=True):
                text = text[: edit["start"]] + edit["text"] + text[edit["end"] :]
            assert await call("check", file="page.arch", text=text) == [], code

    answers(server(folder), talk)
    assert not Path("page.arch").exists()


def server(folder: Path) -> Any:  # Any: a server of the package
    official_client()
    from archlang.play.agent_tools import make_agent_server

    return make_agent_server(folder, 5)


def test_a_client_reads_the_language_and_trains_a_page(folder: Path) -> None:
    async def talk(call: Call) -> None:
        assert "E0501" in await call("explain", code="e0501")
        (block,) = await call("blocks", name="norm")
        assert block["signature"].startswith("block norm")
        assert (await call("card", file="small.arch"))["unique"] > 1_000
        assert await call("diff", before="small.arch", after="small.arch") == ["nothing changed"]
        trained = await call("train", file="small.arch", minutes=2)
        assert (trained["stopped"], trained["step"]) == (False, 2)
        assert await call("results") == {trained["folder"]: True}
        assert "test" in json.dumps(await call("results", run=trained["folder"]))
        wrong = await call("train", file="small.arch", sets={"train.lr": "-1"})
        assert wrong["diagnostics"][0]["code"] == "E0304"

    answers(server(folder), talk)


def test_a_client_reads_the_language_on_one_page(folder: Path) -> None:
    mcp = official_client()

    async def run() -> None:
        async with mcp.Client(server(folder)) as session:
            result = await session.read_resource("archlang://language")
            assert result.contents[0].text.startswith("# archlang")

    asyncio.run(run())


@pytest.mark.parametrize("name", ["../other.arch", "/etc/hostname", "link.arch", "inside/../../other.arch"])
def test_no_tool_names_a_file_outside_of_the_folder(name: str, folder: Path) -> None:
    (folder.parent / "other.arch").write_text(PROGRAM, encoding="utf-8")
    Path("link.arch").symlink_to(folder.parent / "other.arch")
    tools = AgentTools(folder, 1)
    calls: list[Callable[[], object]] = [
        lambda: tools.check(name), lambda: tools.fix(name), lambda: tools.fix(name, "x"), lambda: tools.card(name),
        lambda: tools.diff("small.arch", name), lambda: tools.train(name), lambda: tools.results(name),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(Exception, match="is outside of the folder"):
            call()
    with pytest.raises(RequestError, match="a name of a file has no NUL"):
        tools.check(f"{name}\0")
    weights = PROGRAM.replace("lr = 1e-3", f'lr = 1e-3, weights = "{name}"')
    assert [each["code"] for each in tools.check("own.arch", weights)] == ["E0316"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", ['"../other.tsv"', '["inside.tsv", "~/other.tsv"]'])
def test_no_setting_of_an_agent_is_a_path(value: str, folder: Path) -> None:
    calls = (AgentTools(folder, 1).train, AgentTools(folder, 1).card)
    for call in calls:
        with pytest.raises(RequestError, match=r"`sets` sets task.path to a text"):
            call("small.arch", sets={"task.path": value})


def test_numbers_are_settings(folder: Path) -> None:
    async def talk(call: Call) -> None:
        for value, text in ((32, "32"), (0.5, "0.5")):
            path = "model.d" if value == 32 else "train.lr"
            cards = [await call("card", file="small.arch", sets={path: each}) for each in (value, text)]
            assert cards[0] == cards[1]
            assert "unique" in cards[0]

    answers(server(folder), talk)


def test_what_is_no_run_or_time_is_an_error(folder: Path) -> None:
    tools = AgentTools(folder, 1)
    with pytest.raises(RequestError, match="`never` is no run"):
        tools.results("never")
    with pytest.raises(RequestError, match="cannot take -1 minutes"):
        tools.train("small.arch", minutes=-1)


def test_a_program_of_the_folder_uses_no_file_outside(folder: Path) -> None:
    (folder.parent / "other.arch").write_text(PROGRAM, encoding="utf-8")
    Path("own.arch").write_text('use "../other.arch"\n' + PROGRAM, encoding="utf-8")
    assert '"code": "E0233"' in json.dumps(AgentTools(folder, 1).check("own.arch"))


def test_python_of_a_users_own_does_not_run(folder: Path) -> None:
    Path("mine.py").write_text("open('ran', 'w')\n", encoding="utf-8")
    own = 'extern block own(h: seq[n, d]) -> seq[n, d] python "mine:Own"\n'
    Path("own.arch").write_text(own + PROGRAM.replace("attention[1](h)", "own(h)"), encoding="utf-8")
    tools = AgentTools(folder, 1)
    assert tools.check("own.arch") == []
    tools.card("own.arch")
    answer = tools.train("own.arch")
    assert isinstance(answer, dict)
    assert "runs only if you name its file" in answer["error"]
    assert not Path("ran").exists()
