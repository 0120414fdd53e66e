// Python's view of the core: arrays in and out without copies, the GIL released while lanes run.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "common/lanes.h"
#include "common/rng.h"
#include "tennis/court.h"

namespace nb = nanobind;
using namespace nb::literals;
using sparring::i64;
using sparring::u32;
using sparring::u64;
using sparring::u8;
namespace tennis = sparring::tennis;

namespace {

using Lanes = nb::ndarray<const i64, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Seeds = nb::ndarray<const u32, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const u8, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Actions = nb::ndarray<const float, nb::shape<-1, 2, 2>, nb::c_contig, nb::device::cpu>;
using Counters = nb::ndarray<const i64, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu>;

// A new NumPy array that owns its memory.
template <typename T>
nb::object own_array(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), shape, owner));
}

class TennisCourts {
 public:
  TennisCourts(i64 lanes, bool true_velocity, int threads)
      : lanes_(lanes), true_velocity_(true_velocity), pool_(threads) {
    if (lanes < 1 || lanes > kMostLanes) throw std::invalid_argument("lanes must be 1 to 16777216");
    const auto n = static_cast<std::size_t>(lanes);
    courts_.resize(n);
    observations_.resize(n * 2 * tennis::kObservation);
    last_observations_.resize(n * 2 * tennis::kObservation);
    rewards_.resize(n * 2);
    scores_.resize(n * 2);
    lengths_.resize(n);
    done_.resize(n);
    max_reached_.resize(n);
    global_done_.resize(n);
    bodies_.resize(n * 6);
    trace_.resize(n * 6 * tennis::kStepsPerDecision);
    for (i64 lane = 0; lane < lanes; ++lane)
      write(lane, tennis::start_scene(court(lane), static_cast<u32>(lane), true_velocity_));
  }

  void seed(const Lanes& lanes, const Seeds& seeds) {
    const sparring::OneAtATime alone(inside_);
    if (lanes.shape(0) != seeds.shape(0)) throw std::invalid_argument("lanes and seeds must have the same length");
    check(lanes);
    for (std::size_t i = 0; i < lanes.shape(0); ++i) {
      const i64 lane = lanes.data()[i];
      write(lane, tennis::start_scene(court(lane), seeds.data()[i], true_velocity_));
    }
  }

  void reset(const Lanes& lanes) {
    const sparring::OneAtATime alone(inside_);
    check(lanes);
    for (std::size_t i = 0; i < lanes.shape(0); ++i) {
      const i64 lane = lanes.data()[i];
      write(lane, tennis::reset(court(lane), true_velocity_));
    }
  }

  void step(const Actions& actions) {
    if (static_cast<i64>(actions.shape(0)) != lanes_) throw std::invalid_argument("actions must be [lanes, 2, 2]");
    const sparring::OneAtATime alone(inside_);
    const float* action = actions.data();
    const nb::gil_scoped_release release;
    pool_.run(lanes_, kNanoseconds, [&](long first, long last) {
      for (i64 lane = first; lane < last; ++lane) {
        float* trace = trace_.data() + lane * 6 * tennis::kStepsPerDecision;
        write(lane, tennis::decide(court(lane), action + lane * 4, true_velocity_, trace));
      }
    });
  }

  nb::object state() const {
    std::vector<u8> bytes(courts_.size() * sizeof(tennis::Court));
    std::memcpy(bytes.data(), courts_.data(), bytes.size());
    return own_array(std::move(bytes), {courts_.size(), sizeof(tennis::Court)});
  }

  void load_state(const Bytes& state) {
    const sparring::OneAtATime alone(inside_);
    if (static_cast<i64>(state.shape(0)) != lanes_ || state.shape(1) != sizeof(tennis::Court)) {
      throw std::invalid_argument("state must be [lanes, lane_bytes] of the same core");
    }
    std::memcpy(static_cast<void*>(courts_.data()), state.data(), courts_.size() * sizeof(tennis::Court));
    for (i64 lane = 0; lane < lanes_; ++lane) write(lane, tennis::Report{});
  }

  template <typename T>
  static nb::ndarray<nb::numpy, T> view(std::vector<T>& values, std::initializer_list<std::size_t> shape,
                                        nb::handle owner) {
    return nb::ndarray<nb::numpy, T>(values.data(), shape, owner);
  }

  i64 lanes_;
  bool true_velocity_;
  sparring::LanePool pool_;
  std::atomic<bool> inside_{false};
  std::vector<tennis::Court> courts_;
  std::vector<float> observations_, last_observations_, rewards_, scores_, bodies_, trace_;
  std::vector<sparring::i32> lengths_;
  std::vector<u8> done_, max_reached_, global_done_;

 private:
  static_assert(std::is_trivially_copyable_v<tennis::Court>, "checkpoints copy courts as bytes");

  static constexpr i64 kMostLanes = 1 << 24;
  static constexpr long kNanoseconds = 200;  // of a decision in one court

  tennis::Court& court(i64 lane) { return courts_[static_cast<std::size_t>(lane)]; }

  void check(const Lanes& lanes) const {
    for (std::size_t i = 0; i < lanes.shape(0); ++i) {
      if (lanes.data()[i] < 0 || lanes.data()[i] >= lanes_) throw std::out_of_range("lane out of range");
    }
  }

  void write(i64 lane, const tennis::Report& report) {
    const tennis::Court& c = court(lane);
    const auto at = static_cast<std::size_t>(lane);
    constexpr std::size_t kBytes = sizeof(float) * tennis::kObservation;
    for (std::size_t row = 0; row < 2; ++row) {
      const int racket = row == 0 ? tennis::B : tennis::A;
      std::memcpy(&observations_[(at * 2 + row) * tennis::kObservation], c.stack[racket], kBytes);
      if (report.done) std::memcpy(&last_observations_[(at * 2 + row) * tennis::kObservation], c.last[racket], kBytes);
      rewards_[at * 2 + row] = report.reward[row];
      scores_[at * 2 + row] = c.score[racket];
    }
    lengths_[at] = c.length;
    done_[at] = report.done;
    max_reached_[at] = report.max_reached;
    global_done_[at] = report.global_done;
    tennis::bodies(c, &bodies_[at * 6]);
  }
};

// float32 [n, 4] standard normals, one Philox block per row of counters.
nb::object normals(u64 seed, u64 stream, const Counters& counters) {
  const std::size_t n = counters.shape(0);
  std::vector<float> out(n * 4);
  const u64 key = sparring::stream_key(seed, stream);
  for (std::size_t i = 0; i < n; ++i) {
    const i64* c = counters.data() + i * 4;
    const auto block = sparring::philox(key, static_cast<u32>(c[0]), static_cast<u32>(c[1]), static_cast<u32>(c[2]),
                                        static_cast<u32>(c[3]));
    sparring::box_muller(block.word[0], block.word[1], out[i * 4], out[i * 4 + 1]);
    sparring::box_muller(block.word[2], block.word[3], out[i * 4 + 2], out[i * 4 + 3]);
  }
  return own_array(std::move(out), {n, 4});
}

// float32 [n, 4] uniform in [0, 1), one Philox block per row of counters. Multiples of 2^-23: such a number times a
// float32 total stays below the total after rounding, so that whoever inverts a cumulative sum never falls off its end.
nb::object uniforms(u64 seed, u64 stream, const Counters& counters) {
  const std::size_t n = counters.shape(0);
  std::vector<float> out(n * 4);
  const u64 key = sparring::stream_key(seed, stream);
  for (std::size_t i = 0; i < n; ++i) {
    const i64* c = counters.data() + i * 4;
    const auto block = sparring::philox(key, static_cast<u32>(c[0]), static_cast<u32>(c[1]), static_cast<u32>(c[2]),
                                        static_cast<u32>(c[3]));
    for (std::size_t word = 0; word < 4; ++word) {
      out[i * 4 + word] = static_cast<float>(block.word[word] >> 9) * 0x1p-23f;
    }
  }
  return own_array(std::move(out), {n, 4});
}

// int64 [n] in [0, high): the draws `counter` * n onwards of a stream, each from 64 random bits (bias below high /
// 2^64).
nb::object integers(u64 seed, u64 stream, u64 counter, i64 n, u64 high) {
  if (n < 0) throw std::invalid_argument("n must be 0 or more");
  if (high < 1) throw std::invalid_argument("high must be 1 or more");
  std::vector<i64> out(static_cast<std::size_t>(n));
  const u64 key = sparring::stream_key(seed, stream);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto block =
        sparring::philox(key, static_cast<u32>(counter), static_cast<u32>(counter >> 32), static_cast<u32>(i), 0u);
    const u64 bits = static_cast<u64>(block.word[0]) << 32 | block.word[1];
    // The high half of bits * high, in 32-bit steps: portable where no 128-bit product exists.
    const u64 low_product = (bits & 0xFFFFFFFFu) * (high & 0xFFFFFFFFu);
    const u64 cross = (bits >> 32) * (high & 0xFFFFFFFFu) + (low_product >> 32);
    const u64 other = (bits & 0xFFFFFFFFu) * (high >> 32) + (cross & 0xFFFFFFFFu);
    out[i] = static_cast<i64>((bits >> 32) * (high >> 32) + (cross >> 32) + (other >> 32));
  }
  return own_array(std::move(out), {static_cast<std::size_t>(n)});
}

}  // namespace

void bind_loong(nb::module_& m);  // bind_loong.cpp
void bind_net(nb::module_& m);    // bind_net.cpp

NB_MODULE(_core, m) {
  m.doc() = "Compiled core of Sparring: game rules and counter-based random numbers.";
  m.attr("source_hash") = SPARRING_CORE_HASH;
  m.def("normals", &normals, "seed"_a, "stream"_a, "counters"_a);
  m.def("uniforms", &uniforms, "seed"_a, "stream"_a, "counters"_a);
  m.def("integers", &integers, "seed"_a, "stream"_a, "counter"_a, "n"_a, "high"_a);
  m.def("mix64", &sparring::mix64, "x"_a);
  bind_loong(m);
  bind_net(m);

#define SPARRING_VIEW(name, ...)                                            \
  .def_prop_ro(#name, [](nb::handle self) {                                 \
    auto& c = nb::cast<TennisCourts&>(self);                                \
    [[maybe_unused]] const auto lanes = static_cast<std::size_t>(c.lanes_); \
    return TennisCourts::view(c.name##_, {__VA_ARGS__}, self);              \
  })

  nb::class_<TennisCourts>(m, "TennisCourts")
      .def(nb::init<i64, bool, int>(), "lanes"_a, nb::kw_only(), "true_velocity"_a = false, "threads"_a = 1)
      .def_prop_ro_static("lane_bytes", [](nb::handle) { return sizeof(tennis::Court); })
      .def_ro("lanes", &TennisCourts::lanes_)
      .def("seed", &TennisCourts::seed, "lanes"_a, "seeds"_a)
      .def("reset", &TennisCourts::reset, "lanes"_a)
      .def("step", &TennisCourts::step, "actions"_a)
      .def("state", &TennisCourts::state)
      .def("load_state", &TennisCourts::load_state, "state"_a)
      // clang-format off
      SPARRING_VIEW(observations, lanes, 2, tennis::kObservation)
      SPARRING_VIEW(last_observations, lanes, 2, tennis::kObservation)
      SPARRING_VIEW(rewards, lanes, 2)
      SPARRING_VIEW(scores, lanes, 2)
      SPARRING_VIEW(lengths, lanes)
      SPARRING_VIEW(done, lanes)
      SPARRING_VIEW(max_reached, lanes)
      SPARRING_VIEW(global_done, lanes)
      SPARRING_VIEW(bodies, lanes, 6)
      SPARRING_VIEW(trace, lanes, tennis::kStepsPerDecision, 6);
  // clang-format on
#undef SPARRING_VIEW
}
