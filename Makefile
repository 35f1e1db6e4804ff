.PHONY: check test test-kernels slow site screenshots

check:
	ruff check
	ruff format --check
	mypy

test:
	pytest

# The tests of numbers with the kernels that other CPUs choose. Only a CPU that has AVX-512 can run those that use it.
NUMERIC = tests/api tests/backend tests/blocks tests/elaborate tests/export tests/goldens tests/graph/passes \
	tests/semantics tests/train
test-kernels:
	ATEN_CPU_CAPABILITY=default MKL_ENABLE_INSTRUCTIONS=SSE4_2 ONEDNN_MAX_CPU_ISA=SSE41 pytest -n auto $(NUMERIC)
	ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 ONEDNN_MAX_CPU_ISA=AVX2 pytest -n auto $(NUMERIC)
	! grep -q avx512f /proc/cpuinfo || \
		ATEN_CPU_CAPABILITY=avx512 MKL_ENABLE_INSTRUCTIONS=AVX512 ONEDNN_MAX_CPU_ISA=AVX512_CORE pytest -n auto $(NUMERIC)

slow:
	pytest -m slow

# PLAYGROUND=true includes the playground, and links programs to it.
site:
	NO_MKDOCS_2_WARNING=1 python -m mkdocs build --strict -f website/mkdocs.yml

# Of the playground and VS Code; needs playwright, Chromium and code-server.
screenshots:
	python -m website.screenshots
