// Python's view of Loong: levels, and one match as the judge's host sees it. Batches are in bind_loong_batch.cpp.
#include "bind_loong.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <vector>

#include "loong/recording.h"
#include "loong/text.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace sparring::loong;

namespace {

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

// Records what a replay holds, and queues what the host of a match is told.
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

  Host(const Level& l, u32 mask, u64 room) : level(&l), debug(mask), recording(room) {}

  const Level* level;
  u32 debug;
  Recording recording;
  std::deque<Call> calls;
  u64 covered[kCoverage] = {};
  u32 team = 0, id = 0;  // of the dragon whose turn it is
  u64 notes[2] = {}, text[2] = {};
  bool silenced[2] = {};
  bool indicates = false;
  Span indication{};

  // Is a note to be kept? Beyond a limit the judge notes that once, and keeps nothing more of the team.
  bool keeps(u32 group, u64 size) {
    if (group != kAlways && (debug & group) == 0) return false;
    if ((debug & kLimits) == 0) return true;
    if (silenced[team]) return false;
    silenced[team] = notes[team] == kMostNotes || text[team] + size > kMostText;
    ++notes[team];
    text[team] += size;
    if (silenced[team]) {
      static constexpr char kReached[] =
          "debug output limit reached (500000 lines or 16 MB per team), the rest of this team's is dropped";
      recording.event(Recording::kEngineLog, {id});
      const u8* reached = reinterpret_cast<const u8*>(kReached);
      recording.text(Span{reached, reached + sizeof kReached - 1});
    }
    return !silenced[team];
  }

  void note(u32 group, Recording::Tag tag, Span words) {
    if (!keeps(group, words.size())) return;
    recording.event(tag, {id});
    recording.text(words);
  }

  template <typename Write>
  void engine_note(u32 group, Write&& write) {
    const std::vector<u8> words = written(write);
    note(group, Recording::kEngineLog, Span{words.data(), words.data() + words.size()});
  }

  void unreadable(Span line) {
    engine_note(kUnreadable, [&](Out& out) { note_unreadable(line, out); });
  }
  void log(Span line) { note(kLogs, Recording::kDragonLog, line); }
  void draw(bool line, const i32* numbers) {
    if (!keeps(kDrawings, 0)) return;
    const i32 *end = line ? numbers + 2 : numbers, *colour = end + 2;
    recording.event(Recording::kDebugDraw,
                    {id, !line, numbers[0], numbers[1], end[0], end[1], colour[0], colour[1], colour[2]});
  }
  void indicator(Span line) {
    indicates = true;
    indication = line;
  }

  void round_starts(i32 round) { recording.event(Recording::kRoundStart, {round}); }
  void turn_starts(const Dragon& dragon, bool newborn) {
    recording.event(Recording::kTurnStart, {dragon.id});
    team = dragon.team;
    id = dragon.id;
    covered[kNewbornTurn] += newborn;
    ++covered[dragon.wide ? kWideTurn : kNarrowTurn];
  }
  void countdown(u32 tile, i32 rounds) { recording.event(Recording::kPearlCountdown, {tile, rounds}); }
  void pearl(u32 tile, bool lies) { recording.event(Recording::kTileChange, {tile, lies}); }
  void pearl_blocked(u32) { ++covered[kBlocked]; }
  void acts(const Dragon& dragon, const Action& action) {
    if (indicates) {
      const bool cut = (debug & kLimits) != 0 && indication.size() > kLongestIndicator;
      if (cut) indication.end = indication.at + kLongestIndicator;
      note(kIndicators, Recording::kDragonIndicator, indication);
    }
    indicates = false;
    recording.action(dragon, action);
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
  void body(const Lane& lane, const Dragon& dragon) {
    recording.event(Recording::kDragonUpdate,
                    {dragon.id, dragon.facing, lane.head_tile(dragon), lane.tail_tile(dragon)});
  }
  void cannot_pay(const Dragon&, u32 step) {
    engine_note(kAlways, [&](Out& out) { note_cannot_pay(step, out); });
    ++covered[kUnpayable];
  }
  void cannot_split(const Dragon& dragon, i32 segments, bool limit) {
    engine_note(kAlways, [&](Out& out) {
      if (limit) {
        note_limit(level->unit_limit, out);
      } else {
        note_cannot_split(segments, dragon.length, out);
      }
    });
    ++covered[limit ? kSplitLimit : kSplitSize];
  }
  void split(const Lane& lane, const Dragon& parent, const Dragon& child) {
    recording.event(Recording::kDragonSplit, {parent.id, child.id, child.team, child.facing});
    recording.body(lane, parent);
    recording.body(lane, child);
    ++covered[kSplitDone];
  }
  void dies(const Dragon& dragon, Death why, i32 round) {
    recording.event(Recording::kDragonDeath, {dragon.id, static_cast<i64>(why)});
    ++covered[static_cast<std::size_t>(why)];
    calls.push_back(Call{dragon.id, round, letter(why), Identity{}});
  }
  void ray(u32 sender, const Ray& ray) {
    recording.event(Recording::kSonarPing,
                    {sender, ray.direction, ray.origin, ray.end, ray.hit_id, static_cast<i64>(ray.value & 0xFFFFFFFF),
                     static_cast<i64>(ray.value >> 32), static_cast<i64>(ray.hit)});
    ++covered[kRayHit + static_cast<std::size_t>(ray.hit)];
    covered[kPortalRay] += ray.portals > 0;
  }
};

// One match as the judge's host sees it: births, deaths and questions, in the judge's order.
class TextMatch {
 public:
  TextMatch(const OwnedLevel& level, u64 seed, u32 debug, u64 room)
      : level_(level),
        layout_(Layout::of(full_room(*level_))),
        memory_(layout_.bytes / 8),
        host_(*level_, debug, room) {
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
                          b.dragons, a.total, b.total, host_.recording.events(), a.queen, b.queen, a.longest,
                          b.longest);
  }

  // Width and height of the map, the words of the events so far, and the bytes of their texts.
  nb::tuple recording() const {
    const std::vector<i32>& words = host_.recording.words();
    const nb::bytes raw(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(i32));
    return nb::make_tuple(level_->width, level_->height, raw, to_bytes(host_.recording.texts()));
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
  bind_loong_batch(m);
  bind_loong_knowledge(m);
  bind_loong_turns(m);
  nb::class_<TextMatch>(m, "LoongTextMatch")
      .def(nb::init<const OwnedLevel&, u64, u32, u64>(), "level"_a, "seed"_a, "debug"_a = 0, "room"_a = 0)
      .def("next", &TextMatch::next)
      .def("reply", &TextMatch::reply, "text"_a)
      .def("views_agree", &TextMatch::views_agree)
      .def("recording", &TextMatch::recording)
      .def("coverage", &TextMatch::coverage);
}
