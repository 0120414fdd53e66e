// The thread pool, and batches over it: the same bytes for any number of threads and any order of restarts. Under
// ThreadSanitizer (`make test-races`) also: nothing is touched by two threads at once.
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.h"
#include "common/lanes.h"
#include "common/rng.h"
#include "loong/batch.h"
#include "sketch.h"
#include "tennis/court.h"

namespace {

using namespace sparring;

constexpr long kLong = 1000000;  // nanoseconds: so much for one lane is shared at once
using Bytes = std::vector<u8>;

void append(Bytes& all, const void* from, u64 size) {
  const u8* bytes = static_cast<const u8*>(from);
  all.insert(all.end(), bytes, bytes + size);
}

// Calls body(lane) for all lanes. The caller waits in its first share until another thread has one, so that what is
// meant to be shared is, however busy the machine.
template <typename Body>
void share(LanePool& pool, int threads, long lanes, Body&& body) {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> joined{threads == 1 || lanes < 2};
  pool.run(lanes, kLong, [&](long first, long last) {
    if (std::this_thread::get_id() != caller) joined = true;
    while (!joined) std::this_thread::yield();
    for (long lane = first; lane < last; ++lane) body(static_cast<std::size_t>(lane));
  });
}

void the_pool_visits_every_lane_once() {
  for (const int threads : {1, 2, 3, 8}) {
    LanePool pool(threads);
    for (const long lanes : {0L, 1L, 2L, 3L, 7L, 8L, 9L, 100L, 5000L}) {
      for (const long nanoseconds : {1L, 100L, kLong}) {
        for (int round = 0; round < 10; ++round) {
          std::vector<int> visits(static_cast<std::size_t>(lanes));
          pool.run(lanes, nanoseconds, [&](long first, long last) {
            for (long lane = first; lane < last; ++lane) ++visits[static_cast<std::size_t>(lane)];
          });
          for (const int count : visits) CHECK(count == 1);
        }
      }
      std::vector<int> visits(static_cast<std::size_t>(lanes));
      for (int round = 1; round <= 10; ++round) {
        share(pool, threads, lanes, [&](std::size_t lane) { ++visits[lane]; });
        for (const int count : visits) CHECK(count == round);
      }
    }
  }
}

void short_calls_are_not_shared_and_long_ones_are() {
  LanePool pool(3);
  const auto ranges = [&](long lanes, long nanoseconds) {
    std::atomic<int> calls{0};
    pool.run(lanes, nanoseconds, [&](long, long) { ++calls; });
    return calls.load();
  };
  CHECK(ranges(256, 100) == 1);
  CHECK(ranges(1, kLong) == 1);
  CHECK(ranges(2048, 100) > 3);
  CHECK(ranges(2, kLong) == 2);
}

void a_pool_of_no_threads_or_too_many_is_refused() {
  for (const int threads : {-1, 0, LanePool::kMostThreads + 1}) {
    bool refused = false;
    try {
      const LanePool pool(threads);
    } catch (const std::invalid_argument&) {
      refused = true;
    }
    CHECK(refused);
  }
}

void a_second_thread_is_refused_while_one_is_inside() {
  std::atomic<bool> inside{false};
  for (int round = 0; round < 2; ++round) {
    const OneAtATime first(inside);
    bool refused = false;
    try {
      const OneAtATime second(inside);
    } catch (const std::runtime_error&) {
      refused = true;
    }
    CHECK(refused && inside);
  }
  CHECK(!inside);
}

Bytes play_tennis(int lanes, int threads) {
  std::vector<tennis::Court> courts(static_cast<std::size_t>(lanes));
  LanePool pool(threads);
  for (int lane = 0; lane < lanes; ++lane)
    tennis::start_scene(courts[static_cast<std::size_t>(lane)], static_cast<u32>(lane), false);
  for (u32 decision = 0; decision < 60; ++decision) {
    share(pool, threads, lanes, [&](std::size_t lane) {
      const Philox block = philox(stream_key(7, 0), static_cast<u32>(lane), decision, 0, 0);
      float actions[4];
      for (int i = 0; i < 4; ++i) actions[i] = static_cast<float>(block.word[i] >> 8) / 8388608.0f - 1.0f;
      tennis::decide(courts[lane], actions, false, nullptr);
    });
  }
  Bytes all;
  append(all, courts.data(), courts.size() * sizeof(tennis::Court));
  return all;
}

// Rows, views and lanes after 100 turns. `stride` decides in which order lanes are restarted, `before` how many turns
// they have played until then.
Bytes play_loong(u64 lanes, int threads, u64 stride, int before) {
  using namespace loong;
  const std::vector<u64> memories[] = {meadow(9).level(), meadow(12).level()};
  const Level* levels[] = {reinterpret_cast<const Level*>(memories[0].data()),
                           reinterpret_cast<const Level*>(memories[1].data())};
  const Layout layout = Layout::of(full_room(*levels[0]).joined(full_room(*levels[1])));
  std::vector<u64> memory(lanes * layout.bytes / sizeof(u64));
  std::vector<LaneRow> rows(lanes);
  std::vector<View> views(lanes);
  std::vector<ActionRow> actions(lanes);
  const Batch batch{lanes, layout, reinterpret_cast<u8*>(memory.data()), levels, rows.data(), views.data()};
  const Script scripts[] = {Script::kLegal, Script::kReckless};
  LanePool pool(threads);
  const auto everywhere = [&](auto&& body) { share(pool, threads, static_cast<long>(lanes), body); };
  const auto play = [&](int turns) {
    for (int turn = 0; turn < turns; ++turn) {
      everywhere([&](std::size_t lane) { look_in(batch, lane); });
      everywhere([&](std::size_t lane) { decide_in(batch, lane, scripts, 3, actions[lane]); });
      everywhere([&](std::size_t lane) { act(batch, lane, actions[lane]); });
    }
  };
  everywhere([&](std::size_t lane) { start(batch, lane, 0, lane + 1000); });
  play(before);
  everywhere([&](std::size_t i) {
    const u64 lane = i * stride % lanes;
    start(batch, lane, static_cast<i32>(lane % 2), lane);
    views[lane] = View{};
    actions[lane] = ActionRow{};
  });
  play(100);
  Bytes all;
  append(all, rows.data(), lanes * sizeof(LaneRow));
  append(all, views.data(), lanes * sizeof(View));
  append(all, memory.data(), memory.size() * sizeof(u64));
  return all;
}

void tennis_is_the_same_on_any_number_of_threads() {
  for (const int lanes : {1, 3, 50}) {
    const Bytes expected = play_tennis(lanes, 1);
    for (const int threads : {2, 3, 8}) CHECK(play_tennis(lanes, threads) == expected);
  }
}

void loong_is_the_same_on_any_number_of_threads_and_for_any_order_of_restarts() {
  const Bytes expected = play_loong(33, 1, 1, 0);
  CHECK(play_loong(33, 1, 7, 20) == expected);
  CHECK(play_loong(33, 2, 1, 20) == expected);
  CHECK(play_loong(33, 2, 32, 0) == expected);
  CHECK(play_loong(33, 3, 5, 45) == expected);
}

}  // namespace

int main() {
  the_pool_visits_every_lane_once();
  short_calls_are_not_shared_and_long_ones_are();
  a_pool_of_no_threads_or_too_many_is_refused();
  a_second_thread_is_refused_while_one_is_inside();
  tennis_is_the_same_on_any_number_of_threads();
  loong_is_the_same_on_any_number_of_threads_and_for_any_order_of_restarts();
  return verdict("lanes");
}
