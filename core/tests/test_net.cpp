// The student's network on weights and inputs of all kinds, under sanitizers, and files that are none.
#include <cstring>
#include <memory>
#include <vector>

#include "check.h"
#include "common/rng.h"
#include "net/student.h"

using namespace sparring;
using namespace sparring::net;

namespace {

constexpr Sizes kNarrow{8, 2, 16, 8, 8, 8, 8, 8, 24, 3, 16, 16, 16, 8};
constexpr Sizes kOther{16, 1, 40, 16, 8, 40, 8, 8, 136, 1, 16, 40, 16, 32};

struct Random {
  u64 state;
  u32 below(u32 high) { return static_cast<u32>(mix64(state++) % high); }
};

// A file as sparring.distil.quantise writes it, of random weights, without a hash that fits.
struct Writer {
  std::vector<u8> bytes;
  Random random;

  template <typename T, typename Value>
  void put(u64 count, Value&& value) {
    while (bytes.size() % kAlignment != 0) bytes.push_back(0);
    for (u64 i = 0; i < count; ++i) {
      const T each = static_cast<T>(value());
      const u8* raw = reinterpret_cast<const u8*>(&each);
      bytes.insert(bytes.end(), raw, raw + sizeof each);
    }
  }

  void layer(u32 rows, u32 inputs, u32 sets = 1) {
    put<i32>(1, [&] { return 21 + random.below(10); });
    put<i32>(in_blocks(rows), [&] { return 1 + random.below(1 << 21); });
    put<i32>(u64{sets} * in_blocks(rows), [&] { return static_cast<i32>(random.below(1 << 20)) - (1 << 19); });
    put<i8>(u64{in_blocks(rows)} * inputs, [&] { return static_cast<i32>(random.below(255)) - 127; });
  }
};

std::vector<u8> file_of(const Sizes& s) {
  Writer out{{'S', 'P', 'A', 'R', 'N', 'E', 'T', '1', 0, 0, 0, 0}, {1}};
  const u8* sizes = reinterpret_cast<const u8*>(&s);
  out.bytes.insert(out.bytes.end(), sizes, sizes + sizeof s);
  for (u32 table = 0; table < 2; ++table) {
    out.put<i16>(kGateEntries, [&] { return static_cast<i32>(out.random.below(32768)); });
  }
  const u32 last = s.first_stride == 1 ? 8 : 4;
  for (u32 i = 0; i < 4; ++i) out.layer(s.channels, 9 * (i == 0 ? loong::kCropPlanes : s.channels));
  out.layer(s.crop_code, last * last * s.channels);
  out.layer(s.overview_channels, 9 * loong::kOverviewPlanes);
  out.layer(s.overview_code, 64 * s.overview_channels);
  out.layer(s.sonar_hidden, loong::kSonarBytes);
  out.layer(s.sonar_hidden, s.sonar_hidden);
  out.layer(s.sonar_code, 2 * s.sonar_hidden);
  out.layer(s.scalar_code, loong::kScalars);
  out.put<i32>(1, [&] { return 12; });
  out.put<i32>(2 * in_blocks(kTables), [&] { return out.random.below(1 << 21); });
  out.put<i8>(kTables * kTableEntries * kTableWidth, [&] { return out.random.below(127); });
  out.layer(s.joined, s.crop_code + s.overview_code + s.sonar_code + s.scalar_code + kTables * kTableWidth);
  out.layer(s.experts, s.joined);
  for (u32 i = 0; i < s.experts; ++i) out.layer(s.expert_hidden, s.joined);
  for (u32 i = 0; i < s.experts; ++i) out.layer(s.joined, s.expert_hidden);
  out.layer(3 * s.memory, s.joined);
  out.layer(3 * s.memory, s.memory);
  out.layer(loong::kRoles, s.memory);
  out.layer(s.head_hidden, s.memory, loong::kRoles);
  out.layer(kChoiceLogits, s.head_hidden);
  out.layer(s.sprint_state, s.head_hidden);
  out.layer(3 * s.sprint_state, s.sprint_state);
  out.layer(kSteps + 1, s.sprint_state);
  out.put<i16>(u64{kSteps} * 3 * s.sprint_state, [&] { return static_cast<i32>(out.random.below(65536)) - 32768; });
  out.put<u8>(0, [] { return 0; });
  const u32 size = static_cast<u32>(out.bytes.size());
  std::memcpy(out.bytes.data() + 8, &size, sizeof size);
  out.bytes.resize(out.bytes.size() + 32);
  return out.bytes;
}

void decides(const Sizes& sizes) {
  const std::vector<u8> file = file_of(sizes);
  Student student;
  CHECK(student.bind(file.data(), file.size()));
  const auto scratch = std::make_unique<Scratch>();
  std::memset(static_cast<void*>(scratch.get()), 0xA5, sizeof(Scratch));  // nothing in it is read before it is written
  std::vector<i16> memory(sizes.memory), again;
  Random random{7};
  for (u32 turn = 0; turn < 6; ++turn) {
    loong::InputsRow inputs;
    u8* bytes = reinterpret_cast<u8*>(&inputs);
    for (u64 i = 0; i < sizeof inputs; ++i) {
      bytes[i] = static_cast<u8>(turn == 0 ? 127 : turn == 1 ? 0 : random.below(128));
    }
    loong::MaskRow mask{};
    mask.kinds[turn % 3] = 1;
    for (u8& size : mask.sizes) size = static_cast<u8>(random.below(2));
    mask.payable = 8;
    mask.role_due = turn % 2;
    mask.held = static_cast<u8>(random.below(loong::kRoles));
    again = memory;
    loong::Choice choice;
    const i64 packed = student.decide<Scalar>(inputs, mask, memory.data(), *scratch);
    CHECK(loong::unpack(packed, choice));
    CHECK(choice.kind == turn % 3);
    CHECK(turn % 2 == 1 || choice.role == mask.held);
    u32 seen = 0;
    const auto watch = [&](const char*, const auto*, u32 count) { seen += count > 0; };
    CHECK(student.decide<Scalar>(inputs, mask, again.data(), *scratch, watch) == packed);
    CHECK(again == memory);
    CHECK(seen >= 16);
  }
}

// What a file announces must be there, to the byte.
void no_files() {
  const std::vector<u8> file = file_of(kNarrow);
  Student student;
  for (const u64 size : {u64{0}, u64{8}, u64{60}, u64{100}, u64{file.size() - 1}})
    CHECK(!student.bind(file.data(), size));
  const auto with = [&](u64 at, u32 value) {
    std::vector<u8> bad = file;
    std::memcpy(bad.data() + at, &value, sizeof value);
    return bad;
  };
  const auto sizes_at = [](u64 index) { return 12 + 4 * index; };
  const u64 first_shift = 80 + 2 * 2 * kGateEntries;
  for (const auto& bad : {with(0, 0), with(8, 0xFFFFFFFFu), with(sizes_at(0), 24), with(sizes_at(1), 0),
                          with(sizes_at(8), 0xFFFFFFF8u), with(sizes_at(9), 0), with(sizes_at(9), 17),
                          with(sizes_at(11), 24), with(first_shift, 0), with(first_shift, 64)}) {
    CHECK(!student.bind(bad.data(), bad.size()));
  }
}

// Sums wrap as 32 bits do, and halves are rounded up.
void layers() {
  i8 weights[8 * 8] = {};
  i32 bias[8] = {3, -3, 5, -5, 0, 100000, -100000, 0}, multiplier[8];
  for (i32& each : multiplier) each = 1 << 20;
  for (u32 row = 0; row < 8; ++row) weights[row * 8] = 1;
  const Layer layer{weights, bias, multiplier, 21, 8, 8};
  const i16 x[8] = {0};
  i16 out[8];
  Layers<Scalar>::dense(layer, x, kSigned, out);
  const i16 expected[8] = {2, -1, 3, -2, 0, 8191, -8191, 0};
  CHECK(std::memcmp(out, expected, sizeof out) == 0);
}

}  // namespace

int main() {
  decides(kNarrow);
  decides(kOther);
  no_files();
  layers();
  return verdict("net");
}
