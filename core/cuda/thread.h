// Which thread this is.
#pragma once

#include "common/target.h"

namespace sparring {

__device__ inline u64 thread_index() { return static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; }

}  // namespace sparring
