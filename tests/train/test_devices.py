"""Devices and precisions are checked before a run; random generators are restored exactly."""

import random
from datetime import timedelta

import numpy as np
import pytest
import torch
from torch._C._distributed_c10d import TCPStore

from archlang.train import devices
from archlang.train.devices import (
    explaining_out_of_memory,
    find_device,
    fixed_randomness,
    leaving_process_group,
    make_fabric,
    peak_flops,
    random_state,
    restore_random_state,
    select_device,
)
from archlang.train.record.mistakes import RunError, RunMachineError

CPU = torch.device("cpu")


def test_the_cpu_is_always_available_and_auto_uses_a_gpu_if_there_is_one() -> None:
    assert make_fabric(CPU).device == select_device("cpu") == make_fabric(CPU, "bf16").device == CPU
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert make_fabric(find_device()).device.type == select_device("auto").type == expected


MISSING = ("cuda:99", *(() if torch.cuda.is_available() else ("cuda", "cuda:0")))


@pytest.mark.parametrize("device", [*MISSING, "gpu", "cuda:x", "cuda:", "cpu:1", "", "cuda:-1"])
def test_what_is_no_device_or_missing_is_named(device: str) -> None:
    with pytest.raises(RunError, match=f"no device `{device}`" if device in MISSING else "is not a device"):
        find_device(device)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_an_out_of_memory_error_names_the_settings_to_lower_and_others_pass(error: Exception) -> None:
    with pytest.raises(RunError, match=r"batch of 512") as caught, explaining_out_of_memory(CPU, 512):
        raise error
    assert "train.batch" in caught.value.remedy
    with pytest.raises(RuntimeError, match="shapes"), explaining_out_of_memory(CPU, 512):
        raise RuntimeError("shapes")


@pytest.mark.parametrize(("gpu", "peak"), [("NVIDIA H100 80GB HBM3", 989.4e12), ("NVIDIA Unknown 1", None)])
def test_the_peak_of_a_gpu_is_that_of_its_name(gpu: str, peak: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: gpu)
    assert peak_flops(torch.device("cuda"), "bf16") == peak
    assert peak_flops(CPU, "bf16") is None


def draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.random()), torch.rand(1).item()


def test_a_lost_process_is_a_fault_of_the_surroundings_that_names_rank_and_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(devices, "_has_process_group", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 3)
    monkeypatch.setattr(torch.distributed, "destroy_process_group", lambda: None)

    @leaving_process_group
    def failing(message: str) -> None:
        raise RuntimeError(message)

    with pytest.raises(RunMachineError, match=r"rank 3 on .* lost the others: Connection closed by peer") as error:
        failing("[/pytorch/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:7555. GLHF!")
    assert "it resumes from the last checkpoint" in error.value.remedy
    with pytest.raises(RunMachineError, match=r"rank 3 on .* lost the others: Application timeout"):
        failing("Application timeout caused pair closure")
    with pytest.raises(RuntimeError, match="a fault of another kind"):
        failing("a fault of another kind")


def test_processes_that_do_not_find_each_other_are_a_fault_of_the_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "2")

    @leaving_process_group
    def joining() -> None:
        TCPStore("127.0.0.1", 9, 2, is_master=False, timeout=timedelta(seconds=0.1))

    with pytest.raises(RunMachineError, match="rank 2 on .* lost the others: "):
        joining()


def test_every_generator_is_restored() -> None:
    random.gauss(0, 1)
    np.random.standard_normal()
    state = random_state(CPU)
    drawn = draw()
    restore_random_state(state, CPU)
    assert drawn == draw()


def test_fixed_randomness_is_always_the_same_and_changes_no_generator() -> None:
    state = random_state(CPU)
    expected = draw()
    restore_random_state(state, CPU)
    fixed = []
    for _ in range(2):
        with fixed_randomness(CPU):
            fixed.append(draw())
    assert fixed[0] == fixed[1]
    assert draw() == expected
