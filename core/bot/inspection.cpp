// The same bot with a probe that tells what it knows and thinks: the gate builds it in main.cpp's place, beside the
// same sources, and never ships it.
#include "bot/student.h"
#include "weights.h"

namespace sparring::bot {

// What the gate compares, in this order.
enum Section : u32 { kCrop, kOverview, kScalarBytes, kSonar, kMask, kSights, kNotes, kLife, kHidden, kSections };

// Checksums of 32 bits (CRC-32, ISO 3309).
struct Crc {
  u32 table[256] = {};

  constexpr Crc() {
    for (u32 i = 0; i < 256; ++i) {
      u32 rest = i;
      for (u32 bit = 0; bit < 8; ++bit) rest = (rest & 1) != 0 ? 0xEDB88320u ^ rest >> 1 : rest >> 1;
      table[i] = rest;
    }
  }

  u32 after(u32 sum, u8 byte) const { return table[(sum ^ byte) & 255] ^ sum >> 8; }
};
constexpr Crc kCrc;

StudentPlayer& player() {
  static StudentPlayer one(weights(), kWeightsBytes);
  return one;
}

class Probe {
 public:
  static constexpr u64 kMostReply = 8192;

  void begin(Part part) {
    const u64 now = points();
    took_[last_] = now - at_;
    last_ = part;
    at_ = now;
  }

  // One line: a checksum of every section, the choice, then the points of every part but the last. What this itself
  // takes is part of none.
  void tell(const Lone& lone, const ActionRow& action, Out& out) {
    begin(kParts);
    out.put("LOG");
    for (u32 section = 0; section < kSections; ++section) {
      u32 sum = ~0u;
      each(lone, section, [&sum](u64, u8 byte) { sum = kCrc.after(sum, byte); });
      out.put(' ').number(~sum);
    }
    out.put(' ').number(StudentPlayer::thoughts.choice);
    u64 packet = 0;
    for (u32 d = 0; d < 4; ++d) packet |= action.aimed[d];
    out.put(' ').number(packet);
    for (u32 part = kRead; part < kParts; ++part) out.put(' ').number(took_[part]);
    out.put('\n');
  }

  // "INSPECT section from": up to 2,048 of its bytes from there on, as two letters each, the lower four bits first.
  bool answer(Span block, const Lone& lone, Out& out) {
    constexpr u64 most = 2048;
    i32 section = 0, from = 0;
    if (!block.word().is("INSPECT") || !reading::number(block, section) || !reading::number(block, from)) return false;
    out.put("LOG ");
    each(lone, static_cast<u32>(section), [&](u64 at, u8 byte) {
      if (at < static_cast<u64>(from) || at >= static_cast<u64>(from) + most) return;
      out.put(static_cast<char>('a' + (byte & 15))).put(static_cast<char>('a' + (byte >> 4)));
    });
    out.put('\n');
    return true;
  }

 private:
  // Every byte of a section in order, the lowest of a number first.
  template <typename Take>
  static void each(const Lone& lone, u32 section, Take&& take) {
    const Thoughts& now = StudentPlayer::thoughts;
    const auto bytes = [&take](const void* at, u64 size) {
      for (u64 i = 0; i < size; ++i) take(i, static_cast<const u8*>(at)[i]);
    };
    const Memory& memory = lone.memory;
    switch (section) {
      case kCrop:
        return bytes(now.inputs.crop, sizeof now.inputs.crop);
      case kOverview:
        return bytes(now.inputs.overview, sizeof now.inputs.overview);
      case kScalarBytes:
        return bytes(now.inputs.scalars, sizeof now.inputs.scalars);
      case kSonar:
        return bytes(now.inputs.sonar, sizeof now.inputs.sonar);
      case kMask:
        return bytes(&now.mask, sizeof now.mask);
      case kLife:
        return bytes(&memory.life, sizeof memory.life);
      case kHidden:
        return bytes(now.memory, player().memory() * sizeof now.memory[0]);
      case kSights:
        for (u32 tile = 0; tile < memory.cells; ++tile) {
          for (u32 i = 0; i < 4; ++i) take(4 * tile + i, static_cast<u8>(memory.sight(tile) >> 8 * i));
        }
        return;
      case kNotes:
        for (u32 tile = 0; tile < memory.cells; ++tile) {
          for (u32 i = 0; i < 2; ++i) take(2 * tile + i, static_cast<u8>(memory.note(tile) >> 8 * i));
        }
        return;
      default:
        return;
    }
  }

  u32 last_ = kRead;
  u64 at_ = points();
  u64 took_[kParts + 1] = {};
};

}  // namespace sparring::bot

int main() {
  using namespace sparring;
  using namespace sparring::bot;
  static Probe probe;
  const auto decide = [](const Identity& who, const View& view, Memory& memory, u64 key, ActionRow& action) {
    player().decide(who, view, memory, key, action, probe);
  };
  return run(kBuild, decide, probe);
}
