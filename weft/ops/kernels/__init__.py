"""Fast paths of ops: CUDA C++ and Triton. Each equals the reference of the op it serves."""
