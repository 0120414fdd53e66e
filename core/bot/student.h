// The decisions of a bot that carries a student: it observes what it knows, asks the network, and makes the most
// probable choice.
#pragma once

#if defined(__wasm__)
#include <time.h>
#endif

#include "../loong/observe.h"
#include "../net/student.h"
#include "bot.h"

namespace sparring::bot {

// The points that the process has taken so far: clocks of the judge's sandbox count them. Elsewhere nobody does.
inline u64 points() {
#if defined(__wasm__)
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<u64>(now.tv_sec) * 1000000000 + static_cast<u64>(now.tv_nsec);
#else
  return 0;
#endif
}

// What the dragon saw and thought in its turn.
struct Thoughts {
  InputsRow inputs;
  MaskRow mask;
  i64 choice;
  alignas(16) net::i16 memory[net::kMostWidth];
};

class StudentPlayer {
 public:
  // weights: aligned to 16 bytes, of `size` bytes.
  StudentPlayer(const u8* weights, u64 size) : bound_(student_.bind(weights, size)), began_(points()) {}

  // Numbers in the network's memory.
  u32 memory() const { return student_.sizes().memory; }

  template <typename Probe>
  void decide(const Identity& who, const View& view, Memory& memory, u64 key, ActionRow& action, Probe& probe) {
    probe.begin(kObserve);
    Thoughts& now = thoughts;
    if (memory.life.decisions == 1) __builtin_memset(now.memory, 0, sizeof now.memory);
    observe(memory, who, view, now.inputs);
    fill_mask(memory.life, who, view, now.mask);
    probe.begin(kThink);
    const bool thinks = bound_ && points() - began_ < kMostBefore;
    now.choice = thinks ? student_.decide<net::Simd>(now.inputs, now.mask, now.memory, scratch_) : thoughtless(now);
    choose(memory, now.choice, key, action);
    began_ = points();
  }

  static inline Thoughts thoughts;

 private:
  // The judge gives a turn 100 M points and kills the dragon that needs more. The gate lets none pass whose turns need
  // more than 60 M; so one that took this much before it thinks, for messages without end, say, replies without.
  static constexpr u64 kMostBefore = 35'000'000;

  // The first way that is free, forward if none is.
  static i64 thoughtless(const Thoughts& now) {
    constexpr u32 head = observing::kCropReach;
    const auto free = [&now](u32 row, u32 column) { return now.inputs.crop[row][column][crop::kReach] != 0; };
    Choice choice{};
    choice.role = now.mask.held;
    choice.claim = kNoClaim;
    choice.kind = kChooseMove;
    choice.direction = free(head - 1, head)   ? kForward
                       : free(head, head - 1) ? kLeft
                       : free(head, head + 1) ? kRight
                                              : kForward;
    return pack(choice);
  }

  net::Student student_{};
  bool bound_;
  u64 began_;  // as the last turn ended
  static inline net::Scratch scratch_;
};

}  // namespace sparring::bot
