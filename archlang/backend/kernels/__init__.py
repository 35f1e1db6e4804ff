"""Fast implementations: torch's fused kernels, Triton on a GPU, few passes on a CPU. Each has a plain form."""
