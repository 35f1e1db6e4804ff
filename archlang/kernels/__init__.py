"""Fast implementations for some machines: Triton on a GPU, oneDNN and few passes on a CPU. Each has a plain form."""
