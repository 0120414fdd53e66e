// Loong under the sanitizers: maps, replies and blocks of random bytes, long random play with every invariant of the
// state checked after each turn, known numbers of the generator, and what happens where room ends. The rules themselves
// are tested from Python and against the judge.
#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "loong/damage.h"
#include "loong/text.h"

namespace {

using namespace sparring;
using namespace sparring::loong;

using Random = std::mt19937_64;

u32 below(Random& random, u32 limit) { return static_cast<u32>(random() % limit); }

const u8* bytes_of(const std::string& text) { return reinterpret_cast<const u8*>(text.data()); }

struct OwnLevel {
  std::vector<u64> memory;
  std::string error;
  const Level* level = nullptr;
};

OwnLevel read(const std::string& map) {
  // Exactly the bytes that are asked for, so that the sanitizer sees one byte too many.
  const MapNeeds needs = map_needs(bytes_of(map), map.size());
  const std::vector<u8> copy(map.begin(), map.end());
  const std::unique_ptr<u8[]> level(new u8[needs.level_bytes]), scratch(new u8[needs.scratch_bytes]);
  OwnLevel own;
  std::vector<u8> error(map.size() + 200);
  Out out{error.data(), error.size(), 0};
  const Level* found = read_map(copy.data(), copy.size(), level.get(), scratch.get(), out);
  CHECK(out.whole());
  CHECK((found == nullptr) == (out.size > 0));
  own.error.assign(error.begin(), error.begin() + static_cast<std::ptrdiff_t>(out.size));
  if (found == nullptr) return own;
  CHECK(found->bytes <= needs.level_bytes);
  own.memory.resize(found->bytes / 8);
  std::memcpy(own.memory.data(), found, found->bytes);
  own.level = reinterpret_cast<const Level*>(own.memory.data());
  return own;
}

std::string counted(const std::string& start, const std::vector<std::string>& lines) {
  int tiles = 0, edges = 0, dragons = 0;
  std::string body;
  for (const std::string& line : lines) {
    tiles += line.rfind("TILE ", 0) == 0;
    edges += line.rfind("EDGE ", 0) == 0;
    dragons += line.rfind("DRAGON ", 0) == 0;
    body += line + "\n";
  }
  return start + "\nTILE_COUNT " + std::to_string(tiles) + "\nEDGE_COUNT " + std::to_string(edges) + "\nDRAGON_COUNT " +
         std::to_string(dragons) + "\n" + body + "END\n";
}

// A board of 9x11 with everything: shared short countdowns, kelp, portals (one that leads back to its own tile), a low
// limit.
std::string busy_map(bool repeats) {
  std::vector<std::string> lines = {"SYMMETRY xy", "UNIT_LIMIT 7"};
  for (int y = 0; y < 11; ++y) {
    for (int x = 0; x < 9; ++x) {
      if ((x + y) % 2 == 0) lines.push_back("TILE " + std::to_string(x) + " " + std::to_string(y) + " 1 4");
    }
  }
  for (const char* edge : {"3 2 0", "65 2 0", "12 2 1", "13 2 1", "34 2 9", "152 2 9", "45 1 0", "88 1 0", "220 1 0"}) {
    lines.push_back(std::string("EDGE ") + edge);
  }
  lines.push_back("DRAGON 0 6 4 4 5 4 5 5 4 5 3 5 3 4");
  lines.push_back("DRAGON 1 3 4 7 5 7 6 7");
  lines.push_back(repeats ? "DRAGON 0 7 7 1 8 1 7 1 7 2 7 1 7 0 8 0" : "DRAGON 0 4 7 1 7 2 8 2 8 1");
  lines.push_back("DRAGON 1 2 0 8 0 9");
  return counted("MAP 9 11", lines);
}

std::string open_map(int size, int dragons) {
  std::vector<std::string> lines;
  for (int i = 0; i < dragons; ++i) {
    std::string line = "DRAGON " + std::to_string(i % 2) + " 5";
    for (int x = 0; x < 5; ++x) line += " " + std::to_string(x) + " " + std::to_string(2 * i);
    lines.push_back(line);
  }
  for (int x = 0; x < size; ++x) lines.push_back("TILE " + std::to_string(x) + " 1 3 9");
  return counted("MAP " + std::to_string(size) + " " + std::to_string(size), lines);
}

struct OwnLane {
  Layout layout;
  std::vector<u64> memory;
  const Level& level;

  OwnLane(const Level& played, const Room& room) : layout(Layout::of(room)), memory(layout.bytes / 8), level(played) {}
  Lane lane() { return Lane::at(memory.data(), layout, level); }
};

// All that must hold between turns.
void check_state(const Lane& lane) {
  const char* found = damage(lane);
  if (found != nullptr) std::printf("a lane is damaged: %s\n", found);
  CHECK(found == nullptr);
}

std::string random_reply(Random& random, u32 length) {
  std::string text;
  const auto direction = [&] { return "NESW"[below(random, 4)]; };
  const u32 kind = below(random, 40);
  if (kind < 30) {
    text += "MOVE ";
    for (u32 i = 0, steps = kind < 27 ? 1 : 1 + below(random, 6); i < steps; ++i) text += direction();
    text += '\n';
  } else if (kind < 36) {
    text += "SPLIT " + std::to_string(below(random, length + 2)) + "\n";
  } else if (kind < 39) {
    for (u32 i = 0, count = below(random, 40); i < count; ++i) {
      text +=
          below(random, 3) == 0 ? static_cast<char>(random()) : "MOVESPLITNRAC 0123456789+-\n\r\t"[below(random, 30)];
    }
    text += "\nMOVE N\n";
  }
  if (below(random, 4) == 0) text += "PROTOCOL " + std::to_string(1 + below(random, 4)) + "\n";
  if (below(random, 2) == 0) text += "SONAR " + std::to_string(random()) + "\n";
  while (below(random, 2) == 0) text += std::string("SONAR ") + direction() + " " + std::to_string(random()) + "\n";
  return text;
}

Action action_of(const std::string& reply, std::vector<u8>& steps) {
  steps.assign(reply.size() + 1, 0);
  NoNotes notes;
  return read_reply(bytes_of(reply), reply.size(), steps.data(), notes);
}

// Anything, but a step that stays free is preferred, or matches would be over at once.
std::string careful_reply(const Lane& lane, Random& random) {
  const Dragon& dragon = lane.dragons[lane.match.acting];
  std::string reply = random_reply(random, dragon.length);
  const u32 head = lane.head_tile(dragon);
  for (u32 d = below(random, 4), tries = 0; tries < 4; ++tries, d = (d + 1) % 4) {
    const u32 to = lane.ahead(head, d);
    if (to == kNone || lane.cells[to].slot() != kNone || below(random, 30) == 0) continue;
    reply += std::string("MOVE ") + direction_letter(d) + "\n";
    break;
  }
  if (dragon.length > 5 && below(random, 4) == 0) reply += "SPLIT 2\n";
  return reply;
}

// Plays to the end.
long play(OwnLane& own, Random& random, bool checked) {
  Lane lane = own.lane();
  Silence silence;
  std::vector<u8> steps, block(1 << 16);
  long turns = 0;
  while (advance(lane, silence)) {
    const u32 slot = lane.match.acting;
    const Dragon& dragon = lane.dragons[slot];
    const std::string reply = careful_reply(lane, random);
    if (checked) {
      check_state(lane);
      Out out{block.data(), block.size(), 0};
      write_block(lane, slot, out);
      CHECK(out.whole());
      View seen, told;
      look(lane, slot, seen);
      CHECK(read_block(block.data(), out.size, identity_of(lane, dragon), told));
      CHECK(std::memcmp(&seen, &told, sizeof(View)) == 0);
      if (turns % 50 == 0) {  // cut short or spoilt it is refused or misread, and nothing worse
        const std::vector<u8> cut(
            block.begin(), block.begin() + static_cast<std::ptrdiff_t>(below(random, static_cast<u32>(out.size - 1))));
        CHECK(!read_block(cut.data(), cut.size(), identity_of(lane, dragon), told));
        std::vector<u8> spoilt(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(out.size));
        for (int i = 0; i < 3; ++i) spoilt[below(random, static_cast<u32>(spoilt.size()))] = static_cast<u8>(random());
        read_block(spoilt.data(), spoilt.size(), identity_of(lane, dragon), told);
      }
    }
    apply(lane, action_of(reply, steps), silence);
    ++turns;
  }
  CHECK(lane.match.fault == Fault::kSound && lane.match.over == 1);
  return turns;
}

void the_twister_gives_its_published_numbers() {
  const OwnLevel own = read(counted("MAP 7 7", {}));
  OwnLane memory(*own.level, full_room(*own.level));
  Lane lane = memory.lane();
  const auto seeded = [&](u64 seed) {
    lane.match.seed = seed;
    seed_twister(lane);
    return next_word(lane);
  };
  CHECK(seeded(0) == 2947667278772165694ull && next_word(lane) == 18301848765998365067ull);
  CHECK(seeded(42) == 13930160852258120406ull && next_word(lane) == 11788048577503494824ull);
  u64 word = seeded(5489);
  for (int i = 1; i < 10000; ++i) word = next_word(lane);
  CHECK(word == 9981545732273789042ull);
}

void states_hold_and_views_agree_in_random_play() {
  long turns = 0;
  for (const std::string& map : {busy_map(false), busy_map(true), open_map(20, 8)}) {
    const OwnLevel own = read(map);
    CHECK(own.error.empty());
    OwnLane memory(*own.level, full_room(*own.level));
    for (u64 seed = 0; seed < 12; ++seed) {
      Lane lane = memory.lane();
      Silence silence;
      Random random(seed);
      restart(lane, random(), silence);
      turns += play(memory, random, true);
    }
  }
  CHECK(turns > 5000);
}

void a_restart_leaves_nothing_of_the_match_before() {
  const OwnLevel busy = read(busy_map(true)), open = read(open_map(9, 2));
  const Room room = full_room(*busy.level).joined(full_room(*open.level));
  OwnLane before(*busy.level, room), fresh(*open.level, room), after(*open.level, room);
  Silence silence;
  Random random(1);
  Lane lane = before.lane();
  restart(lane, 1, silence);
  play(before, random, false);
  after.memory = before.memory;
  long turns[2];
  int i = 0;
  for (OwnLane* own : {&fresh, &after}) {
    Random same(2);
    Lane open_lane = own->lane();
    restart(open_lane, 5, silence);
    turns[i++] = play(*own, same, true);
  }
  const Match &one = fresh.lane().match, &other = after.lane().match;
  CHECK(turns[0] == turns[1] && std::memcmp(&one, &other, sizeof(Match)) == 0);
}

// Bytes of a state are changed wherever it has some. What is not refused plays on, and no sanitizer complains.
void a_damaged_state_is_refused_or_plays_on() {
  Random random(11);
  int refused = 0, played = 0;
  for (const std::string& map : {busy_map(false), busy_map(true), open_map(20, 8)}) {
    const OwnLevel own = read(map);
    OwnLane memory(*own.level, full_room(*own.level));
    const Layout& layout = memory.layout;
    const u64 begins[] = {0,
                          layout.messages_at,
                          layout.twister_at,
                          layout.cells_at,
                          layout.due_at,
                          layout.soonest_at,
                          layout.dragons_at,
                          layout.order_at};
    Silence silence;
    std::vector<u8> steps;
    Lane lane = memory.lane();
    restart(lane, 5, silence);
    const auto play_on = [&](int turns) {
      for (int turn = 0; turn < turns && advance(lane, silence); ++turn) {
        apply(lane, action_of(careful_reply(lane, random), steps), silence);
      }
    };
    play_on(30);
    CHECK(advance(lane, silence) && damage(lane) == nullptr);
    const std::vector<u64> good = memory.memory;
    for (int i = 0; i < 3000; ++i) {
      memory.memory = good;
      u8* bytes = reinterpret_cast<u8*>(memory.memory.data());
      const u64 first = begins[below(random, 8)];
      for (u32 change = 0, changes = 1 + below(random, 2); change < changes; ++change) {
        const u64 at = std::min<u64>(first + below(random, below(random, 2) == 0 ? 32 : 600), layout.bytes - 1);
        bytes[at] = below(random, 2) == 0 ? static_cast<u8>(below(random, 8)) : static_cast<u8>(random());
      }
      if (damage(lane) != nullptr) {
        ++refused;
        continue;
      }
      ++played;
      View view;
      if (advance(lane, silence)) look(lane, lane.match.acting, view);
      play_on(40);
    }
  }
  CHECK(refused > 2000 && played > 2000);
}

void a_lane_without_room_for_a_message_has_a_fault_and_stops() {
  const OwnLevel own = read(open_map(20, 8));
  Room room = full_room(*own.level);
  room.messages = 3;
  OwnLane memory(*own.level, room);
  Lane lane = memory.lane();
  Silence silence;
  restart(lane, 1, silence);
  std::vector<u8> steps;
  for (int turn = 0; turn < 8 && advance(lane, silence); ++turn) {
    apply(lane, action_of("MOVE N\nSONAR N 1\nSONAR E 2\n", steps), silence);
  }
  CHECK(lane.match.fault == Fault::kTooManyMessages);
  CHECK(!advance(lane, silence) && lane.match.over == 0);
}

void text_without_room_is_counted_to_its_end() {
  const OwnLevel own = read(busy_map(false));
  OwnLane memory(*own.level, full_room(*own.level));
  Lane lane = memory.lane();
  Silence silence;
  restart(lane, 1, silence);
  CHECK(advance(lane, silence));
  std::vector<u8> whole(1 << 16);
  Out full{whole.data(), whole.size(), 0};
  write_block(lane, lane.match.acting, full);
  for (const u64 capacity : {u64{0}, u64{1}, u64{100}, full.size - 1, full.size}) {
    const std::unique_ptr<u8[]> exact(new u8[capacity]);
    Out out{exact.get(), capacity, 0};
    write_block(lane, lane.match.acting, out);
    CHECK(out.size == full.size && out.whole() == (capacity == full.size));
    CHECK(std::memcmp(exact.get(), whole.data(), capacity) == 0);
  }
}

void broken_maps_are_refused_with_a_text() {
  const std::string good = busy_map(true);
  Random random(7);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string map = good;
    for (u32 change = 0, changes = 1 + below(random, 3); change < changes; ++change) {
      const u32 at = below(random, static_cast<u32>(map.size()));
      const u32 kind = below(random, 4);
      if (kind == 0) map[at] = static_cast<char>(random());
      if (kind == 1) map[at] = "0123456789 -+\n\r"[below(random, 15)];
      if (kind == 2) map.erase(at, 1 + below(random, 30));
      if (kind == 3) map.insert(at, map.substr(below(random, static_cast<u32>(map.size())), below(random, 40)));
    }
    const OwnLevel own = read(map);
    refused += own.level == nullptr;
    if (own.level == nullptr || i % 10 != 0) continue;
    OwnLane memory(*own.level, full_room(*own.level));
    Lane lane = memory.lane();
    Silence silence;
    restart(lane, 1, silence);
    play(memory, random, true);
  }
  CHECK(refused > 500);
}

void the_largest_boards_fit() {
  std::vector<std::string> lines;
  for (int y = 0; y < 256; ++y) {
    for (int x = 0; x < 256; ++x) lines.push_back("TILE " + std::to_string(x) + " " + std::to_string(y) + " 1 9");
  }
  lines.push_back("UNIT_LIMIT 2000000000");
  std::string body = "DRAGON 0 65280";  // all rows but the last, to and fro
  for (int y = 254; y >= 0; --y) {
    for (int x = 0; x < 256; ++x) body += " " + std::to_string(y % 2 == 0 ? x : 255 - x) + " " + std::to_string(y);
  }
  lines.push_back(body);
  lines.push_back("DRAGON 1 2 0 255 1 255");
  const OwnLevel own = read(counted("MAP 256 256", lines));
  CHECK(own.error.empty() && own.level->groups == 65536 && own.level->most_alive == 32768);
  OwnLane memory(*own.level, full_room(*own.level));
  Lane lane = memory.lane();
  Silence silence;
  std::vector<u8> steps;
  restart(lane, 3, silence);
  CHECK(advance(lane, silence));
  CHECK(lane.dragons[0].length == 65280 && lane.countdown(65535) >= 1);
  apply(lane, action_of("SPLIT 65000\n", steps), silence);
  CHECK(advance(lane, silence));
  apply(lane, action_of("MOVE S\n", steps), silence);  // north to (0, 0) or south to (0, 0): all but one row is full
  check_state(lane);
  CHECK(lane.match.alive >= 2);
}

}  // namespace

int main() {
  the_twister_gives_its_published_numbers();
  states_hold_and_views_agree_in_random_play();
  a_restart_leaves_nothing_of_the_match_before();
  a_damaged_state_is_refused_or_plays_on();
  a_lane_without_room_for_a_message_has_a_fault_and_stops();
  text_without_room_is_counted_to_its_end();
  broken_maps_are_refused_with_a_text();
  the_largest_boards_fit();
  return verdict("loong");
}
