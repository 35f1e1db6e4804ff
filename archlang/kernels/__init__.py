"""Fast forms for one kind of machine: Triton on a GPU, oneDNN and few passes on a processor. Each has a plain twin."""
