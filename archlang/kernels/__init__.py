"""Programs for the GPU, in Triton; each equals a plain torch form."""
