.PHONY: check test slow site screenshots

check:
	ruff check
	ruff format --check
	mypy

test:
	pytest

slow:
	pytest -m slow

# PLAYGROUND=true includes the playground, and links programs to it.
site:
	NO_MKDOCS_2_WARNING=1 python -m mkdocs build --strict -f website/mkdocs.yml

# Of the playground and VS Code; needs playwright, Chromium and code-server.
screenshots:
	python -m website.screenshots
