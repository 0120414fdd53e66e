// The kernels of a batch of Loong matches. One thread has one lane, and calls the functions that the CPU calls.
#include "cuda/thread.h"
#include "loong/batch.h"

using namespace sparring;
using namespace sparring::loong;

// Starts matches in `count` lanes, each named once.
extern "C" __global__ void start_matches(const Batch* batch, const i64* lanes, const i64* levels, const u64* seeds,
                                         u64 count) {
  const u64 i = thread_index();
  if (i < count) start(*batch, static_cast<u64>(lanes[i]), static_cast<i32>(levels[i]), seeds[i]);
}

extern "C" __global__ void act_in_lanes(const Batch* batch, const ActionRow* actions) {
  const u64 i = thread_index();
  if (i < batch->lanes) act(*batch, i, actions[i]);
}

extern "C" __global__ void look_in_lanes(const Batch* batch) {
  const u64 i = thread_index();
  if (i < batch->lanes) look_in(*batch, i);
}

// `scripts`: the players of A and B, by lane.
extern "C" __global__ void decide_in_lanes(const Batch* batch, const Script* scripts, u64 seed, ActionRow* actions) {
  const u64 i = thread_index();
  if (i < batch->lanes) decide_in(*batch, i, scripts + 2 * i, seed, actions[i]);
}
