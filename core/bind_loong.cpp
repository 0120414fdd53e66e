// Python's view of Loong: levels, a batch of matches, and one match as the judge's host sees it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <vector>

#include "common/lanes.h"
#include "loong/text.h"

namespace nb = nanobind;
using namespace nb::literals;
using sparring::i32;
using sparring::i64;
using sparring::u32;
using sparring::u64;
using sparring::u8;
using namespace sparring::loong;

namespace {

nb::bytes to_bytes(const std::vector<u8>& bytes) {
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

const u8* data_of(const nb::bytes& bytes) { return static_cast<const u8*>(bytes.data()); }

// What `write` puts out, in a vector of the right size.
template <typename Write>
std::vector<u8> written(Write&& write) {
  std::vector<u8> bytes(4096);
  for (;;) {
    Out out{bytes.data(), bytes.size(), 0};
    write(out);
    bytes.resize(out.size);
    if (out.size <= out.capacity) return bytes;
  }
}

struct OwnedLevel {
  std::vector<u64> memory;
  const Level& operator*() const { return *reinterpret_cast<const Level*>(memory.data()); }
  const Level* operator->() const { return &**this; }
};

// What the 16 bits of a cell's number and the 15 of a dragon's slot can tell apart.
constexpr u64 kMostCells = 65536, kMostDragons = 32766;

// The level, or the organisers' error text. Throws where the judge takes the map and this engine has no room for it.
nb::object read_level(const nb::bytes& file) {
  const MapNeeds needs = map_needs(data_of(file), file.size());
  std::vector<u64> level(needs.level_bytes / 8 + 1), scratch(needs.scratch_bytes / 8 + 1);
  const Level* read = nullptr;
  const std::vector<u8> error =
      written([&](Out& out) { read = read_map(data_of(file), file.size(), level.data(), scratch.data(), out); });
  if (read == nullptr) return to_bytes(error);
  if (u64{read->cells} + read->repeats > kMostCells || read->most_alive > kMostDragons) {
    throw std::runtime_error("the map is too big for this engine: " + std::to_string(read->cells) + " tiles and " +
                             std::to_string(read->repeats) + " repeated segments (65536 at most together), room for " +
                             std::to_string(read->most_alive) + " living dragons (32766 at most)");
  }
  level.resize(read->bytes / 8);
  level.shrink_to_fit();
  return nb::cast(OwnedLevel{std::move(level)});
}

// What happened how often: a comparison with the judge proves little about what it never met.
constexpr const char* kCoverageNames[] = {"death W",
                                          "death S",
                                          "death O",
                                          "death H",
                                          "death A",
                                          "free step",
                                          "paid step",
                                          "unpayable step",
                                          "pearl in a sprint",
                                          "split",
                                          "split of a wrong size",
                                          "split over the limit",
                                          "turn in the round of birth",
                                          "step through a portal",
                                          "ray through a portal",
                                          "ray: nothing",
                                          "ray: kelp",
                                          "ray: ally",
                                          "ray: ally head",
                                          "ray: enemy",
                                          "ray: enemy head",
                                          "turn without echoes",
                                          "turn with echoes",
                                          "pearl blocked",
                                          "end: one team out",
                                          "end: both teams out",
                                          "end: queen",
                                          "end: longest",
                                          "end: total",
                                          "end: draw"};
constexpr std::size_t kCoverage = std::size(kCoverageNames);
enum Covered : std::size_t {
  kFreeStep = 5,
  kPaidStep,
  kUnpayable,
  kSprintPearl,
  kSplitDone,
  kSplitSize,
  kSplitLimit,
  kNewbornTurn,
  kPortalStep,
  kPortalRay,
  kRayHit,
  kNarrowTurn = kRayHit + 6,
  kWideTurn,
  kBlocked,
  kOneOut,
  kBothOut,
  kByQueen,
  kByLongest,
  kByTotal,
  kDraw,
};
static_assert(kDraw + 1 == kCoverage);

// Counts what a replay would hold, and queues what the host of a match is told.
struct Host : Silence, NoNotes {
  struct Call {
    u32 id;
    i32 round;  // of a death
    char why;   // of a death; 0 for a birth
    Identity who;
  };

  // Bits of the judge's debug mask: which notes a replay keeps.
  static constexpr u32 kLogs = 1, kIndicators = 2, kDrawings = 4, kUnreadable = 8, kLimits = 16, kAlways = 0;
  static constexpr u64 kMostNotes = 500000, kMostText = 16u << 20, kLongestIndicator = 512;

  Host(const Level& l, u32 mask) : level(&l), debug(mask) {}

  const Level* level;
  u32 debug;
  i32 events = 0;
  std::deque<Call> calls;
  u64 covered[kCoverage] = {};
  u32 team = 0;  // whose reply is read
  u64 notes[2] = {}, text[2] = {};
  bool silenced[2] = {};
  bool indicates = false;
  u64 indicator_size = 0;

  // Beyond a limit the judge notes that once, and keeps nothing more of the team.
  void note(u32 group, u64 size) {
    if (group != kAlways && (debug & group) == 0) return;
    if ((debug & kLimits) != 0) {
      if (silenced[team]) return;
      silenced[team] = notes[team] == kMostNotes || text[team] + size > kMostText;
      ++notes[team];
      text[team] += size;
    }
    ++events;
  }

  template <typename Write>
  static u64 size_of(Write&& write) {
    Out out{nullptr, 0, 0};
    write(out);
    return out.size;
  }

  void unreadable(Span line) {
    note(kUnreadable, size_of([&](Out& out) { note_unreadable(line, out); }));
  }
  void log(Span line) { note(kLogs, line.size()); }
  void draw(bool, const i32*) { note(kDrawings, 0); }
  void indicator(Span line) {
    indicates = true;
    indicator_size = line.size();
  }

  void round_starts(i32) { ++events; }
  void turn_starts(const Dragon& dragon, bool newborn) {
    ++events;
    team = dragon.team;
    covered[kNewbornTurn] += newborn;
    ++covered[dragon.wide ? kWideTurn : kNarrowTurn];
  }
  void countdown(u32, i32) { ++events; }
  void pearl(u32, bool) { ++events; }
  void pearl_blocked(u32) { ++covered[kBlocked]; }
  void acts(const Dragon&, const Action&) {
    const bool cut = (debug & kLimits) != 0 && indicator_size > kLongestIndicator;
    if (indicates) note(kIndicators, cut ? kLongestIndicator : indicator_size);
    indicates = false;
    ++events;
  }
  void appears(const Dragon& dragon) {
    calls.push_back(
        Call{dragon.id, 0, 0, Identity{dragon.id, dragon.team, level->width, level->height, level->unit_limit}});
  }
  void step(const Dragon&, u32 index, bool paid, bool ate, bool portal) {
    ++covered[paid ? kPaidStep : kFreeStep];
    covered[kSprintPearl] += ate && index > 0;
    covered[kPortalStep] += portal;
  }
  void body(const Lane&, const Dragon&) { ++events; }
  void cannot_pay(const Dragon&, u32 step) {
    note(kAlways, size_of([&](Out& out) { note_cannot_pay(step, out); }));
    ++covered[kUnpayable];
  }
  void cannot_split(const Dragon& dragon, i32 segments, bool limit) {
    note(kAlways, size_of([&](Out& out) {
           if (limit) {
             note_limit(level->unit_limit, out);
           } else {
             note_cannot_split(segments, dragon.length, out);
           }
         }));
    ++covered[limit ? kSplitLimit : kSplitSize];
  }
  void split(const Lane&, const Dragon&, const Dragon&) {
    ++events;
    ++covered[kSplitDone];
  }
  void dies(const Dragon& dragon, Death why, i32 round) {
    ++events;
    ++covered[static_cast<std::size_t>(why)];
    calls.push_back(Call{dragon.id, round, letter(why), Identity{}});
  }
  void ray(u32, const Ray& ray) {
    ++events;
    ++covered[kRayHit + static_cast<std::size_t>(ray.hit)];
    covered[kPortalRay] += ray.portals > 0;
  }
};

// One match as the judge's host sees it: births, deaths and questions, in the judge's order.
class TextMatch {
 public:
  TextMatch(const OwnedLevel& level, u64 seed, u32 debug)
      : level_(level), layout_(Layout::of(full_room(*level_))), memory_(layout_.bytes / 8), host_(*level_, debug) {
    Lane at = lane();
    restart(at, seed, host_);
  }

  // ("spawn", id, init), ("death", id, round, letter), ("ask", id, block) or ("end", result). After "ask" comes reply.
  nb::object next() {
    if (!host_.calls.empty()) {
      const Host::Call call = host_.calls.front();
      host_.calls.pop_front();
      if (call.why != 0) return nb::make_tuple("death", call.id, call.round, std::string(1, call.why));
      return nb::make_tuple("spawn", call.id, to_bytes(written([&](Out& out) { write_init(call.who, out); })));
    }
    Lane at = lane();
    if (asked_) throw std::logic_error("the dragon that was asked last has not replied");
    if (advance(at, host_)) {
      asked_ = true;
      block_ = written([&](Out& out) { write_block(at, at.match.acting, out); });
      return nb::make_tuple("ask", at.dragons[at.match.acting].id, to_bytes(block_));
    }
    if (at.match.fault != Fault::kSound) throw std::runtime_error("this match needs more room than any match can");
    return nb::make_tuple("end", result());
  }

  void reply(const nb::bytes& text) {
    Lane at = lane();
    if (!asked_) throw std::logic_error("no dragon is asked");
    asked_ = false;
    std::vector<u8> steps(text.size());
    const Action action = read_reply(data_of(text), text.size(), steps.data(), host_);
    apply(at, action, host_);
  }

  // Does the block of the dragon that is asked say what its view says?
  bool views_agree() {
    Lane at = lane();
    if (!asked_) throw std::logic_error("no dragon is asked");
    View seen, told;
    look(at, at.match.acting, seen);
    const Identity who = identity_of(at, at.dragons[at.match.acting]);
    return read_block(block_.data(), block_.size(), who, told) && std::memcmp(&seen, &told, sizeof(View)) == 0;
  }

  // The twelve numbers of the judge's result.
  nb::tuple result() {
    const Lane at = lane();
    const Standing a = standing(at, 0), b = standing(at, 1);
    const Match& match = at.match;
    return nb::make_tuple(match.round, static_cast<int>(match.winner), static_cast<int>(match.reason), a.dragons,
                          b.dragons, a.total, b.total, host_.events, a.queen, b.queen, a.longest, b.longest);
  }

  nb::dict coverage() {
    const Lane at = lane();
    u64 covered[kCoverage];
    std::memcpy(covered, host_.covered, sizeof covered);
    if (at.match.over != 0) {
      const Standing a = standing(at, 0), b = standing(at, 1);
      ++covered[at.match.reason == Reason::kEliminated ? (at.match.winner == 0 ? kBothOut : kOneOut)
                : a.queen != b.queen                   ? kByQueen
                : a.longest != b.longest               ? kByLongest
                : a.total != b.total                   ? kByTotal
                                                       : kDraw];
    }
    nb::dict named;
    for (std::size_t i = 0; i < kCoverage; ++i) named[kCoverageNames[i]] = covered[i];
    return named;
  }

 private:
  Lane lane() { return Lane::at(memory_.data(), layout_, *level_); }

  OwnedLevel level_;
  Layout layout_;
  std::vector<u64> memory_;
  Host host_;
  std::vector<u8> block_;
  bool asked_ = false;
};

// An action as one row of bytes; see the fields in _core.pyi.
struct ActionRow {
  u64 aimed[4];
  i32 split, protocol;
  u32 ahead;
  u8 kind, step_count, aimed_directions, extras;
  u8 steps[32];

  static constexpr u8 kSendsAhead = 1, kSetsProtocol = 2;

  bool valid() const {
    if (kind > static_cast<u8>(Kind::kSplit) || step_count > sizeof steps || aimed_directions > 15 || extras > 3)
      return false;
    if (kind == static_cast<u8>(Kind::kMove) && step_count == 0) return false;
    for (u32 i = 0; i < step_count; ++i) {
      if (steps[i] > 3) return false;
    }
    return true;
  }

  Action action() const {
    Action action{};
    action.steps = steps;
    action.step_count = step_count;
    action.split = split;
    std::memcpy(action.aimed, aimed, sizeof aimed);
    action.ahead = ahead;
    action.kind = static_cast<Kind>(kind);
    action.aimed_directions = aimed_directions;
    action.sends_ahead = (extras & kSendsAhead) != 0;
    action.sets_protocol = (extras & kSetsProtocol) != 0;
    action.protocol = protocol;
    return action;
  }
};

// What Python sees of a lane after each call.
struct LaneRow {
  u64 seed;
  i32 level, round;
  u32 dragon;  // that must act
  u8 waiting, team, over, fault;
  i32 winner, reason;
  i32 dragons[2], total[2], queen[2], longest[2];  // of a match that is over
};

using Lanes = nb::ndarray<const i64, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Seeds = nb::ndarray<const u64, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<const u8, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

class Matches {
 public:
  Matches(const std::vector<OwnedLevel*>& levels, i64 lanes, int threads, bool lean) : pool_(threads) {
    if (lanes < 1) throw std::invalid_argument("lanes must be 1 or more");
    if (threads < 1) throw std::invalid_argument("threads must be 1 or more");
    if (levels.empty()) throw std::invalid_argument("levels must not be empty");
    Room room{};
    for (const OwnedLevel* level : levels) {
      levels_.push_back(*level);
      room = room.joined(lean ? lean_room(**level) : full_room(**level));
    }
    layout_ = Layout::of(room);
    const auto n = static_cast<std::size_t>(lanes);
    memory_.resize(n * layout_.bytes / sizeof(CacheLine));
    rows_.resize(n);
    views_.resize(n);
    for (std::size_t i = 0; i < n; ++i) start(i, i % levels_.size(), static_cast<u64>(i));
  }

  i64 lanes() const { return static_cast<i64>(rows_.size()); }
  u64 lane_bytes() const { return layout_.bytes; }

  void restart(const Lanes& lanes, const Lanes& levels, const Seeds& seeds) {
    const std::size_t n = lanes.shape(0);
    if (levels.shape(0) != n || seeds.shape(0) != n)
      throw std::invalid_argument("lanes, levels and seeds must have the same length");
    for (std::size_t i = 0; i < n; ++i) {
      if (lanes.data()[i] < 0 || lanes.data()[i] >= this->lanes()) throw std::out_of_range("lane out of range");
      if (levels.data()[i] < 0 || levels.data()[i] >= static_cast<i64>(levels_.size()))
        throw std::out_of_range("level out of range");
    }
    const nb::gil_scoped_release release;
    pool_.run(static_cast<long>(n), [&](long first, long last) {
      for (long i = first; i < last; ++i) {
        start(static_cast<std::size_t>(lanes.data()[i]), static_cast<std::size_t>(levels.data()[i]), seeds.data()[i]);
      }
    });
  }

  void act(const Rows& actions) {
    if (actions.shape(0) != rows_.size() || actions.shape(1) != sizeof(ActionRow)) {
      throw std::invalid_argument("actions must be one row of LOONG_ACTION for each lane");
    }
    const ActionRow* rows = reinterpret_cast<const ActionRow*>(actions.data());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].waiting && !rows[i].valid())
        throw std::invalid_argument("lane " + std::to_string(i) + ": not an action");
    }
    const nb::gil_scoped_release release;
    run([&](std::size_t i) {
      if (!rows_[i].waiting) return;
      Silence silence;
      Lane at = lane(i);
      apply(at, rows[i].action(), silence);
      go_on(i);
    });
  }

  // Fills the views of the lanes that wait.
  void look_around() {
    const nb::gil_scoped_release release;
    run([&](std::size_t i) {
      if (!rows_[i].waiting) return;
      const Lane at = lane(i);
      look(at, at.match.acting, views_[i]);
    });
  }

  nb::object init(i64 index) {
    const Lane at = waiting(index);
    return to_bytes(written([&](Out& out) { write_init(identity_of(at, at.dragons[at.match.acting]), out); }));
  }

  nb::object block(i64 index) {
    const Lane at = waiting(index);
    return to_bytes(written([&](Out& out) { write_block(at, at.match.acting, out); }));
  }

  void reply(i64 index, const nb::bytes& text) {
    Lane at = waiting(index);
    NoNotes unheard;
    Silence silence;
    std::vector<u8> steps(text.size());
    apply(at, read_reply(data_of(text), text.size(), steps.data(), unheard), silence);
    go_on(static_cast<std::size_t>(index));
  }

  // The lanes as bytes; what lies in a lane's room without being part of its match is 0.
  nb::object state() {
    const std::size_t n = rows_.size(), size = sizeof(u64) + layout_.bytes;
    auto* bytes = new std::vector<u8>(n * size);
    for (std::size_t i = 0; i < n; ++i) {
      const u64 level = static_cast<u64>(rows_[i].level);
      std::memcpy(bytes->data() + i * size, &level, sizeof level);
      std::memcpy(bytes->data() + i * size + sizeof level, lane_memory(i), layout_.bytes);
    }
    nb::capsule owner(bytes, [](void* p) noexcept { delete static_cast<std::vector<u8>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, u8>(bytes->data(), {n, size}, owner));
  }

  void load_state(const Rows& state) {
    const std::size_t size = sizeof(u64) + layout_.bytes;
    if (state.shape(0) != rows_.size() || state.shape(1) != size) {
      throw std::invalid_argument("state must be [lanes, lane_bytes + 8] of the same core and levels");
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      u64 level = 0;
      std::memcpy(&level, state.data() + i * size, sizeof level);
      if (level >= levels_.size()) throw std::invalid_argument("state names a level that is not here");
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      u64 level = 0;
      std::memcpy(&level, state.data() + i * size, sizeof level);
      std::memcpy(lane_memory(i), state.data() + i * size + sizeof level, layout_.bytes);
      rows_[i].level = static_cast<i32>(level);
      go_on(i);
    }
  }

  template <typename T>
  static nb::object view(std::vector<T>& rows, nb::handle owner) {
    return nb::cast(nb::ndarray<nb::numpy, u8>(reinterpret_cast<u8*>(rows.data()), {rows.size(), sizeof(T)}, owner));
  }

  std::vector<LaneRow> rows_;
  std::vector<View> views_;

 private:
  struct alignas(64) CacheLine {
    u8 bytes[64];
  };

  u8* lane_memory(std::size_t i) { return memory_[i * (layout_.bytes / sizeof(CacheLine))].bytes; }
  Lane lane(std::size_t i) {
    return Lane::at(lane_memory(i), layout_, *levels_[static_cast<std::size_t>(rows_[i].level)]);
  }

  Lane waiting(i64 index) {
    if (index < 0 || index >= lanes()) throw std::out_of_range("lane out of range");
    if (!rows_[static_cast<std::size_t>(index)].waiting) throw std::logic_error("no dragon waits in this lane");
    return lane(static_cast<std::size_t>(index));
  }

  template <typename Body>
  void run(Body&& body) {
    pool_.run(static_cast<long>(rows_.size()), [&](long first, long last) {
      for (long i = first; i < last; ++i) body(static_cast<std::size_t>(i));
    });
  }

  void start(std::size_t i, std::size_t level, u64 seed) {
    std::memset(lane_memory(i), 0, layout_.bytes);
    rows_[i].level = static_cast<i32>(level);
    Silence silence;
    Lane at = lane(i);
    sparring::loong::restart(at, seed, silence);
    go_on(i);
  }

  void go_on(std::size_t i) {
    Silence silence;
    Lane at = lane(i);
    LaneRow& row = rows_[i];
    const Match& match = at.match;
    row = LaneRow{match.seed, row.level, 0, 0, advance(at, silence), 0, 0, 0, 0, 0, {}, {}, {}, {}};
    row.round = match.round;
    row.over = match.over;
    row.fault = static_cast<u8>(match.fault);
    if (row.waiting) {
      row.dragon = at.dragons[match.acting].id;
      row.team = at.dragons[match.acting].team;
    }
    if (!match.over) return;
    row.winner = match.winner;
    row.reason = static_cast<i32>(match.reason);
    for (u32 team = 0; team < 2; ++team) {
      const Standing end = standing(at, team);
      row.dragons[team] = end.dragons;
      row.total[team] = end.total;
      row.queen[team] = end.queen;
      row.longest[team] = end.longest;
    }
  }

  std::vector<OwnedLevel> levels_;
  Layout layout_;
  std::vector<CacheLine> memory_;
  sparring::LanePool pool_;
};

// A NumPy dtype: [(name, format, offset)], and its size.
struct Field {
  const char* name;
  const char* format;
  std::size_t offset;
};

nb::object dtype(std::initializer_list<Field> fields, std::size_t size) {
  nb::list names, formats, offsets;
  for (const Field& field : fields) {
    names.append(field.name);
    formats.append(field.format);
    offsets.append(field.offset);
  }
  nb::dict description;
  description["names"] = names;
  description["formats"] = formats;
  description["offsets"] = offsets;
  description["itemsize"] = size;
  return description;
}

// A new NumPy array that owns its memory.
nb::object own_array(std::vector<i32>&& values, std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<i32>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<i32>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, i32>(kept->data(), shape, owner));
}

nb::object edges_of(const OwnedLevel& level) {
  const std::size_t width = static_cast<std::size_t>(level->width), height = static_cast<std::size_t>(level->height);
  return own_array(std::vector<i32>(level->edges(), level->edges() + 2 * level->cells), {2, height, width});
}

nb::object gaps_of(const OwnedLevel& level) {
  std::vector<i32> gaps(2 * level->cells);
  for (u32 tile = 0; tile < level->cells; ++tile) {
    if (!level->tiles()[tile].spawns()) continue;
    const Group& group = level->group_list()[level->tiles()[tile].group];
    gaps[2 * tile] = group.least;
    gaps[2 * tile + 1] = static_cast<i32>(static_cast<u32>(group.least) + group.span - 1);
  }
  return own_array(std::move(gaps),
                   {static_cast<std::size_t>(level->height), static_cast<std::size_t>(level->width), 2});
}

nb::object bodies_of(const OwnedLevel& level) {
  nb::list bodies;
  for (u32 id = 0; id < level->dragons; ++id) {
    const Start& start = level->starts()[id];
    nb::list body;
    for (u32 i = 0; i < start.length; ++i) {
      const u32 tile = level->segment_tiles()[start.first + i], width = static_cast<u32>(level->width);
      body.append(nb::make_tuple(tile % width, tile / width));
    }
    bodies.append(nb::make_tuple(start.team == 0 ? "A" : "B", body));
  }
  return bodies;
}

}  // namespace

void bind_loong(nb::module_& m) {
  nb::class_<OwnedLevel>(m, "LoongLevel")
      .def_prop_ro("width", [](const OwnedLevel& level) { return level->width; })
      .def_prop_ro("height", [](const OwnedLevel& level) { return level->height; })
      .def_prop_ro("unit_limit", [](const OwnedLevel& level) { return level->unit_limit; })
      .def_prop_ro("symmetry",
                   [](const OwnedLevel& level) { return std::string(std::array{"", "x", "y", "xy"}[level->mirror]); })
      .def_prop_ro("groups", [](const OwnedLevel& level) { return level->groups; })
      .def_prop_ro("edges", &edges_of)
      .def_prop_ro("gaps", &gaps_of)
      .def_prop_ro("bodies", &bodies_of);
  m.def("loong_level", &read_level, "map"_a);
  nb::list names;
  for (const char* name : kCoverageNames) names.append(name);
  m.attr("LOONG_COVERAGE") = nb::tuple(names);
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
                                {"winner", "i4", offsetof(LaneRow, winner)},
                                {"reason", "i4", offsetof(LaneRow, reason)},
                                {"dragons", "(2,)i4", offsetof(LaneRow, dragons)},
                                {"total", "(2,)i4", offsetof(LaneRow, total)},
                                {"queen", "(2,)i4", offsetof(LaneRow, queen)},
                                {"longest", "(2,)i4", offsetof(LaneRow, longest)}},
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
      .def(nb::init<const std::vector<OwnedLevel*>&, i64, int, bool>(), "levels"_a, "lanes"_a, nb::kw_only(),
           "threads"_a = 1, "lean"_a = false)
      .def_prop_ro("lanes", &Matches::lanes)
      .def_prop_ro("lane_bytes", &Matches::lane_bytes)
      .def_prop_ro("rows", [](nb::handle self) { return Matches::view(nb::cast<Matches&>(self).rows_, self); })
      .def_prop_ro("views", [](nb::handle self) { return Matches::view(nb::cast<Matches&>(self).views_, self); })
      .def("restart", &Matches::restart, "lanes"_a, "levels"_a, "seeds"_a)
      .def("look", &Matches::look_around)
      .def("act", &Matches::act, "actions"_a)
      .def("init", &Matches::init, "lane"_a)
      .def("block", &Matches::block, "lane"_a)
      .def("reply", &Matches::reply, "lane"_a, "text"_a)
      .def("state", &Matches::state)
      .def("load_state", &Matches::load_state, "state"_a);
  nb::class_<TextMatch>(m, "LoongTextMatch")
      .def(nb::init<const OwnedLevel&, u64, u32>(), "level"_a, "seed"_a, "debug"_a = 0)
      .def("next", &TextMatch::next)
      .def("reply", &TextMatch::reply, "text"_a)
      .def("views_agree", &TextMatch::views_agree)
      .def("coverage", &TextMatch::coverage);
}
