.PHONY: check test slow

check:
	ruff check
	ruff format --check
	mypy

test:
	pytest

slow:
	pytest -m slow
