"""A failed allocation is known as such, by its type or by the words of torch, its libraries and CPython."""

import errno

import pytest

from archlang.errors.machine import is_out_of_memory, machine_error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("could not create a primitive"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        SystemError("error return without exception set"),
        SystemError("<function Lark.__init__ at 0x5620> returned NULL without setting an exception"),
        TypeError("Couldn't build proto file into descriptor pool: out of memory"),
        TypeError("Couldn't parse file content!"),
        RuntimeError("[enforce fail at inline_container.cc:892] . PytorchStreamWriter failed: allocation failed"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_failed_allocation_is_too_little_memory(error: Exception) -> None:
    assert is_out_of_memory(error)
    machine = machine_error(error)
    assert machine is not None
    assert machine.message == "there is not enough memory"


@pytest.mark.parametrize(
    "error",
    [RuntimeError("size mismatch"), ValueError("out of memory"), SystemError("bad argument"), TypeError("no number")],
)
def test_other_errors_are_not(error: Exception) -> None:
    assert not is_out_of_memory(error)
    assert machine_error(error) is None
