// The CUDA kernels as a library for the CPU: tests of the Python side call them thread by thread.
struct Coordinates {
  unsigned x;
};
static Coordinates blockIdx, blockDim, threadIdx;
#define __global__
#define __device__
#include "cuda/batch.cu"
#include "cuda/knowing.cu"

extern "C" void set_thread(unsigned block, unsigned thread, unsigned threads) {
  blockIdx.x = block;
  threadIdx.x = thread;
  blockDim.x = threads;
}
