// The CUDA kernels, compiled for the CPU and run thread by thread: they do in their lanes what the per-lane functions
// do.
#include <cstring>
#include <vector>

#include "check.h"
#include "sketch.h"

struct Coordinates {
  unsigned x;
};
static Coordinates blockIdx, blockDim{8}, threadIdx;
#define __global__
#define __device__
#include "cuda/batch.cu"

namespace {

// As a GPU would: whole blocks, so that the last one has threads without a lane.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), u64 threads, Arguments... arguments) {
  for (blockIdx.x = 0; blockIdx.x * blockDim.x < threads; ++blockIdx.x) {
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) kernel(arguments...);
  }
}

constexpr u64 kLanes = 19;

struct Arrays {
  std::vector<u64> memory;
  std::vector<LaneRow> rows{kLanes};
  std::vector<View> views{kLanes};
  std::vector<ActionRow> actions{kLanes};
  Batch batch;

  Arrays(const Layout& layout, const Level* const* levels) : memory(kLanes * layout.bytes / 8) {
    batch = Batch{kLanes, layout, reinterpret_cast<u8*>(memory.data()), levels, rows.data(), views.data()};
  }
};

void kernels_do_what_the_functions_of_lanes_do() {
  const std::vector<u64> small = meadow(9).level(), big = meadow(11).level();
  const Level* levels[] = {reinterpret_cast<const Level*>(small.data()), reinterpret_cast<const Level*>(big.data())};
  const Layout layout = Layout::of(full_room(*levels[1]));
  Arrays by_kernel(layout, levels), by_lane(layout, levels);

  // All lanes but the last are started, in no order.
  std::vector<i64> lanes, which;
  std::vector<u64> seeds;
  for (u64 i = 0; i + 1 < kLanes; ++i) {
    lanes.push_back(static_cast<i64>(i * 7 % (kLanes - 1)));
    which.push_back(static_cast<i64>(i % 2));
    seeds.push_back(mix64(i));
    start(by_lane.batch, static_cast<u64>(lanes[i]), static_cast<i32>(which[i]), seeds[i]);
  }
  launch(start_matches, lanes.size(), &by_kernel.batch, lanes.data(), which.data(), seeds.data(), lanes.size());

  std::vector<Script> scripts;
  for (u64 i = 0; i < 2 * kLanes; ++i) scripts.push_back(static_cast<Script>(i * 3 % kScripts));
  u32 over = 0;
  for (int turn = 0; turn < 200; ++turn) {
    launch(look_in_lanes, kLanes, &by_kernel.batch);
    launch(decide_in_lanes, kLanes, &by_kernel.batch, scripts.data(), u64{5}, by_kernel.actions.data());
    launch(act_in_lanes, kLanes, &by_kernel.batch, by_kernel.actions.data());
    over = 0;
    for (u64 i = 0; i < kLanes; ++i) {
      look_in(by_lane.batch, i);
      decide_in(by_lane.batch, i, scripts.data() + 2 * i, 5, by_lane.actions[i]);
      act(by_lane.batch, i, by_lane.actions[i]);
      over += by_lane.rows[i].over;
    }
    CHECK(std::memcmp(by_kernel.rows.data(), by_lane.rows.data(), kLanes * sizeof(LaneRow)) == 0);
    CHECK(std::memcmp(by_kernel.views.data(), by_lane.views.data(), kLanes * sizeof(View)) == 0);
    CHECK(std::memcmp(by_kernel.actions.data(), by_lane.actions.data(), kLanes * sizeof(ActionRow)) == 0);
  }
  CHECK(by_kernel.memory == by_lane.memory);
  CHECK(over > 0 && over < kLanes - 1);  // some matches ended, some go on
  CHECK(by_kernel.rows[kLanes - 1].waiting == 0);
}

}  // namespace

int main() {
  kernels_do_what_the_functions_of_lanes_do();
  return verdict("kernels");
}
