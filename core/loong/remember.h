// How a dragon's memory follows what it is told: once a turn, from the View and the packets in it.
#pragma once

#include "frame.h"
#include "memory.h"

namespace sparring::loong {

// The map in blocks of ceil(side / 16) tiles a side, from the north-western corner on. Counts of what was last seen in
// a block, none above 255.
namespace overview {
// Kelp and portals are counted by the sides of tiles.
constexpr u32 kKnown = 0, kKelp = 1, kPearls = 2, kSpawns = 3, kAllies = 4, kEnemies = 5, kPortals = 7;
constexpr u32 kSeenAt = 6;  // 1 + half the round in which a tile of it was last seen

SPARRING_FN u32 block_side(u32 side) { return (side + kOverviewSide - 1) / kOverviewSide; }
}  // namespace overview

namespace remembering {

SPARRING_FN void change(u8& count, bool before, bool after) {
  if (after && !before && count < 255) ++count;
  if (before && !after && count > 0) --count;
}

SPARRING_FN void add(u8& count, u32 more) { count = static_cast<u8>(count + more < 255 ? count + more : 255); }

SPARRING_FN u32 sides(u32 set) { return (set & 1) + (set >> 1 & 1) + (set >> 2 & 1) + (set >> 3 & 1); }

SPARRING_FN u32 occupant_code(const Identity& who, const View& view, u32 place) {
  const u32 body = view.body[place];
  if (body == 0) return occupant::kNobody;
  if (view.id[place] == who.id) return occupant::kOwn;
  const u32 enemy = ((body & View::kTeamB) != 0) != (who.team == 1) ? occupant::kEnemy : 0;
  const u32 queen = view.id[place] < 2 ? occupant::kQueen : 0;
  const bool head = (body & View::kHead) != 0;
  return enemy | queen | (head ? occupant::kHead | (body & View::kFacing) : occupant::kBody);
}

SPARRING_FN Window window_of(const Memory& memory, const View& view) {
  const u32 x = static_cast<u32>(view.x), y = static_cast<u32>(view.y);
  constexpr u32 reach = kWindow / 2;
  return Window{memory.width, memory.height, memory.cells, (x + memory.width - reach) % memory.width,
                (y + memory.height - reach) % memory.height};
}

// The tiles of the window as they are now. The notes of tiles that hold the own body are left as they were.
SPARRING_FN void see(Memory& memory, const Identity& who, const View& view, const Window& window) {
  Life& life = memory.life;
  const u32 now = static_cast<u32>(view.round);
  const u32 block_width = overview::block_side(memory.width), block_height = overview::block_side(memory.height);
  u32 fresh[kWindowTiles];
  u32 fresh_count = 0;
  u32 block_column[kWindow];
  for (u32 i = 0; i < kWindow; ++i) block_column[i] = window.column(i) / block_width;
  for (u32 row = 0, place = 0; row < kWindow; ++row) {
    const u32 y = window.row(row), first = y * memory.width;
    u8(*const blocks)[kOverviewPlanes] = life.overview + y / block_height * kOverviewSide;
    for (u32 column = 0; column < kWindow; ++column, ++place) {
      const u32 tile = first + window.column(column);
      Page* const page = memory.page(tile);
      if (page == nullptr) continue;
      u32& word = page->sight[tile % kPageTiles];
      u16& note = page->told[tile % kPageTiles];
      const u32 before = word, code = occupant_code(who, view, place), old_code = sight::occupant(before);
      const i32 countdown = view.countdown[place];
      u32 attempt = countdown > 0 ? now + static_cast<u32>(countdown) : 0;
      if (attempt > sight::kLatestAttempt) attempt = sight::kLatestAttempt;
      word = now | sight::kSeen | code << sight::kOccupantAt | (view.pearl[place] != 0 ? sight::kPearl : 0) |
             attempt << sight::kAttemptAt;
      if (code != occupant::kOwn) {
        note = 0;
      } else if (old_code != occupant::kOwn) {
        note = life.gone;
      }

      u8* const block = blocks[block_column[column]];
      block[overview::kSeenAt] = static_cast<u8>(1 + now / 2);
      if (((before ^ word) & sight::kPearl) != 0) {
        change(block[overview::kPearls], (before & sight::kPearl) != 0, view.pearl[place] != 0);
      }
      if (old_code != code) {
        change(block[overview::kAllies], occupant::ally(old_code), occupant::ally(code));
        change(block[overview::kEnemies], occupant::enemy(old_code), occupant::enemy(code));
      }
      if ((before & sight::kSeen) != 0) continue;
      ++life.known;
      const Ground ground = memory.ground(tile);
      add(block[overview::kKnown], 1);
      add(block[overview::kKelp], sides(ground.kelp));
      add(block[overview::kPortals], sides(ground.portals));
      add(block[overview::kSpawns], ground.spawns);
      fresh[fresh_count++] = tile;
    }
  }
  for (u32 i = 0; i < fresh_count && life.symmetry != 0; ++i) {
    const u32 x = memory.x(fresh[i]), y = memory.y(fresh[i]);
    for (u32 mirror = kMirrorX; mirror <= kMirrorXY; ++mirror) {
      const u32 bit = 1u << (mirror - kMirrorX), image = memory.mirror_tile(x, y, mirror);
      if ((life.symmetry & bit) == 0 || !memory.seen(image)) continue;
      if (memory.ground(fresh[i]) == Memory::mirrored(memory.ground(image), mirror)) continue;
      life.symmetry = static_cast<u8>(life.symmetry & ~bit);
    }
  }
}

// Notes after how many steps of the tail the tiles of the own body clear: those that hang together with the head in the
// window by their place behind it, others as they were noted when they did; else as late as can be.
SPARRING_FN void note_own_body(Memory& memory, const Identity& who, const View& view, const Window& window) {
  const u32 gone = memory.life.gone, length = static_cast<u32>(view.length);
  u64 reached = 0;
  const auto note = [&](u32 place, u32 left) {
    const u32 tile = window.tile(place);
    Page* const page = memory.page(tile);
    if (page != nullptr) page->told[tile % kPageTiles] = static_cast<u16>(gone + left);
  };
  u32 place = kWindowCentre;
  for (u32 index = 0; index < length && (reached >> place & 1) == 0; ++index) {
    reached |= 1ull << place;
    note(place, length - index);
    const u32 tile = window.tile(place);
    u32 behind = kNone;
    for (u32 d = 0; d < 4 && behind == kNone; ++d) {
      const u32 from = memory.neighbour(tile, opposite(d));
      if (from == kNone) continue;
      const u32 from_place = window.place(memory.x(from), memory.y(from));
      if (from_place == kNone || view.body[from_place] == 0 || view.id[from_place] != who.id) continue;
      const u32 body = view.body[from_place];
      if ((body & View::kHead) == 0 && (body & View::kFacing) == d) behind = from_place;
    }
    if (behind == kNone) break;
    place = behind;
  }
  for (u32 other = 0; other < kWindowTiles; ++other) {
    if (view.body[other] == 0 || view.id[other] != who.id || (reached >> other & 1) != 0) continue;
    if (memory.own_clears(window.tile(other)) == 0) note(other, length);
  }
}

SPARRING_FN void tell(Memory& memory, u32 tile, u32 what, u32 round) {
  if (memory.seen(tile) && sight::round(memory.sight(tile)) >= round) return;
  if (memory.occupant(tile) == occupant::kOwn || memory.told(tile).round > round) return;
  Page* const page = memory.page(tile);
  if (page == nullptr) return;
  u32& word = page->sight[tile % kPageTiles];
  if (sight::occupant(word) == occupant::kOwn) word &= ~(31u << sight::kOccupantAt);  // it has left
  page->told[tile % kPageTiles] = static_cast<u16>(what << Hearsay::kWhatAt | round);
}

SPARRING_FN void hear(Memory& memory, const Identity& who, const View& view, u64 message, u64 key) {
  Life& life = memory.life;
  Packet packet{};
  if (!decode(message, key, who, view.round, packet)) {
    ++life.unread;
    return;
  }
  if (packet.id == who.id % Packet::kIds) return;  // its own, come round the board
  if (life.packets < 255) ++life.packets;
  const u32 sent = static_cast<u32>(view.round) - ((static_cast<u32>(view.round) - packet.round) & 3);
  if (sent >= static_cast<u32>(kRounds)) return;  // of a round before the first
  u32 place = 0;
  while (place + 1 < kHeardPackets && life.heard_at[place] != 0 && unpack_fields(life.heard[place]).id != packet.id) {
    ++place;
  }
  for (; place > 0; --place) {
    life.heard[place] = life.heard[place - 1];
    life.heard_at[place] = life.heard_at[place - 1];
  }
  life.heard[0] = message;
  life.heard_at[0] = static_cast<u16>(sent + 1);
  if (packet.queen != 0 && sent + 1 > life.ally_queen) life.ally_queen = static_cast<u16>(sent + 1);
  tell(memory, memory.tile(packet.x, packet.y), Hearsay::kAlly, sent);
  if (packet.place == kNoReport) return;
  const Window theirs{memory.width, memory.height, memory.cells, (packet.x + memory.width - kWindow / 2) % memory.width,
                      (packet.y + memory.height - kWindow / 2) % memory.height};
  tell(memory, theirs.tile(packet.place), packet.enemy != 0 ? Hearsay::kEnemyHead : Hearsay::kPearl, sent);
}

// What this turn's packet will tell: the nearest head of an enemy, else the nearest pearl; of several the one that lies
// furthest ahead, then furthest to the left.
SPARRING_FN u32 choose_report(const Identity& who, const View& view, const Frame& frame) {
  constexpr i32 reach = kWindow / 2;
  u32 best = kNone, report = kNoReport;
  for (i32 ahead = reach; ahead >= -reach; --ahead) {
    for (i32 right = -reach; right <= reach; ++right) {
      const u32 place = static_cast<u32>(static_cast<i32>(kWindowCentre) +
                                         frame.dy(ahead, right) * static_cast<i32>(kWindow) + frame.dx(ahead, right));
      const u32 code = occupant_code(who, view, place);
      const bool enemy = occupant::enemy(code) && occupant::head(code);
      if (!enemy && view.pearl[place] == 0) continue;
      const u32 far = static_cast<u32>((ahead < 0 ? -ahead : ahead) + (right < 0 ? -right : right)) + (enemy ? 0 : 16);
      if (far >= best) continue;
      best = far;
      report = place | (enemy ? 128u : 0u);
    }
  }
  return report;
}

}  // namespace remembering

// Takes in what the dragon is told in this turn; a second time in the same round it changes nothing. The memory's
// tiles must hold what the View shows. `key`: see packet_key.
SPARRING_FN void remember(Memory& memory, const Identity& who, const View& view, u64 key) {
  Life& life = memory.life;
  if (life.seen_at == view.round + 1) return;
  const u32 length = static_cast<u32>(view.length);
  // The head made `steps`, and what the body did not grow by them, the tail followed.
  if (life.seen_at != 0) life.gone = static_cast<u16>(life.gone + life.steps + life.length - length);
  life.seen_at = static_cast<u16>(view.round + 1);
  life.length = length;
  life.steps = 0;
  ++life.decisions;
  life.facing = static_cast<u8>(view.facing);
  life.wide = view.wide != 0;
  life.head = static_cast<u16>(memory.tile(static_cast<u32>(view.x), static_cast<u32>(view.y)));
  const Window window = remembering::window_of(memory, view);
  remembering::see(memory, who, view, window);
  remembering::note_own_body(memory, who, view, window);

  life.sees_queen = who.id < 2;
  for (u32 place = 0; place < kWindowTiles; ++place) {
    if (view.id[place] >= 2) continue;
    if (((view.body[place] & View::kTeamB) != 0) == (who.team == 1)) {
      life.sees_queen = 1;
    } else {
      life.enemy_queen = life.seen_at;
    }
  }
  if (life.sees_queen != 0) life.ally_queen = life.seen_at;
  life.report = static_cast<u8>(remembering::choose_report(who, view, Frame::of(view.facing, life.mirrored)));

  life.packets = 0;
  const u32 told = view.messages < kViewMessages ? view.messages : kViewMessages;
  life.unread = view.messages - told;
  for (u32 i = 0; i < told; ++i) remembering::hear(memory, who, view, view.newest[i], key);
}

// After a choice: so many steps will have been made when the dragon is asked next.
SPARRING_FN void remember_steps(Life& life, u32 steps) { life.steps = static_cast<u16>(life.steps + steps); }

}  // namespace sparring::loong
