"""What became of a case: equal to an undisturbed run, a named error and equal after a rerun, or a fault of archlang."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count

from tests.faults.shim import Orders
from tests.faults.workshop import Case, End, Workshop, contents

EQUAL = "equal"
RERUN = "equal after a rerun"
KILLED = "killed, equal after a rerun"
REFUSED = "refused"
FAULT = "fault"
NOT_RUN = "not run"
OUTCOMES = (EQUAL, RERUN, KILLED, REFUSED, FAULT, NOT_RUN)

# Exit codes of errors with a message: of files and data, of the command line, of the surroundings.
_INTERNAL = 70
_SECRET = "precious"
# Where torch does without a part of itself, such as a profiler, it logs a traceback.
_TORCHS_LOG = re.compile(r"^[WE][0-9]{4} .*/torch/.*\] .*$", re.MULTILINE)
_LEFT = "is left over"


@dataclass(frozen=True)
class Verdict:
    """The outcome of a case. A fault has a reason."""

    outcome: str
    reason: str = ""


@dataclass(frozen=True)
class Trial:
    """One case: the class that it belongs to, its name, and what judges it."""

    group: str
    name: str
    judge: "Callable[[Bench], Verdict]"


@dataclass(frozen=True)
class Bench:
    """A workshop, the cases that others begin with, and the record of an undisturbed run.

    Attributes:
        fresh: A program whose data is in the cache, without a run.
        finished: The same with a finished run."""

    shop: Workshop
    fresh: Case
    finished: Case

    @staticmethod
    def of(shop: Workshop) -> "Bench":
        """Makes the cases that others begin with."""
        fresh, finished = shop.make_case("fresh"), shop.make_case("finished")
        for case in (fresh, finished):
            end = shop.run(case, *case.train())
            assert end.code == 0, end.text
        fresh.remove_run()
        return Bench(shop, fresh, finished)

    @cached_property
    def begun(self) -> Case:
        """A case whose run was killed after its first checkpoint."""
        case = self.shop.make_case("begun")
        for renames in count(1):
            self.shop.run(case, *case.train(), orders=Orders(kinds=("rename",), number=renames, action="kill"))
            if case.has_checkpoint():
                break
            case.remove_run()
        return case

    def judge_training(
        self, case: Case, end: End, *, may_die: bool = False, outside: Mapping[str, bytes] | None = None
    ) -> Verdict:
        """Judges a training that suffered a fault, and reruns it if it did not succeed.

        Args:
            may_die: The process may end without a word, as of a signal.
            outside: What the files outside must be; by default as they were made."""
        reason = _shame(end, may_die) or self._touched(case, outside)
        if reason:
            return Verdict(FAULT, reason)
        difference = self.difference(case)
        if end.code == 0 and not difference:
            return Verdict(EQUAL)
        if end.code == 0 and not difference.endswith(_LEFT):
            return Verdict(FAULT, f"ended with 0, but {difference}: {_last_line(end.text)}")
        again = self.shop.run(case, *case.train())
        reason = _shame(again) or self._touched(case, outside)
        if not reason and again.code:
            reason = f"the rerun ends with {again.code}: {_last_line(again.text)}"
        reason = reason or self.difference(case)
        if reason:
            return Verdict(FAULT, f"after “{_last_line(end.text)}”, the rerun: {reason}")
        return Verdict(KILLED if end.code < 0 else RERUN)

    def difference(self, case: Case, without: str = "") -> str:
        """Returns how the run differs from an undisturbed one; empty if it does not.

        Args:
            without: A file that may differ."""
        expected, record = self._expected(case), case.record()
        names = sorted(name for name in {*expected, *record} if expected.get(name) != record.get(name))
        if names := [name for name in names if name != without]:
            states = {True: "differs", False: "is missing" if names[0] in expected else _LEFT}
            return f"{names[0]} {states[names[0] in expected and names[0] in record]}"
        return f"{left[0]} {_LEFT}" if (left := case.temporaries()) else ""

    def _expected(self, case: Case) -> dict[str, bytes]:
        """Returns the record of the undisturbed run, as it would be in the folder of a case."""
        old, new = str(self.finished.folder).encode(), str(case.folder).encode()
        return {name: content.replace(old, new) for name, content in self.finished.record().items()}

    def _touched(self, case: Case, outside: Mapping[str, bytes] | None) -> str:
        expected = contents(self.finished.outside) if outside is None else outside
        return "" if contents(case.outside) == expected else "a file outside was touched"

    def judge_look(
        self, case: Case, end: End, outside: Mapping[str, bytes], *, may_die: bool = False, may_print: bool = False
    ) -> Verdict:
        """Judges a command on a run: it succeeds or ends with an error, and touches nothing outside.

        Args:
            may_print: The command may print a file outside."""
        reason = _shame(end, may_die) or self._touched(case, outside)
        if not reason and not may_print and _SECRET in end.text:
            reason = "a line of a file outside was printed"
        if reason:
            return Verdict(FAULT, reason)
        return Verdict(REFUSED if end.code else EQUAL)


def _shame(end: End, may_die: bool = False) -> str:
    """Returns what no command may do: hang, leave processes, or end without naming an error. Empty if it did not."""
    if end.hung:
        return "it hangs"
    if end.left:
        return f"processes are left: {end.left}"
    text = _TORCHS_LOG.sub("", end.text)
    if "Traceback" in text or end.code == _INTERNAL or "internal error" in text:
        return f"internal error: {_last_line(end.text)}"
    if end.code < 0:
        return "" if may_die else f"ended by signal {-end.code}"
    if end.code and "rror" not in end.text:
        return f"ended with {end.code} and no error: {_last_line(end.text)}"
    return ""


def _last_line(text: str) -> str:
    """Returns the line that says most: the error's, or else the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line]
    return (errors or lines or ["no output"])[-1][:300]
