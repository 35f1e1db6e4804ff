"""Ways out of archlang: a module as a file that runs without it."""
