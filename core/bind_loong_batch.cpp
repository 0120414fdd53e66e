// Python's view of a batch of Loong matches: on the CPU, and what a GPU needs to play the same.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bind_loong.h"
#include "common/lanes.h"
#include "loong/appraise.h"
#include "loong/damage.h"
#include "loong/players.h"
#include "loong/text.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace sparring::loong;
using sparring::OneAtATime;

namespace {

using Lanes = nb::ndarray<const i64, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Choices = nb::ndarray<const i64, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FoilRows = nb::ndarray<const i32, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void check_levels(const std::vector<OwnedLevel*>& levels) {
  if (levels.empty()) throw std::invalid_argument("levels must not be empty");
  for (const OwnedLevel* level : levels) {
    if (level == nullptr) throw std::invalid_argument("levels must not be None");
  }
}

// The layout of lanes that can play all of these levels.
Layout layout_for(const std::vector<OwnedLevel*>& levels, bool lean) {
  check_levels(levels);
  Room room{};
  for (const OwnedLevel* level : levels) room = room.joined(lean ? lean_room(**level) : full_room(**level));
  return Layout::of(room);
}

MemoryLayout memory_layout_for(const std::vector<OwnedLevel*>& levels) {
  const auto of = [](const OwnedLevel& level) { return MemoryLayout::of(level->cells, level->most_alive); };
  MemoryLayout layout = of(*levels[0]);
  for (const OwnedLevel* level : levels) layout = layout.joined(of(*level));
  return layout;
}

constexpr const char* kFoilName = "foil";

Mirroring mirroring_of(const std::string& name) {
  const std::array<std::string, 3> names = {"never", "coin", "always"};
  const auto named = std::find(names.begin(), names.end(), name);
  if (named == names.end()) throw std::invalid_argument("mirror must be never, coin or always");
  return static_cast<Mirroring>(named - names.begin());
}

// The memories of the living of a lane as bytes, whatever pages they lie in: for each, by id, its Life, a bit for each
// of the pages that it can have, and those that it has.
class SavedMemories {
 public:
  SavedMemories(const Lane& lane, const Memories& memories) : lane_(lane), memories_(memories) {}

  u64 bytes() const {
    u64 sum = 0;
    for (u32 i = 0; i < lane_.match.alive; ++i) {
      const Memory memory = of(i);
      sum += sizeof(Life) + flag_bytes();
      for (u32 at = 0; at < memory.table_size(); ++at) sum += memory.table[at] != 0 ? sizeof(Page) : 0;
    }
    return sum;
  }

  void write(u8* out) const {
    for (u32 i = 0; i < lane_.match.alive; ++i) {
      const Memory memory = of(i);
      std::memcpy(out, &memory.life, sizeof(Life));
      u8* const flags = out + sizeof(Life);
      out = flags + flag_bytes();
      for (u32 at = 0; at < memory.table_size(); ++at) {
        if (memory.table[at] == 0) continue;
        flags[at / 8] = static_cast<u8>(flags[at / 8] | 1u << at % 8);
        std::memcpy(out, memory.pages + memory.table[at], sizeof(Page));
        out += sizeof(Page);
      }
    }
  }

  // What is wrong with such bytes, or null.
  const char* damage(const u8* in, u64 left) const {
    u64 pages = 0;
    for (u32 i = 0; i < lane_.match.alive; ++i) {
      if (left < sizeof(Life) + flag_bytes()) return "memories are missing";
      Life life;
      std::memcpy(&life, in, sizeof life);
      if (life.id != lane_.dragons[lane_.order[i]].id) return "a memory is of another dragon";
      if (const char* const found = wrong_in(life)) return found;
      u64 taken = 0;
      for (u32 at = 0; at < flag_bytes() * 8; ++at) {
        if ((in[sizeof life + at / 8] >> at % 8 & 1) == 0) continue;
        if (at >= Memory::pages_of(lane_.level.cells)) return "a memory is of another board";
        ++taken;
      }
      const u64 size = sizeof life + flag_bytes() + taken * sizeof(Page);
      if (left < size) return "pages of memory are missing";
      in += size;
      left -= size;
      pages += taken;
    }
    return pages > memories_.layout.capacity ? "it has more memory than its room" : nullptr;
  }

  // Of bytes without damage.
  void read(const u8* in) {
    memories_.restart();
    for (u32 i = 0; i < lane_.match.alive; ++i) {
      Memory memory = of(i);
      memory.begin(0, 0);
      std::memcpy(&memory.life, in, sizeof(Life));
      const u8* const flags = in + sizeof(Life);
      in = flags + flag_bytes();
      for (u32 at = 0; at < memory.table_size(); ++at) {
        if ((flags[at / 8] >> at % 8 & 1) == 0) continue;
        std::memcpy(memory.page(at * kPageTiles), in, sizeof(Page));
        in += sizeof(Page);
      }
    }
  }

 private:
  Memory of(u32 place) const { return memories_.of(lane_.order[place]); }
  u64 flag_bytes() const { return (Memory::pages_of(lane_.level.cells) + 7) / 8; }

  // What is read as a place or a number of something must be one.
  const char* wrong_in(const Life& life) const {
    const u32 width = static_cast<u32>(lane_.level.width), height = static_cast<u32>(lane_.level.height);
    if (life.head >= lane_.level.cells || life.facing > 3 || life.mirrored > 1 || life.symmetry >> kHypotheses != 0 ||
        life.seen_at > kRounds || life.role >= kRoles || life.claim > kNoClaim)
      return "a memory is none that a dragon can have";
    for (u32 i = 0; i < kHeardPackets; ++i) {
      const Packet packet = unpack_fields(life.heard[i]);
      if (packet.x >= width || packet.y >= height || packet.claim > kNoClaim || life.heard_at[i] > kRounds ||
          (packet.place >= kWindowTiles && packet.place != kNoReport))
        return "a memory has packets that nobody sends";
    }
    return nullptr;
  }

  Lane lane_;
  Memories memories_;
};

std::vector<Wishes> wishes_of(const FoilRows& rows) {
  if (rows.shape(0) < 1 || rows.shape(0) > 255 || rows.shape(1) != kWishes) {
    throw std::invalid_argument("wishes must be 1 to 255 rows of " + std::to_string(kWishes));
  }
  std::vector<Wishes> table(rows.shape(0));
  std::memcpy(static_cast<void*>(table.data()), rows.data(), table.size() * sizeof(Wishes));
  for (const Wishes& wishes : table) {
    if (!wishes.sound()) throw std::invalid_argument("wishes out of range: see Wishes::sound in core/loong/foil.h");
  }
  return table;
}

class Matches {
 public:
  Matches(const std::vector<OwnedLevel*>& levels, i64 lanes, int threads, bool lean, bool knowledge,
          const std::string& mirror, u64 build)
      : layout_(layout_for(levels, lean)), pool_(threads) {
    if (lanes < 1 || lanes > kMostLanes) throw std::invalid_argument("lanes must be 1 to 16777216");
    for (const OwnedLevel* level : levels) levels_.push_back(*level);
    for (const OwnedLevel& level : levels_) played_.push_back(&*level);
    const auto n = static_cast<std::size_t>(lanes);
    memory_.resize(n * layout_.bytes / sizeof(CacheLine));
    rows_.resize(n);
    views_.resize(n);
    batch_ = Batch{n, layout_, memory_.data()->bytes, played_.data(), rows_.data(), views_.data()};
    const Mirroring mirroring = mirroring_of(mirror);
    if (knowledge) {
      const MemoryLayout memories = memory_layout_for(levels);
      known_.reset(static_cast<u8*>(std::calloc(n, memories.bytes)));  // what is never touched takes no memory
      if (!known_) throw std::bad_alloc();
      knowing_ = Knowing{memories, known_.get(), build, mirroring};
    }
    for (std::size_t i = 0; i < n; ++i) begin(i, static_cast<i32>(i % levels.size()), static_cast<u64>(i));
  }
  Matches(const Matches&) = delete;  // the batch points to its own arrays

  i64 lanes() const { return static_cast<i64>(rows_.size()); }
  u64 lane_bytes() const { return layout_.bytes; }
  u32 slots() const { return layout_.room.dragons; }
  u64 knowledge_bytes() const { return knowing_ ? knowing_->layout.bytes : 0; }

  void restart(const Lanes& lanes, const Lanes& levels, const Seeds& seeds) {
    const std::size_t n = lanes.shape(0);
    if (levels.shape(0) != n || seeds.shape(0) != n)
      throw std::invalid_argument("lanes, levels and seeds must have the same length");
    const OneAtATime alone(inside_);
    std::vector<bool> named(rows_.size());
    for (std::size_t i = 0; i < n; ++i) {
      if (lanes.data()[i] < 0 || lanes.data()[i] >= this->lanes()) throw std::out_of_range("lane out of range");
      std::vector<bool>::reference here = named[static_cast<std::size_t>(lanes.data()[i])];
      if (here) throw std::invalid_argument("lane " + std::to_string(lanes.data()[i]) + " is named twice");
      here = true;
      if (levels.data()[i] < 0 || levels.data()[i] >= static_cast<i64>(levels_.size()))
        throw std::out_of_range("level out of range");
    }
    const nb::gil_scoped_release release;
    pool_.run(static_cast<long>(n), kRestartNanoseconds, [&](long first, long last) {
      for (long i = first; i < last; ++i) {
        begin(static_cast<u64>(lanes.data()[i]), static_cast<i32>(levels.data()[i]), seeds.data()[i]);
      }
    });
  }

  void act(const Rows& actions) {
    check_actions(actions);
    const ActionRow* rows = reinterpret_cast<const ActionRow*>(actions.data());
    const OneAtATime alone(inside_);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].waiting && !rows[i].valid())
        throw std::invalid_argument("lane " + std::to_string(i) + ": not an action");
    }
    const nb::gil_scoped_release release;
    run(kActNanoseconds, [&](u64 i) { carry_out(i, rows[i]); });
  }

  // Fills the rows of the lanes that wait with what their dragons know and may choose.
  void observe(const MutableRows& inputs, const MutableRows& masks) {
    check_knowledge();
    if (inputs.shape(0) != rows_.size() || inputs.shape(1) != sizeof(InputsRow))
      throw std::invalid_argument("inputs must be one row of LOONG_INPUTS for each lane");
    if (masks.shape(0) != rows_.size() || masks.shape(1) != sizeof(MaskRow))
      throw std::invalid_argument("mask must be one row of LOONG_MASK for each lane");
    const OneAtATime alone(inside_);
    InputsRow* input_rows = reinterpret_cast<InputsRow*>(inputs.data());
    MaskRow* mask_rows = reinterpret_cast<MaskRow*>(masks.data());
    const nb::gil_scoped_release release;
    run(kObserveNanoseconds, [&](u64 i) { observe_in(batch_, *knowing_, i, input_rows[i], mask_rows[i]); });
  }

  // Where the choice is kGiven the action of that row is carried out.
  void act_packed(const Choices& choices, const std::optional<Rows>& actions) {
    check_knowledge();
    if (choices.shape(0) != rows_.size()) throw std::invalid_argument("choices must be one number for each lane");
    if (actions) check_actions(*actions);
    const ActionRow* given = actions ? reinterpret_cast<const ActionRow*>(actions->data()) : nullptr;
    const OneAtATime alone(inside_);
    std::vector<i64> packed(rows_.size());
    std::memcpy(packed.data(), choices.data(), packed.size() * sizeof(i64));  // aligned
    run(kLookNanoseconds, [&](u64 i) { know_in(batch_, *knowing_, i); });
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (given != nullptr && packed[i] == kGiven) {
        if (rows_[i].waiting && !given[i].valid())
          throw std::invalid_argument("lane " + std::to_string(i) + ": not an action");
        continue;
      }
      if (!choosable_in(batch_, *knowing_, i, packed[i]))
        throw std::invalid_argument("lane " + std::to_string(i) + ": " + std::to_string(packed[i]) +
                                    " is no choice, or not of the role that is held");
    }
    const nb::gil_scoped_release release;
    run(kActNanoseconds, [&](u64 i) {
      if (given != nullptr && packed[i] == kGiven) {
        act_knowing(batch_, *knowing_, i, given[i]);
      } else {
        act_packed_in(batch_, *knowing_, i, packed[i]);
      }
    });
  }

  // What a dragon knows that lives when the match is over.
  nb::object known_at_end(i64 index, u32 slot) {
    check_knowledge();
    const OneAtATime alone(inside_);
    const Lane at = living(index, slot);
    if (at.match.over == 0) throw std::logic_error("this match goes on");
    auto* inputs = new InputsRow;
    nb::capsule owner(inputs, [](void* p) noexcept { delete static_cast<InputsRow*>(p); });
    know_at_end_in(batch_, *knowing_, static_cast<u64>(index), slot, *inputs);
    return nb::cast(nb::ndarray<nb::numpy, u8>(reinterpret_cast<u8*>(inputs), {sizeof(InputsRow)}, owner));
  }

  // What the dragon that must act remembers of its tiles, and its Life as bytes.
  nb::tuple remembered(i64 index) {
    check_knowledge();
    const OneAtATime alone(inside_);
    const Lane at = waiting(index);
    return memory_arrays(knowing_->of(batch_, static_cast<u64>(index)).of(at.match.acting));
  }

  // Fills the views of the lanes that wait.
  void look_around() {
    const OneAtATime alone(inside_);
    const nb::gil_scoped_release release;
    run(kLookNanoseconds, [&](u64 i) { look_in(batch_, i); });
  }

  // Fills the actions of the lanes that wait with what scripted players do.
  void decide(const Rows& scripts, u64 seed, const MutableRows& actions) {
    check_actions(actions);
    check_players(scripts, kScripts);
    const OneAtATime alone(inside_);
    const Script* players = reinterpret_cast<const Script*>(scripts.data());
    ActionRow* rows = reinterpret_cast<ActionRow*>(actions.data());
    const nb::gil_scoped_release release;
    run(kDecideNanoseconds, [&](u64 i) { decide_in(batch_, i, players + 2 * i, seed, rows[i]); });
  }

  // Every such player acts until a dragon of nobody's waits, or the match is over.
  void play(const Rows& players, u64 seed) {
    check_players(players, kPlayers);
    const std::size_t n = rows_.size();
    const bool foils = std::find(players.data(), players.data() + 2 * n, kFoilPlayer) != players.data() + 2 * n;
    if (foils) check_knowledge();
    const OneAtATime alone(inside_);
    const nb::gil_scoped_release release;
    pool_.run(static_cast<long>(n), foils ? kFoilNanoseconds : kPlayNanoseconds, [&](long first, long last) {
      const std::unique_ptr<FoilScratch> scratch = foils ? std::make_unique<FoilScratch>() : nullptr;
      for (long i = first; i < last; ++i) {
        play_in(batch_, known(), static_cast<u64>(i), players.data() + 2 * i, seed, scratch.get());
      }
    });
  }

  // ---- What a critic may know, and whoever keeps the books.

  // Fills the rows of the lanes that wait with the truth around their dragons.
  void appraise(const MutableRows& crops, const MutableRows& scalars) {
    if (crops.shape(0) != rows_.size() || crops.shape(1) != privileged::kCropBytes)
      throw std::invalid_argument("crop must be [lanes, " + std::to_string(privileged::kCropBytes) + "]");
    if (scalars.shape(0) != rows_.size() || scalars.shape(1) != privileged::kDragonScalars)
      throw std::invalid_argument("scalars must be [lanes, " + std::to_string(privileged::kDragonScalars) + "]");
    const OneAtATime alone(inside_);
    const nb::gil_scoped_release release;
    run(kAppraiseNanoseconds, [&](u64 i) {
      appraise_in(batch_, known(), i, crops.data() + i * privileged::kCropBytes,
                  scalars.data() + i * privileged::kDragonScalars);
    });
  }

  // Board and scalars of both teams of these lanes.
  nb::tuple boards(const Lanes& lanes) {
    constexpr std::size_t board_bytes = privileged::kBoardBytes, scalar_bytes = privileged::kTeamScalars;
    const std::size_t n = lanes.shape(0);
    std::vector<u8> board(n * 2 * board_bytes), scalars(n * 2 * scalar_bytes);
    each_lane(lanes, kBoardNanoseconds, [&](std::size_t i, u64 index) {
      privileged::Blocks blocks;
      boards_in(batch_, index, blocks, board.data() + 2 * i * board_bytes, scalars.data() + 2 * i * scalar_bytes);
    });
    return nb::make_tuple(own_array(std::move(board), {n, 2, board_bytes}),
                          own_array(std::move(scalars), {n, 2, scalar_bytes}));
  }

  // Of both teams of every lane as of now: living dragons, their total length, that of the queen, the longest.
  nb::object standings() {
    const std::size_t n = rows_.size();
    std::vector<i32> numbers(n * 2 * kStandingNumbers);
    const OneAtATime alone(inside_);
    {
      const nb::gil_scoped_release release;
      run(kStandingNanoseconds, [&](u64 i) { standings_in(batch_, i, numbers.data() + 2 * kStandingNumbers * i); });
    }
    return own_array(std::move(numbers), {n, 2, kStandingNumbers});
  }

  // By slot of these lanes: the dragon's id or -1, its team, column and row of its head, its length.
  nb::object roster(const Lanes& lanes) {
    const std::size_t n = lanes.shape(0), each = slots();
    std::vector<i32> numbers(n * each * kRosterNumbers, -1);
    each_lane(lanes, kStandingNanoseconds,
              [&](std::size_t i, u64 index) { roster_in(batch_, index, numbers.data() + kRosterNumbers * each * i); });
    return own_array(std::move(numbers), {n, each, kRosterNumbers});
  }

  // Of every lane, -1 where none waits: column and row of the head of the dragon that must act, its facing, whether its
  // life is mirrored, the sides of the board.
  nb::object frames() {
    const std::size_t n = rows_.size();
    std::vector<i32> numbers(n * kFrameNumbers, -1);
    const OneAtATime alone(inside_);
    {
      const nb::gil_scoped_release release;
      run(kStandingNanoseconds, [&](u64 i) { frame_in(batch_, known(), i, numbers.data() + kFrameNumbers * i); });
    }
    return own_array(std::move(numbers), {n, kFrameNumbers});
  }

  // The truth around every dragon that lives in these lanes, as if it acted now.
  nb::tuple everyone(const Lanes& lanes) {
    const std::size_t n = lanes.shape(0);
    std::vector<std::size_t> first(n + 1);
    std::array<std::vector<i64>, 4> ids;  // lane, slot, dragon, team
    std::vector<u8> crops, scalars;
    each_lane(
        lanes, kAppraiseNanoseconds,
        [&](std::size_t i, u64 index) {
          appraise_all_in(
              batch_, known(), index, first[i],
              Appraised{ids[0].data(), ids[1].data(), ids[2].data(), ids[3].data(), crops.data(), scalars.data()});
        },
        [&] {
          for (std::size_t i = 0; i < n; ++i)
            first[i + 1] = first[i] + batch_.lane(static_cast<u64>(lanes.data()[i])).match.alive;
          for (auto& column : ids) column.resize(first[n]);
          crops.resize(first[n] * privileged::kCropBytes);
          scalars.resize(first[n] * privileged::kDragonScalars);
        });
    const std::size_t m = first[n];
    return nb::make_tuple(own_array(std::move(ids[0]), {m}), own_array(std::move(ids[1]), {m}),
                          own_array(std::move(ids[2]), {m}), own_array(std::move(ids[3]), {m}),
                          own_array(std::move(crops), {m, privileged::kCropBytes}),
                          own_array(std::move(scalars), {m, privileged::kDragonScalars}));
  }

  // Fills the actions of the lanes that wait, and in which the foil plays the team that must act.
  void decide_foil(const Rows& who, const FoilRows& wishes, const MutableRows& actions) {
    check_knowledge();
    check_actions(actions);
    if (who.shape(0) != rows_.size() || who.shape(1) != 2) {
      throw std::invalid_argument("wishes_of must be [lanes, 2]: the rows of wishes of teams A and B");
    }
    const std::vector<Wishes> table = wishes_of(wishes);
    for (std::size_t i = 0; i < 2 * rows_.size(); ++i) {
      if (who.data()[i] != static_cast<u8>(Script::kNobody) && who.data()[i] >= table.size())
        throw std::invalid_argument("lane " + std::to_string(i / 2) + ": there are only " +
                                    std::to_string(table.size()) + " rows of wishes");
    }
    const OneAtATime alone(inside_);
    const u8* players = who.data();
    ActionRow* rows = reinterpret_cast<ActionRow*>(actions.data());
    const nb::gil_scoped_release release;
    pool_.run(static_cast<long>(rows_.size()), kFoilNanoseconds, [&](long first, long last) {
      const auto scratch = std::make_unique<FoilScratch>();
      for (long i = first; i < last; ++i) {
        const u64 index = static_cast<u64>(i);
        const u8 player = players[2 * index + rows_[index].team];
        if (rows_[index].waiting == 0 || player == static_cast<u8>(Script::kNobody)) continue;
        foil_in(batch_, *knowing_, index, table[player], *scratch, rows[index]);
      }
    });
  }

  nb::object init(i64 index) {
    const OneAtATime alone(inside_);
    const Lane at = waiting(index);
    return to_bytes(written([&](Out& out) { write_init(identity_of(at, at.dragons[at.match.acting]), out); }));
  }

  nb::object block(i64 index) {
    const OneAtATime alone(inside_);
    const Lane at = waiting(index);
    return to_bytes(written([&](Out& out) { write_block(at, at.match.acting, out); }));
  }

  void reply(i64 index, const nb::bytes& text) {
    const OneAtATime alone(inside_);
    Lane at = waiting(index);
    NoNotes unheard;
    std::vector<u8> steps(text.size());
    const Action action = read_reply(data_of(text), text.size(), steps.data(), unheard);
    if (knowing_) {
      apply_knowing(at, knowing_->of(batch_, static_cast<u64>(index)), knowing_->mirroring, action);
    } else {
      Silence silence;
      apply(at, action, silence);
    }
    go_on(batch_, static_cast<u64>(index));
  }

  // The living dragons of a lane by id, each with its slot, team, facing and its tiles (x, y) from the head on.
  nb::list dragons(i64 index) {
    const OneAtATime alone(inside_);
    const Lane at = lane(index);
    nb::list living;
    for (u32 i = 0; i < at.match.alive; ++i) {
      const Dragon& dragon = at.dragons[at.order[i]];
      auto* tiles = new std::vector<i32>(2 * dragon.length);
      for (u32 n = dragon.length, cell = dragon.tail; n-- > 0; cell = at.cells[cell].next) {
        const u32 tile = at.tile_of(cell), width = static_cast<u32>(at.level.width);
        (*tiles)[2 * n] = static_cast<i32>(tile % width);
        (*tiles)[2 * n + 1] = static_cast<i32>(tile / width);
      }
      nb::capsule owner(tiles, [](void* p) noexcept { delete static_cast<std::vector<i32>*>(p); });
      const nb::ndarray<nb::numpy, i32> body(tiles->data(), {dragon.length, 2}, owner);
      living.append(nb::make_tuple(dragon.id, at.order[i], dragon.team, dragon.facing, body));
    }
    return living;
  }

  nb::object pearls(i64 index) {
    const OneAtATime alone(inside_);
    const Lane at = lane(index);
    auto* lies = new std::vector<u8>(at.level.cells);
    for (u32 tile = 0; tile < at.level.cells; ++tile) (*lies)[tile] = at.cells[tile].pearl();
    nb::capsule owner(lies, [](void* p) noexcept { delete static_cast<std::vector<u8>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, u8>(
        lies->data(), {static_cast<std::size_t>(at.level.height), static_cast<std::size_t>(at.level.width)}, owner));
  }

  // What the dragon in a slot would be told if it were asked now.
  nb::object view_of(i64 index, u32 slot) {
    const OneAtATime alone(inside_);
    const Lane at = living(index, slot);
    auto* told = new View;
    look(at, slot, *told);
    nb::capsule owner(told, [](void* p) noexcept { delete static_cast<View*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, u8>(reinterpret_cast<u8*>(told), {sizeof(View)}, owner));
  }

  // The lanes as bytes, and behind them what their dragons know; what lies in a lane's room without being part of its
  // match is 0, as is what a row is longer than it needs.
  nb::object state() {
    const OneAtATime alone(inside_);
    const std::size_t n = rows_.size();
    u64 size = fixed_bytes();
    for (std::size_t i = 0; i < n && knowing_; ++i) size = std::max(size, fixed_bytes() + saved(i).bytes());
    auto* bytes = new std::vector<u8>(n * size);
    for (std::size_t i = 0; i < n; ++i) {
      const u64 level = static_cast<u64>(rows_[i].level);
      u8* const row = bytes->data() + i * size;
      std::memcpy(row, &level, sizeof level);
      std::memcpy(row + sizeof level, batch_.lane_memory(i), layout_.bytes);
      if (knowing_) saved(i).write(row + fixed_bytes());
    }
    nb::capsule owner(bytes, [](void* p) noexcept { delete static_cast<std::vector<u8>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, u8>(bytes->data(), {n, size}, owner));
  }

  void load_state(const Rows& state) {
    const std::size_t size = state.shape(1);
    if (state.shape(0) != rows_.size() || (knowing_ ? size < fixed_bytes() : size != fixed_bytes())) {
      throw std::invalid_argument("state must be [lanes, lane_bytes + 8] of the same core and levels");
    }
    const OneAtATime alone(inside_);
    std::vector<u64> copy(layout_.bytes /
                          sizeof(u64));  // aligned, and nothing is changed until all lanes are found sound
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const u64 level = level_in(state, i);
      const std::string lane = "state of lane " + std::to_string(i);
      if (level >= levels_.size()) throw std::invalid_argument(lane + ": it names a level that is not here");
      const u8* const row = state.data() + i * size;
      std::memcpy(copy.data(), row + sizeof level, layout_.bytes);
      const Lane at = Lane::at(copy.data(), layout_, *played_[level]);
      const char* found = damage(at);
      if (found == nullptr && knowing_) {
        const Memories memories = knowing_->of(batch_, i, static_cast<i32>(level));
        found = SavedMemories(at, memories).damage(row + fixed_bytes(), size - fixed_bytes());
      }
      if (found != nullptr) throw std::invalid_argument(lane + " is damaged: " + found);
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const u8* const row = state.data() + i * size;
      std::memcpy(batch_.lane_memory(i), row + sizeof(u64), layout_.bytes);
      rows_[i].level = static_cast<i32>(level_in(state, i));
      if (knowing_) saved(i).read(row + fixed_bytes());
      go_on(batch_, i);
    }
  }

  // The arrays of a batch that was played elsewhere, as it was made with the same levels and options.
  void take_over(const Rows& memory, const Rows& rows, const std::optional<Rows>& knowledge) {
    const std::size_t n = rows_.size();
    if (memory.shape(0) != n || memory.shape(1) != layout_.bytes || rows.shape(0) != n ||
        rows.shape(1) != sizeof(LaneRow) || knowledge.has_value() != knowing_.has_value() ||
        (knowledge && (knowledge->shape(0) != n || knowledge->shape(1) != knowing_->layout.bytes)))
      throw std::invalid_argument("memory, rows and knowledge must be those of as many lanes of the same batch");
    const OneAtATime alone(inside_);
    std::memcpy(memory_.data(), memory.data(), n * layout_.bytes);
    std::memcpy(static_cast<void*>(rows_.data()), rows.data(), n * sizeof(LaneRow));
    if (knowing_) std::memcpy(known_.get(), knowledge->data(), n * knowing_->layout.bytes);
  }

  nb::object memory_view(nb::handle owner) const {
    return nb::cast(nb::ndarray<nb::numpy, const u8>(memory_.data()->bytes, {rows_.size(), layout_.bytes}, owner));
  }

  nb::object knowledge_view(nb::handle owner) const {
    check_knowledge();
    return nb::cast(nb::ndarray<nb::numpy, const u8>(known_.get(), {rows_.size(), knowing_->layout.bytes}, owner));
  }

  template <typename T>
  static nb::object view(const std::vector<T>& rows, nb::handle owner) {
    const u8* bytes = reinterpret_cast<const u8*>(rows.data());
    return nb::cast(nb::ndarray<nb::numpy, const u8>(bytes, {rows.size(), sizeof(T)}, owner));
  }

  std::vector<LaneRow> rows_;
  std::vector<View> views_;

 private:
  // About what one lane of 32x32 takes, for LanePool: processor time in a batch of 2,048, the simplest scripted player.
  static constexpr long kActNanoseconds = 130, kLookNanoseconds = 450, kDecideNanoseconds = 160,
                        kRestartNanoseconds = 5000, kObserveNanoseconds = 6000, kPlayNanoseconds = 2000,
                        kAppraiseNanoseconds = 1500, kBoardNanoseconds = 10000, kStandingNanoseconds = 100,
                        kFoilNanoseconds = 30000;

  static constexpr i64 kMostLanes = 1 << 24;
  static constexpr i64 kGiven = -1;  // in the place of a choice

  struct alignas(64) CacheLine {
    u8 bytes[64];
  };
  struct Freed {
    void operator()(u8* bytes) const { std::free(bytes); }
  };

  static u64 level_in(const Rows& state, std::size_t lane) {
    u64 level = 0;
    std::memcpy(&level, state.data() + lane * state.shape(1), sizeof level);
    return level;
  }

  template <typename Array>
  void check_actions(const Array& actions) const {
    if (actions.shape(0) != rows_.size() || actions.shape(1) != sizeof(ActionRow)) {
      throw std::invalid_argument("actions must be one row of LOONG_ACTION for each lane");
    }
    if (reinterpret_cast<std::uintptr_t>(actions.data()) % alignof(ActionRow) != 0) {
      throw std::invalid_argument("actions must start at a multiple of 8 bytes: copy the array");
    }
  }

  Lane living(i64 index, u32 slot) {
    const Lane at = lane(index);
    u32 place = 0;
    while (place < at.match.alive && at.order[place] != slot) ++place;
    if (place == at.match.alive) throw std::out_of_range("no living dragon has this slot");
    return at;
  }

  void check_players(const Rows& players, u32 most) const {
    if (players.shape(0) != rows_.size() || players.shape(1) != 2) {
      throw std::invalid_argument("scripts must be [lanes, 2]: the players of teams A and B");
    }
    for (std::size_t i = 0; i < 2 * rows_.size(); ++i) {
      if (players.data()[i] >= most && players.data()[i] != static_cast<u8>(Script::kNobody))
        throw std::invalid_argument("lane " + std::to_string(i / 2) + ": there are only " + std::to_string(most) +
                                    (most == kScripts ? " scripted players" : " players"));
    }
  }

  const Knowing* known() const { return knowing_ ? &*knowing_ : nullptr; }

  void check_knowledge() const {
    if (!knowing_) throw std::logic_error("these matches were made without knowledge=True");
  }

  u64 fixed_bytes() const { return sizeof(u64) + layout_.bytes; }
  SavedMemories saved(std::size_t index) { return SavedMemories(batch_.lane(index), knowing_->of(batch_, index)); }

  void begin(u64 index, i32 level, u64 seed) {
    if (knowing_) {
      start_knowing(batch_, *knowing_, index, level, seed);
    } else {
      start(batch_, index, level, seed);
    }
  }

  void carry_out(u64 index, const ActionRow& action) {
    if (knowing_) {
      act_knowing(batch_, *knowing_, index, action);
    } else {
      sparring::loong::act(batch_, index, action);
    }
  }

  Lane lane(i64 index) {
    if (index < 0 || index >= lanes()) throw std::out_of_range("lane out of range");
    return batch_.lane(static_cast<u64>(index));
  }

  Lane waiting(i64 index) {
    const Lane at = lane(index);
    if (!rows_[static_cast<std::size_t>(index)].waiting) throw std::logic_error("no dragon waits in this lane");
    return at;
  }

  template <typename Body>
  void run(long nanoseconds, Body&& body) {
    pool_.run(static_cast<long>(rows_.size()), nanoseconds, [&](long first, long last) {
      for (long i = first; i < last; ++i) body(static_cast<std::size_t>(i));
    });
  }

  // The same for some lanes, by their place among them. `prepare` comes first, when the lanes are known to be there.
  template <typename Body, typename Prepare>
  void each_lane(const Lanes& lanes, long nanoseconds, Body&& body, Prepare&& prepare) {
    for (std::size_t i = 0; i < lanes.shape(0); ++i) {
      if (lanes.data()[i] < 0 || lanes.data()[i] >= this->lanes()) throw std::out_of_range("lane out of range");
    }
    const OneAtATime alone(inside_);
    const nb::gil_scoped_release release;
    prepare();
    pool_.run(static_cast<long>(lanes.shape(0)), nanoseconds, [&](long first, long last) {
      for (long i = first; i < last; ++i) body(static_cast<std::size_t>(i), static_cast<u64>(lanes.data()[i]));
    });
  }

  template <typename Body>
  void each_lane(const Lanes& lanes, long nanoseconds, Body&& body) {
    each_lane(lanes, nanoseconds, std::forward<Body>(body), [] {});
  }

  std::vector<OwnedLevel> levels_;
  std::vector<const Level*> played_;
  Layout layout_;
  std::vector<CacheLine> memory_;
  Batch batch_;
  std::unique_ptr<u8, Freed> known_;
  std::optional<Knowing> knowing_;
  sparring::LanePool pool_;
  std::atomic<bool> inside_{false};
};

// What a GPU holds of levels: all of them, one after another, and where each begins.
std::pair<nb::bytes, std::vector<u64>> level_pool(const std::vector<OwnedLevel*>& levels) {
  check_levels(levels);
  std::vector<u8> bytes;
  std::vector<u64> begins;
  for (const OwnedLevel* level : levels) {
    bytes.resize((bytes.size() + 63) / 64 * 64);
    begins.push_back(bytes.size());
    const u8* first = reinterpret_cast<const u8*>(level->memory.data());
    bytes.insert(bytes.end(), first, first + (*level)->bytes);
  }
  return {to_bytes(bytes), begins};
}

// A Batch over arrays elsewhere, as bytes.
nb::bytes foreign_batch(const std::vector<OwnedLevel*>& levels, u64 lanes, bool lean, std::uintptr_t memory,
                        std::uintptr_t table, std::uintptr_t rows, std::uintptr_t views) {
  const Batch batch{lanes,
                    layout_for(levels, lean),
                    reinterpret_cast<u8*>(memory),
                    reinterpret_cast<const Level* const*>(table),
                    reinterpret_cast<LaneRow*>(rows),
                    reinterpret_cast<View*>(views)};
  return nb::bytes(reinterpret_cast<const char*>(&batch), sizeof batch);
}

// Knowing over memory elsewhere, as bytes.
nb::bytes foreign_knowing(const std::vector<OwnedLevel*>& levels, const std::string& mirror, u64 build,
                          std::uintptr_t memory) {
  check_levels(levels);
  const Knowing knowing{memory_layout_for(levels), reinterpret_cast<u8*>(memory), build, mirroring_of(mirror)};
  return nb::bytes(reinterpret_cast<const char*>(&knowing), sizeof knowing);
}

// Bytes that a lane, what is known in it, and room to work in take, and slots of a lane.
nb::dict room_of(const std::vector<OwnedLevel*>& levels, bool lean) {
  const Layout layout = layout_for(levels, lean);
  nb::dict room;
  room["lane"] = layout.bytes;
  room["knowledge"] = memory_layout_for(levels).bytes;
  room["blocks"] = sizeof(privileged::Blocks);
  room["foil"] = sizeof(FoilScratch);
  room["slots"] = layout.room.dragons;
  return room;
}

}  // namespace

void bind_loong_batch(nb::module_& m) {
  nb::list scripts;
  for (const char* name : kScriptNames) scripts.append(name);
  m.attr("LOONG_SCRIPTS") = nb::tuple(scripts);
  scripts.append(kFoilName);
  m.attr("LOONG_PLAYERS") = nb::tuple(scripts);
  nb::dict wishes;
  const Wishes usual;
  for (u32 i = 0; i < kWishes; ++i) wishes[kWishNames[i]] = reinterpret_cast<const i32*>(&usual)[i];
  m.attr("LOONG_FOIL") = wishes;
  m.attr("LOONG_FOIL_BUILD") = kFoilBuild;
  m.def(
      "loong_lane_bytes",
      [](const std::vector<OwnedLevel*>& levels, bool lean) { return layout_for(levels, lean).bytes; }, "levels"_a,
      "lean"_a);
  m.def("loong_room", &room_of, "levels"_a, "lean"_a);
  m.def("loong_knowing", &foreign_knowing, "levels"_a, "mirror"_a, "build"_a, "memory"_a);
  m.def("loong_pool", &level_pool, "levels"_a);
  m.def("loong_batch", &foreign_batch, "levels"_a, "lanes"_a, "lean"_a, "memory"_a, "table"_a, "rows"_a, "views"_a);
  nb::dict planes;
  planes["board"] = names_of(privileged::kBoardNames);
  planes["crop"] = names_of(privileged::kCropNames);
  planes["scalars"] = names_of(privileged::kDragonNames);
  planes["team"] = names_of(privileged::kTeamNames);
  m.attr("LOONG_PRIVILEGED") = planes;
  m.attr("LOONG_ACTION") = dtype({{"aimed", "(4,)u8", offsetof(ActionRow, aimed)},
                                  {"split", "i4", offsetof(ActionRow, split)},
                                  {"protocol", "i4", offsetof(ActionRow, protocol)},
                                  {"ahead", "u4", offsetof(ActionRow, ahead)},
                                  {"kind", "u1", offsetof(ActionRow, kind)},
                                  {"step_count", "u1", offsetof(ActionRow, step_count)},
                                  {"aimed_directions", "u1", offsetof(ActionRow, aimed_directions)},
                                  {"extras", "u1", offsetof(ActionRow, extras)},
                                  {"steps", "(32,)u1", offsetof(ActionRow, steps)}},
                                 sizeof(ActionRow));
  m.attr("LOONG_LANE") = dtype({{"seed", "u8", offsetof(LaneRow, seed)},
                                {"level", "i4", offsetof(LaneRow, level)},
                                {"round", "i4", offsetof(LaneRow, round)},
                                {"dragon", "u4", offsetof(LaneRow, dragon)},
                                {"waiting", "u1", offsetof(LaneRow, waiting)},
                                {"team", "u1", offsetof(LaneRow, team)},
                                {"over", "u1", offsetof(LaneRow, over)},
                                {"fault", "u1", offsetof(LaneRow, fault)},
                                {"slot", "u4", offsetof(LaneRow, slot)},
                                {"winner", "u2", offsetof(LaneRow, winner)},
                                {"reason", "u2", offsetof(LaneRow, reason)},
                                {"dragons", "(2,)i4", offsetof(LaneRow, dragons)},
                                {"total", "(2,)i4", offsetof(LaneRow, total)},
                                {"queen", "(2,)i4", offsetof(LaneRow, queen)},
                                {"longest", "(2,)i4", offsetof(LaneRow, longest)},
                                {"deaths", "(2,5)u4", offsetof(LaneRow, deaths)}},
                               sizeof(LaneRow));
  m.attr("LOONG_VIEW") = dtype({{"newest", "(32,)u8", offsetof(View, newest)},
                                {"messages", "u4", offsetof(View, messages)},
                                {"round", "i4", offsetof(View, round)},
                                {"facing", "u4", offsetof(View, facing)},
                                {"length", "i4", offsetof(View, length)},
                                {"units", "i4", offsetof(View, units)},
                                {"x", "i4", offsetof(View, x)},
                                {"y", "i4", offsetof(View, y)},
                                {"wide", "u4", offsetof(View, wide)},
                                {"echoes", "(5,)i4", offsetof(View, echoes)},
                                {"countdown", "(7,7)i4", offsetof(View, countdown)},
                                {"north", "(8,7)i4", offsetof(View, north)},
                                {"west", "(7,8)i4", offsetof(View, west)},
                                {"id", "(7,7)u4", offsetof(View, id)},
                                {"body", "(7,7)u1", offsetof(View, body)},
                                {"pearl", "(7,7)u1", offsetof(View, pearl)}},
                               sizeof(View));
  nb::class_<Matches>(m, "LoongMatches")
      .def(nb::init<const std::vector<OwnedLevel*>&, i64, int, bool, bool, const std::string&, u64>(), "levels"_a,
           "lanes"_a, nb::kw_only(), "threads"_a = 1, "lean"_a = false, "knowledge"_a = false, "mirror"_a = "coin",
           "build"_a = 0)
      .def_prop_ro("lanes", &Matches::lanes)
      .def_prop_ro("lane_bytes", &Matches::lane_bytes)
      .def_prop_ro("slots", &Matches::slots)
      .def_prop_ro("knowledge_bytes", &Matches::knowledge_bytes)
      .def_prop_ro("rows", [](nb::handle self) { return Matches::view(nb::cast<Matches&>(self).rows_, self); })
      .def_prop_ro("views", [](nb::handle self) { return Matches::view(nb::cast<Matches&>(self).views_, self); })
      .def("restart", &Matches::restart, "lanes"_a.noconvert(), "levels"_a.noconvert(), "seeds"_a.noconvert())
      .def("look", &Matches::look_around)
      .def("act", &Matches::act, "actions"_a.noconvert())
      .def("observe", &Matches::observe, "inputs"_a.noconvert(), "mask"_a.noconvert())
      .def("act_packed", &Matches::act_packed, "choices"_a.noconvert(), "actions"_a.noconvert().none() = nb::none())
      .def("known_at_end", &Matches::known_at_end, "lane"_a, "slot"_a)
      .def("remembered", &Matches::remembered, "lane"_a)
      .def("decide_foil", &Matches::decide_foil, "wishes_of"_a.noconvert(), "wishes"_a.noconvert(),
           "actions"_a.noconvert())
      .def("decide", &Matches::decide, "scripts"_a.noconvert(), "seed"_a, "actions"_a.noconvert())
      .def("play", &Matches::play, "scripts"_a.noconvert(), "seed"_a)
      .def("appraise", &Matches::appraise, "crop"_a.noconvert(), "scalars"_a.noconvert())
      .def("boards", &Matches::boards, "lanes"_a.noconvert())
      .def("standings", &Matches::standings)
      .def("roster", &Matches::roster, "lanes"_a.noconvert())
      .def("frames", &Matches::frames)
      .def("everyone", &Matches::everyone, "lanes"_a.noconvert())
      .def("dragons", &Matches::dragons, "lane"_a)
      .def("pearls", &Matches::pearls, "lane"_a)
      .def("view_of", &Matches::view_of, "lane"_a, "slot"_a)
      .def("init", &Matches::init, "lane"_a)
      .def("block", &Matches::block, "lane"_a)
      .def("reply", &Matches::reply, "lane"_a, "text"_a)
      .def_prop_ro("memory", [](nb::handle self) { return nb::cast<Matches&>(self).memory_view(self); })
      .def_prop_ro("knowledge", [](nb::handle self) { return nb::cast<Matches&>(self).knowledge_view(self); })
      .def("take_over", &Matches::take_over, "memory"_a.noconvert(), "rows"_a.noconvert(),
           "knowledge"_a.noconvert().none() = nb::none())
      .def("state", &Matches::state)
      .def("load_state", &Matches::load_state, "state"_a.noconvert());
}
