"""`python -m archlang` is the command `archlang`."""

from archlang.cli.main import main

if __name__ == "__main__":
    main()
