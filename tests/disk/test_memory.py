"""The free memory is the least of what the system, the control group and the limit of the process leave."""

import subprocess
import sys
from pathlib import Path

import pytest

from archlang.disk import memory


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system with 1000 kB available and 24 kB of swap, whose process is in a group without limit."""
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:  1000 kB\nSwapFree: 24 kB\n")
    (tmp_path / "cgroup").write_text("0::/job/step\n")
    (tmp_path / "groups" / "job" / "step").mkdir(parents=True)
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_OWN_GROUP", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(memory, "_below_address_limit", lambda: None)
    return tmp_path


def limit(group: Path, most: str, used: int, cached: int) -> None:
    (group / "memory.max").write_text(f"{most}\n")
    (group / "memory.current").write_text(f"{used}\n")
    (group / "memory.stat").write_text(f"anon 7\nactive_file {cached}\ninactive_file 1\n")


def test_without_a_limit_the_system_decides(machine: Path) -> None:
    limit(machine / "groups" / "job" / "step", "max", 5, 5)
    assert memory.available_memory() == 1024 * 1024


def test_a_group_around_the_own_one_decides_and_its_caches_are_free(machine: Path) -> None:
    limit(machine / "groups" / "job" / "step", "max", 5, 5)
    limit(machine / "groups" / "job", "5000", 3000, 99)
    assert memory.available_memory() == 5000 - 3000 + 99 + 1


def test_groups_of_version_1_decide_also_where_the_own_one_is_the_root_of_a_container(machine: Path) -> None:
    (machine / "cgroup").write_text("4:cpu,cpuacct:/x\n5:memory:/docker/1f\n0::/\n")
    group = machine / "groups" / "memory"
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text("7000\n")
    (group / "memory.usage_in_bytes").write_text("4000\n")
    (group / "memory.stat").write_text("active_file 5\ntotal_active_file 20\ntotal_inactive_file 3\n")
    assert memory.available_memory() == 7000 - 4000 + 20 + 3
    (group / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert memory.available_memory() == 1024 * 1024


def test_the_limit_of_the_process_decides(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_below_address_limit", lambda: 17)
    assert memory.available_memory() == 17


def test_a_system_that_does_not_say_is_none(machine: Path) -> None:
    (machine / "meminfo").unlink()
    assert memory.available_memory() is None


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is reset on Linux only")
def test_the_peak_counts_from_the_reset() -> None:
    # In a process of its own: a large one may keep what it frees.
    program = (
        "from archlang.disk import memory; large = b'x' * 2**26; peak = memory.peak_memory(); del large;"
        "memory.reset_peak_memory(); print(peak > 2**26, memory.peak_memory() < peak - 2**25)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "True True\n"
