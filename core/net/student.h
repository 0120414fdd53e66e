// The student: inputs, mask and memory of a dragon to its choice and next memory, in integers.
//
// `Student::bind` reads a file of weights in place, `decide<Scalar>` and `decide<Simd>` give the same numbers. The
// network is that of sparring.policies.student, layer by layer in the order of the file. A program holds one way only:
// what it does not name is not compiled.
#pragma once

#include "../loong/observe.h"
#include "simd.h"

namespace sparring::net {

using loong::MaskRow;

// Sizes, as StudentConfig names them and in the order of the file.
struct Sizes {
  u32 channels, first_stride, crop_code, overview_channels, overview_code, sonar_hidden, sonar_code, scalar_code,
      joined, experts, expert_hidden, memory, head_hidden, sprint_state;
};

constexpr u32 kMostChannels = 32, kMostWidth = 1024, kMostExperts = 16;
constexpr u32 kGateEntries = 4096, kGateStep = 16;
constexpr u32 kTables = 13, kTableEntries = 1024, kTableWidth = 8;
constexpr u32 kSteps = 3, kStop = 3, kClaims = loong::kNoClaim + 1;
constexpr u32 kChoiceLogits = 3 + kSteps + loong::kSplitSizes + 3 * kClaims;

// Where a decision is computed, about 150 KiB. Nothing in it need be kept.
struct Scratch {
  static constexpr u32 kGrid = (loong::kCropSide + 2) * (loong::kCropSide + 2) * kMostChannels;
  static constexpr u32 kCodes = 4 * kMostWidth + kTables * kTableWidth;
  alignas(16) i16 grid[2][kGrid];
  alignas(16) i16 flat[8 * 8 * kMostChannels];
  alignas(16) i16 codes[kCodes];
  alignas(16) i16 joined[kMostWidth], between[2 * kMostWidth], delta[kMostWidth];
  alignas(16) i16 told[3 * kMostWidth], own[3 * kMostWidth], state[kMostWidth];
  alignas(16) i32 logits[in_blocks(kChoiceLogits)];
};

// Sees what every layer gives, by the name of its part: an inspection build says it, a measurement takes the time.
struct Nobody {
  template <typename T>
  SPARRING_FN void operator()(const char*, const T*, u32) const {}
};

class Student {
 public:
  // Of a file in memory, aligned to 16, that outlives the student and is not copied. False: it is no such file.
  SPARRING_FN bool bind(const u8* blob, u64 size) {
    constexpr u8 magic[8] = {'S', 'P', 'A', 'R', 'N', 'E', 'T', '1'};
    constexpr u64 hash_bytes = 32, begin = sizeof magic + sizeof(u32);
    if (size < begin + sizeof(Sizes) + hash_bytes) return false;
    for (u32 i = 0; i < sizeof magic; ++i) {
      if (blob[i] != magic[i]) return false;
    }
    const u32* head = reinterpret_cast<const u32*>(blob + sizeof magic);
    if (head[0] != size - hash_bytes) return false;
    sizes_ = *reinterpret_cast<const Sizes*>(head + 1);
    if (!possible(sizes_)) return false;
    const Sizes& s = sizes_;
    Reader file{blob, begin + sizeof(Sizes), head[0]};
    sigmoid_ = file.take<i16>(kGateEntries);
    tanh_ = file.take<i16>(kGateEntries);
    for (u32 i = 0; i < 4; ++i) {
      crop_[i] = file.layer(s.channels, 9 * (i == 0 ? loong::kCropPlanes : s.channels));
    }
    side_ = s.first_stride == 1 ? loong::kCropSide : kHalfCrop;
    last_side_ = (side_ + 1) / 2;
    crop_code_ = file.layer(s.crop_code, last_side_ * last_side_ * s.channels);
    overview_ = file.layer(s.overview_channels, 9 * loong::kOverviewPlanes);
    overview_code_ = file.layer(s.overview_code, kHalfOverview * kHalfOverview * s.overview_channels);
    sonar_[0] = file.layer(s.sonar_hidden, loong::kSonarBytes);
    sonar_[1] = file.layer(s.sonar_hidden, s.sonar_hidden);
    sonar_code_ = file.layer(s.sonar_code, 2 * s.sonar_hidden);
    scalar_code_ = file.layer(s.scalar_code, loong::kScalars);
    tables_ = Layer{};
    tables_.shift = file.take_shift();
    tables_.multiplier = file.take<i32>(in_blocks(kTables));
    file.take<i32>(in_blocks(kTables));  // they have no biases
    tables_.weights = file.take<i8>(kTables * kTableEntries * kTableWidth);
    join_ = file.layer(s.joined, codes());
    router_ = file.layer(s.experts, s.joined);
    for (u32 i = 0; i < s.experts; ++i) up_[i] = file.layer(s.expert_hidden, s.joined);
    for (u32 i = 0; i < s.experts; ++i) down_[i] = file.layer(s.joined, s.expert_hidden);
    told_ = file.layer(3 * s.memory, s.joined);
    own_ = file.layer(3 * s.memory, s.memory);
    role_ = file.layer(loong::kRoles, s.memory);
    hidden_ = file.layer(s.head_hidden, s.memory, loong::kRoles);
    choice_ = file.layer(kChoiceLogits, s.head_hidden);
    sprint_start_ = file.layer(s.sprint_state, s.head_hidden);
    sprint_own_ = file.layer(3 * s.sprint_state, s.sprint_state);
    step_ = file.layer(kSteps + 1, s.sprint_state);
    sprint_told_ = file.take<i16>(u64{kSteps} * 3 * s.sprint_state);
    return file.good() && (file.at + kAlignment - 1) / kAlignment * kAlignment == head[0];
  }

  SPARRING_FN const Sizes& sizes() const { return sizes_; }

  // The packed choice (actions.h). memory: int16 [memory], zeros at birth, becomes the next one.
  template <typename Way, typename Watch = Nobody>
  SPARRING_FN i64 decide(const loong::InputsRow& inputs, const MaskRow& mask, i16* memory, Scratch& scratch,
                         Watch&& watch = Watch{}) const {
    encode<Way>(inputs, scratch, watch);
    remember<Way>(own_, scratch.told, memory, sizes_.memory, scratch);
    watch("memory", memory, sizes_.memory);
    return choose<Way>(mask, memory, scratch, watch);
  }

 private:
  static constexpr u32 kHalfCrop = (loong::kCropSide + 1) / 2, kHalfOverview = loong::kOverviewSide / 2;

  SPARRING_FN static bool possible(const Sizes& s) {
    const auto channels = [](u32 number) { return number == 8 || number == 16 || number == 32; };
    const auto width = [](u32 number) { return number >= 8 && number <= kMostWidth && number % 8 == 0; };
    return channels(s.channels) && (s.first_stride == 1 || s.first_stride == 2) && channels(s.overview_channels) &&
           width(s.crop_code) && width(s.overview_code) && width(s.sonar_hidden) && width(s.sonar_code) &&
           width(s.scalar_code) && width(s.joined) && s.experts >= 1 && s.experts <= kMostExperts &&
           width(s.expert_hidden) && width(s.memory) && width(s.head_hidden) && width(s.sprint_state);
  }

  SPARRING_FN u32 codes() const {
    return sizes_.crop_code + sizes_.overview_code + sizes_.sonar_code + sizes_.scalar_code + kTables * kTableWidth;
  }

  // What the memory is told, into scratch.told.
  template <typename Way, typename Watch>
  SPARRING_FN void encode(const loong::InputsRow& inputs, Scratch& scratch, Watch& watch) const {
    using L = Layers<Way>;
    const Sizes& s = sizes_;
    i16* code = scratch.codes;
    encode_crop<Way>(&inputs.crop[0][0][0], code, scratch, watch);
    code += s.crop_code;

    constexpr u32 side = loong::kOverviewSide, planes = loong::kOverviewPlanes;
    enter(&inputs.overview[0][0][0], side, planes, scratch.grid[0]);
    L::convolve(overview_, scratch.grid[0], side, planes, 2, kHalfOverview,
                Cells::flat(scratch.flat, kHalfOverview, s.overview_channels));
    watch("overview.convolution", scratch.flat, kHalfOverview * kHalfOverview * s.overview_channels);
    L::dense(overview_code_, scratch.flat, kHidden, code);
    watch("overview.dense", code, s.overview_code);
    code += s.overview_code;

    encode_sonar<Way>(inputs.sonar, code, scratch);
    watch("sonar.dense", code, s.sonar_code);
    code += s.sonar_code;
    for (u32 i = 0; i < loong::kScalars; ++i) scratch.between[i] = inputs.scalars[i];
    L::dense(scalar_code_, scratch.between, kHidden, code);
    watch("scalars", code, s.scalar_code);
    code += s.scalar_code;
    look_up(inputs, code);
    watch("tables", code, kTables * kTableWidth);

    L::dense(join_, scratch.codes, kHidden, scratch.joined);
    watch("join", scratch.joined, s.joined);
    L::logits(router_, scratch.joined, scratch.logits);
    watch("experts.router", scratch.logits, s.experts);
    const u32 expert = best(scratch.logits, s.experts);
    L::dense(up_[expert], scratch.joined, kHidden, scratch.between);
    L::dense(down_[expert], scratch.between, kSigned, scratch.delta);
    for (u32 i = 0; i < s.joined; ++i) {
      scratch.joined[i] = static_cast<i16>(cut(scratch.joined[i] + scratch.delta[i], kHidden));
    }
    watch("experts", scratch.joined, s.joined);
    L::dense(told_, scratch.joined, kGate, scratch.told);
    watch("gates", scratch.told, 3 * s.memory);
  }

  template <typename Way, typename Watch>
  SPARRING_FN void encode_crop(const u8* crop, i16* code, Scratch& scratch, Watch& watch) const {
    constexpr const char* names[] = {"crop.convolutions.0", "crop.convolutions.1", "crop.convolutions.2"};
    using L = Layers<Way>;
    const u32 channels = sizes_.channels;
    i16 *from = scratch.grid[0], *to = scratch.grid[1];
    enter(crop, loong::kCropSide, loong::kCropPlanes, from);
    for (u32 i = 0; i < 3; ++i) {
      clear_border(to, side_, channels);
      L::convolve(crop_[i], from, i == 0 ? loong::kCropSide : side_, i == 0 ? loong::kCropPlanes : channels,
                  i == 0 ? sizes_.first_stride : 1, side_, Cells::bordered(to, side_, channels));
      watch(names[i], to, (side_ + 2) * (side_ + 2) * channels);  // with its border
      i16* const swap = from;
      from = to;
      to = swap;
    }
    L::convolve(crop_[3], from, side_, channels, 2, last_side_, Cells::flat(scratch.flat, last_side_, channels));
    watch("crop.convolutions.3", scratch.flat, last_side_ * last_side_ * channels);
    L::dense(crop_code_, scratch.flat, kHidden, code);
    watch("crop.dense", code, sizes_.crop_code);
  }

  template <typename Way>
  SPARRING_FN void encode_sonar(const u8 (&sonar)[loong::kHeardPackets][loong::kSonarBytes], i16* code,
                                Scratch& scratch) const {
    using L = Layers<Way>;
    const u32 width = sizes_.sonar_hidden;
    i16 *sum = scratch.between, *most = scratch.between + width, *packet = scratch.state, *first = scratch.joined,
        *second = scratch.delta;
    for (u32 i = 0; i < 2 * width; ++i) sum[i] = 0;
    for (u32 place = 0; place < loong::kHeardPackets; ++place) {
      if (sonar[place][loong::heard::kValid] == 0) continue;
      for (u32 i = 0; i < loong::kSonarBytes; ++i) packet[i] = sonar[place][i];
      L::dense(sonar_[0], packet, kHidden, first);
      L::dense(sonar_[1], first, kHidden, second);
      for (u32 i = 0; i < width; ++i) {
        // At most 65,528, which is read as unsigned below.
        sum[i] = static_cast<i16>(sum[i] + second[i]);
        most[i] = second[i] > most[i] ? second[i] : most[i];
      }
    }
    for (u32 i = 0; i < width; ++i) {
      sum[i] = static_cast<i16>((static_cast<u32>(static_cast<unsigned short>(sum[i])) + loong::kHeardPackets / 2) /
                                loong::kHeardPackets);
    }
    L::dense(sonar_code_, sum, kHidden, code);
  }

  // The codes of the window's tables.
  SPARRING_FN void look_up(const loong::InputsRow& inputs, i16* code) const {
    constexpr u32 side = loong::kWindow, first = (loong::kCropSide - side) / 2;
    u32 tile[side][side];
    for (u32 y = 0; y < side; ++y) {
      for (u32 x = 0; x < side; ++x) tile[y][x] = kind_of(inputs.crop[first + y][first + x]);
    }
    u32 table = 0;
    for (u32 y = 1; y < side - 1; ++y) {
      for (u32 x = 1 + (y + 1) % 2; x < side - 1; x += 2, ++table, code += kTableWidth) {
        const u32 entry =
            tile[y][x] | tile[y - 1][x] << 2 | tile[y][x + 1] << 4 | tile[y + 1][x] << 6 | tile[y][x - 1] << 8;
        const i8* const found = tables_.weights + (table * kTableEntries + entry) * kTableWidth;
        for (u32 i = 0; i < kTableWidth; ++i) {
          code[i] = static_cast<i16>(cut(scaled(found[i], tables_.multiplier[table], tables_.shift), kSigned));
        }
      }
    }
  }

  // Of a tile: nothing, a pearl, a friend or an enemy.
  SPARRING_FN static u32 kind_of(const u8* planes) {
    using namespace loong::crop;
    if ((planes[kEnemyHead] | planes[kEnemyBody]) != 0) return 3;
    if ((planes[kOwn] | planes[kAllyHead] | planes[kAllyBody]) != 0) return 2;
    return planes[kPearl] >= 64;
  }

  // A gated recurrent unit of `width`: its state after it is told [3 * width].
  template <typename Way>
  SPARRING_FN void remember(const Layer& gates, const i16* told, i16* state, u32 width, Scratch& scratch) const {
    Layers<Way>::dense(gates, state, kGate, scratch.own);
    const i16* const own = scratch.own;
    for (u32 i = 0; i < width; ++i) {
      const i32 reset = curve(sigmoid_, told[i] + own[i]), update = curve(sigmoid_, told[width + i] + own[width + i]);
      const i32 fresh = curve(tanh_, told[2 * width + i] + product(reset, own[2 * width + i]));
      state[i] = static_cast<i16>(fresh + product(update, state[i] - fresh));
    }
  }

  SPARRING_FN static i32 curve(const i16* table, i32 x) {
    return table[static_cast<u32>(cut(x, kGate) - kGate.low) / kGateStep];
  }

  // x times a gate, rounded half up.
  SPARRING_FN static i32 product(i32 gate, i32 x) { return (gate * x + (1 << 14)) >> 15; }

  template <typename Way, typename Watch>
  SPARRING_FN i64 choose(const MaskRow& mask, const i16* memory, Scratch& scratch, Watch& watch) const {
    using L = Layers<Way>;
    loong::Choice choice{};
    choice.role = mask.held;
    if (mask.role_due != 0) {
      L::logits(role_, memory, scratch.logits);
      watch("heads.role", scratch.logits, loong::kRoles);
      choice.role = best(scratch.logits, loong::kRoles);
    }
    L::dense(hidden_, memory, kHidden, scratch.between, choice.role);
    watch("heads.hidden", scratch.between, sizes_.head_hidden);
    L::logits(choice_, scratch.between, scratch.logits);
    watch("heads.logits", scratch.logits, kChoiceLogits);
    const i32 *kind = scratch.logits, *direction = kind + 3, *size = direction + kSteps,
              *claim = size + loong::kSplitSizes;
    choice.kind = best(kind, 3, mask.kinds);
    if (choice.kind == loong::kChooseMove) choice.direction = best(direction, kSteps);
    if (choice.kind == loong::kChooseSplit) {
      choice.segments = best(size, loong::kSplitSizes, mask.sizes) + loong::kLeastSegments;
    }
    choice.claim = best(claim + choice.kind * kClaims, kClaims);
    if (choice.kind == loong::kChooseSprint) {
      decode_sprint<Way>(mask.payable, choice, scratch);
      watch("heads.sprint", scratch.state, sizes_.sprint_state);
    }
    return loong::pack(choice);
  }

  // From scratch.between, what all choices are read from.
  template <typename Way>
  SPARRING_FN void decode_sprint(u32 payable, loong::Choice& choice, Scratch& scratch) const {
    constexpr u8 any[kSteps + 1] = {1, 1, 1, 1}, go_on[kSteps + 1] = {1, 1, 1, 0};
    constexpr u32 least_steps = 2;
    const u32 width = sizes_.sprint_state, most = payable < loong::kMostSprint ? payable : loong::kMostSprint;
    Layers<Way>::dense(sprint_start_, scratch.between, kGate, scratch.state);
    for (u32 i = 0; i < width; ++i) scratch.state[i] = static_cast<i16>(curve(tanh_, scratch.state[i]));
    while (choice.step_count < most) {
      Layers<Way>::logits(step_, scratch.state, scratch.logits);
      const u32 step = best(scratch.logits, kSteps + 1, choice.step_count < least_steps ? go_on : any);
      if (step == kStop) return;
      choice.steps[choice.step_count++] = static_cast<u8>(step);
      if (choice.step_count < most)
        remember<Way>(sprint_own_, sprint_told_ + step * 3 * width, scratch.state, width, scratch);
    }
  }

  // The first of the largest.
  SPARRING_FN static u32 best(const i32* logits, u32 count) {
    u32 at = 0;
    for (u32 i = 1; i < count; ++i) {
      if (logits[i] > logits[at]) at = i;
    }
    return at;
  }

  // The first of the largest legal ones; 0 where nothing is legal.
  SPARRING_FN static u32 best(const i32* logits, u32 count, const u8* legal) {
    u32 at = count;
    for (u32 i = 0; i < count; ++i) {
      if (legal[i] != 0 && (at == count || logits[i] > logits[at])) at = i;
    }
    return at == count ? 0 : at;
  }

  // Bytes into a bordered grid.
  SPARRING_FN static void enter(const u8* bytes, u32 side, u32 planes, i16* grid) {
    clear_border(grid, side, planes);
    for (u32 y = 0; y < side; ++y) {
      i16* const row = grid + ((y + 1) * (side + 2) + 1) * planes;
      for (u32 i = 0; i < side * planes; ++i) row[i] = bytes[y * side * planes + i];
    }
  }

  Sizes sizes_;
  u32 side_, last_side_;
  const i16 *sigmoid_, *tanh_, *sprint_told_;
  Layer crop_[4], crop_code_, overview_, overview_code_, sonar_[2], sonar_code_, scalar_code_, tables_, join_, router_,
      up_[kMostExperts], down_[kMostExperts], told_, own_, role_, hidden_, choice_, sprint_start_, sprint_own_, step_;
};

}  // namespace sparring::net
