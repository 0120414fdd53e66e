// What every bot does around its decisions: it reads the judge's blocks, remembers, and replies with one write a turn.
// The program is small on purpose: no streams, no allocation, all memory static, as the judge's stack is 64 KiB.
#pragma once

#include <unistd.h>

#include "../loong/lone.h"
#include "../loong/rows.h"
#include "../loong/text.h"

namespace sparring::bot {

using namespace sparring::loong;

// Blocks of text from the judge, one after another, each without the empty line that ends it.
class Blocks {
 public:
  // False: the input has ended.
  bool next(Span& block) {
    begin_ = searched_ = taken_;
    for (;;) {
      for (; searched_ + 1 < end_; ++searched_) {
        if (bytes_[searched_] != '\n' || bytes_[searched_ + 1] != '\n') continue;
        block = Span{bytes_ + begin_, bytes_ + searched_ + 1};
        taken_ = searched_ + 2;
        return true;
      }
      if (!more()) return false;
    }
  }

 private:
  // More than any block: all messages that can stand at once on the largest map, of 21 bytes each.
  static constexpr u64 kCapacity = 4u << 20;

  bool more() {
    if (end_ == kCapacity) {  // to the front
      for (u64 i = begin_; i < end_; ++i) bytes_[i - begin_] = bytes_[i];
      end_ -= begin_;
      searched_ -= begin_;
      begin_ = 0;
    }
    const auto got = end_ < kCapacity ? ::read(0, bytes_ + end_, kCapacity - end_) : 0;
    if (got <= 0) return false;
    end_ += static_cast<u64>(got);
    return true;
  }

  static inline u8 bytes_[kCapacity];
  u64 begin_ = 0, searched_ = 0, taken_ = 0, end_ = 0;
};

constexpr u32 kInitLines = 4;
constexpr u32 kMostCells = static_cast<u32>(kLargestSide * kLargestSide);

// Parts of a turn, in order: up to each of them a probe is told that the one before is over.
enum Part : u32 { kRead, kParse, kRemember, kObserve, kThink, kChoose, kParts };

// What a bot could tell besides its reply: nothing. That of inspection.cpp tells all.
struct NoProbe {
  static constexpr u64 kMostReply = 256;
  void begin(Part /*of the turn*/) {}
  // After a decision, before its reply ends.
  void tell(const Lone&, const ActionRow&, Out&) {}
  // Whether a block that is no turn was a question to the probe, and its answer.
  bool answer(Span /*block*/, const Lone&, Out&) { return false; }
};

// Plays one dragon until the judge has nothing more to say. `decide(who, view, memory, key, action)` fills the action
// of a turn that the memory has taken in; `build` is part of the key of the packets. A fresh process that is asked in
// the middle of a match, as the judge asks one after a crash, starts with an empty memory.
template <typename Decide, typename Probe>
int run(u64 build, Decide&& decide, Probe& probe) {
  alignas(8) static u8 memory[Lone::bytes(kMostCells)];
  static u8 reply[Probe::kMostReply];
  static Blocks blocks;
  static View view;
  Identity who{};
  bool told = false;
  const auto send = [](Out& out) {
    out.put("ENDTURN\n");
    return ::write(1, reply, out.size) == static_cast<ssize_t>(out.size);
  };
  for (Span block{};;) {
    probe.begin(kRead);
    if (!blocks.next(block)) return 0;
    probe.begin(kParse);
    Identity said{};
    if (read_init(block.at, block.size(), said)) {
      who = said;
      __builtin_memset(memory, 0, Lone::bytes(static_cast<u32>(who.width) * static_cast<u32>(who.height)));
      Lone::begin(memory, who);
      told = true;
      for (u32 line = 0; line < kInitLines; ++line) block.line();  // its first round block may follow at once
    }
    if (!told) continue;
    Lone lone = Lone::at(memory);
    Out out{reply, sizeof reply, 0};
    if (!read_block(block.at, block.size(), who, view)) {
      if (probe.answer(block, lone, out) && !send(out)) return 1;
      continue;
    }
    probe.begin(kRemember);
    const u64 key = packet_key(who, build);
    lone.take_in(view, key);
    ActionRow action;
    decide(who, view, lone.memory, key, action);
    probe.begin(kChoose);
    if (action.kind == Kind::kMove) remember_steps(lone.memory.life, action.step_count);
    write_reply(action.action(), out);
    probe.tell(lone, action, out);
    if (!send(out)) return 1;
  }
}

}  // namespace sparring::bot
