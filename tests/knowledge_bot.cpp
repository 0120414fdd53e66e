// A bot of what dragons know: it plays the first free way, and says in its indicator a hash of its inputs and mask, and
// how many points it took to parse, to remember, to observe and to choose.
#include <time.h>
#include <unistd.h>

#include "loong/lone.h"
#include "loong/observe.h"
#include "loong/text.h"

using namespace sparring;
using namespace sparring::loong;

namespace {

alignas(8) u8 block[Lone::bytes(65536)];
u8 text[1 << 17], reply[1024];
InputsRow inputs;
MaskRow mask;
View view;

// Clocks of the judge's sandbox count points.
u64 points() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<u64>(now.tv_sec) * 1000000000 + static_cast<u64>(now.tv_nsec);
}

u64 hashed(u64 hash, const u8* bytes, u64 size) {
  for (u64 i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001B3ull;
  return hash;
}

// A turn's text ends with an empty line.
u64 read_turn() {
  u64 size = 0;
  while (size < 2 || text[size - 1] != '\n' || text[size - 2] != '\n') {
    const ssize_t got = read(0, text + size, sizeof text - size);
    if (got <= 0) return 0;
    size += static_cast<u64>(got);
  }
  return size;
}

i64 first_free_way() {
  Choice choice{};
  choice.role = mask.held;
  choice.claim = 3;
  const bool ways[] = {inputs.crop[6][7][crop::kReach] != 0, inputs.crop[7][6][crop::kReach] != 0,
                       inputs.crop[7][8][crop::kReach] != 0};
  choice.direction = ways[0] ? kForward : ways[1] ? kLeft : ways[2] ? kRight : kForward;
  if (mask.kinds[kChooseSplit] != 0 && view.round % 3 == 0) {
    choice.kind = kChooseSplit;
    choice.direction = 0;
    choice.segments = kLeastSegments;
  }
  return pack(choice);
}

}  // namespace

int main() {
  Identity who{};
  for (bool born = false;; born = true) {
    const u64 size = read_turn();
    if (size == 0) return 0;
    const u64 start = points();
    const u8* round = text;
    if (!born) {
      if (!read_init(text, size, who)) return 1;
      for (u32 lines = 0; lines < 4; ++round) lines += *round == '\n';
      Lone::begin(block, who);
    }
    if (!read_block(round, size - static_cast<u64>(round - text), who, view)) return 1;
    const u64 parsed = points(), key = packet_key(who, 0);
    Lone lone = Lone::at(block);
    lone.take_in(view, key);
    const u64 remembered = points();
    observe(lone.memory, who, view, inputs);
    fill_mask(lone.memory.life, who, view, mask);
    const u64 observed = points();
    ActionRow action;
    choose(lone.memory, first_free_way(), key, action);
    if (action.kind == Kind::kMove) remember_steps(lone.memory.life, action.step_count);
    const u64 chosen = points();
    u64 hash = hashed(0xCBF29CE484222325ull, &inputs.crop[0][0][0], sizeof inputs);
    hash = hashed(hash, mask.kinds, sizeof mask);
    Out out{reply, sizeof reply, 0};
    out.put("INDICATOR ").number(hash);
    const u64 parts[] = {parsed - start, remembered - parsed, observed - remembered, chosen - observed};
    for (const u64 took : parts) {
      out.put(' ').number(took);
    }
    out.put('\n');
    write_reply(action.action(), out);
    out.put("ENDTURN\n");
    if (write(1, reply, out.size) < 0) return 1;
  }
}
