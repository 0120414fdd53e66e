// The kernels of what dragons know. One thread has one lane, and calls the functions that the CPU calls.
#include "loong/knowing.h"

using namespace sparring;
using namespace sparring::loong;

namespace {

__device__ u64 thread_index() { return static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; }

}  // namespace

// Starts matches in `count` lanes, each named once.
extern "C" __global__ void start_knowing_matches(const Batch* batch, const Knowing* knowing, const i64* lanes,
                                                 const i64* levels, const u64* seeds, u64 count) {
  const u64 i = thread_index();
  if (i < count) start_knowing(*batch, *knowing, static_cast<u64>(lanes[i]), static_cast<i32>(levels[i]), seeds[i]);
}

extern "C" __global__ void observe_in_lanes(const Batch* batch, const Knowing* knowing, InputsRow* inputs,
                                            MaskRow* masks) {
  const u64 i = thread_index();
  if (i < batch->lanes) observe_in(*batch, *knowing, i, inputs[i], masks[i]);
}

// In turns that were taken in. A number that is no choice of its dragon is a fault of the lane.
extern "C" __global__ void act_packed_in_lanes(const Batch* batch, const Knowing* knowing, const i64* choices) {
  const u64 i = thread_index();
  if (i >= batch->lanes) return;
  if (choosable_in(*batch, *knowing, i, choices[i])) {
    act_packed_in(*batch, *knowing, i, choices[i]);
  } else {
    ActionRow none{};
    none.kind = static_cast<Kind>(3);
    act_knowing(*batch, *knowing, i, none);
  }
}
