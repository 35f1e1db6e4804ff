"""Fast implementations: torch's fused kernels, and few passes on a CPU. Each has a plain form."""
