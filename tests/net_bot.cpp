// The student in the judge's sandbox: it is sent a file of weights and then rows, and says what both ways to compute
// chose, a hash of the memory, and the points that the parts of a decision took.
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "net/student.h"

using namespace sparring;

namespace {

alignas(16) u8 blob[3 << 20];
alignas(16) u8 row[1 << 16];
net::Student student;
net::Scratch scratch;
net::i16 memory[2][net::kMostWidth];

// Clocks of the judge's sandbox count points.
u64 points() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<u64>(now.tv_sec) * 1000000000 + static_cast<u64>(now.tv_nsec);
}

// A length in four bytes, then so many, the last two of which are the empty line that ends every turn's text.
u64 take(u8* to, u64 most) {
  u32 length = 0;
  for (u64 got = 0; got < sizeof length;) {
    const ssize_t more = read(0, reinterpret_cast<u8*>(&length) + got, sizeof length - got);
    if (more <= 0) _exit(0);
    got += static_cast<u64>(more);
  }
  if (length > most) _exit(1);
  for (u64 got = 0; got < length;) {
    const ssize_t more = read(0, to + got, length - got);
    if (more <= 0) _exit(0);
    got += static_cast<u64>(more);
  }
  return length - 2;
}

u64 hashed(const u8* bytes, u64 size) {
  u64 hash = 0xCBF29CE484222325ull;
  for (u64 i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001B3ull;
  return hash;
}

struct Meter {
  loong::Out& out;
  u64 since;

  template <typename T>
  void operator()(const char* name, const T*, u32) {
    const u64 now = points();
    out.put(' ').put(name).put(' ').number(now - since);
    since = points();
  }
};

struct Turn {
  loong::InputsRow inputs;
  loong::MaskRow mask;
  u8 newborn;
};

// Both choices, both memories, all points of the twin, then its layers and theirs.
void decide(const Turn& turn, loong::Out& out) {
  if (turn.newborn != 0) memset(memory, 0, sizeof memory);
  net::i16 again[net::kMostWidth];
  memcpy(again, memory[0], sizeof again);
  const i64 scalar = student.decide<net::Scalar>(turn.inputs, turn.mask, memory[1], scratch);
  const u64 begun = points();
  const i64 simd = student.decide<net::Simd>(turn.inputs, turn.mask, memory[0], scratch);
  const u64 took = points() - begun;
  const u64 size = student.sizes().memory * sizeof(net::i16);
  out.put(' ').number(scalar).put(' ').number(simd);
  for (const net::i16* each : {memory[1], memory[0]})
    out.put(' ').number(hashed(reinterpret_cast<const u8*>(each), size));
  out.put(' ').number(took);
  const u64 watched = points();
  student.decide<net::Simd>(turn.inputs, turn.mask, again, scratch, Meter{out, watched});
}

}  // namespace

int main() {
  static u8 reply[4096];
  for (bool bound = false;;) {
    loong::Out out{reply, sizeof reply, 0};
    out.put("INDICATOR");
    if (bound) {
      if (take(row, sizeof row) != sizeof(Turn)) return 1;
      decide(*reinterpret_cast<const Turn*>(row), out);
    } else {
      bound = student.bind(blob, take(blob, sizeof blob));
      out.put(bound ? " bound" : " refused");
    }
    out.put("\nENDTURN\n");
    if (write(1, reply, out.size) != static_cast<ssize_t>(out.size)) return 1;
  }
}
