// Sonar: rays from the head, or from the tail against the facing, that carry a message to the first dragon they meet.
#pragma once

#include "state.h"

namespace sparring::loong {

enum class Hit : u8 { kNothing, kStopped, kAlly, kAllyHead, kEnemy, kEnemyHead };

struct Ray {
  u32 direction;  // in which it really left: against the facing it follows the tail
  u32 origin, end;
  Hit hit;
  u32 hit_id;  // of the dragon that was met, or kNone
  u64 value;
  u32 portals;  // that it went through
};

template <typename Events>
SPARRING_FN void cast_ray(Lane& lane, u32 slot, u32 direction, u64 value, Events& events) {
  Dragon& sender = lane.dragons[slot];
  Ray ray{direction, lane.head_tile(sender), 0, Hit::kNothing, kNone, value, 0};
  if (direction == opposite(sender.facing)) {
    ray.origin = lane.tail_tile(sender);
    ray.direction = heading(lane.level, lane.tile_of(lane.cells[sender.tail].next), ray.origin);
  }
  u32 at = ray.origin;
  for (i32 steps = lane.level.width + lane.level.height; steps > 0; --steps) {
    const Tile& tile = lane.tiles[at];
    if (tile.blocked(ray.direction)) {
      ray.hit = Hit::kStopped;
      ++sender.echoes[0];
      break;
    }
    ray.portals += tile.portal(ray.direction);
    at = tile.ahead[ray.direction];
    const u32 met = lane.cells[at].slot();
    if (met == kNone) continue;
    Dragon& receiver = lane.dragons[met];
    const u32 kind = (receiver.team == sender.team ? 1u : 3u) + (lane.head_tile(receiver) == at ? 1u : 0u);
    ray.hit = static_cast<Hit>(kind + 1);
    ray.hit_id = receiver.id;
    ++sender.echoes[kind];
    lane.deliver(receiver, value);
    break;
  }
  ray.end = at;
  events.ray(sender.id, ray);
}

// `aimed` has a value for each direction in `directions`; `ahead`, if given, goes where the dragon faces unless that
// direction has a value of its own.
template <typename Events>
SPARRING_FN void cast_sonar(Lane& lane, u32 slot, u32 directions, const u64* aimed, const u32* ahead, Events& events) {
  const u32 facing = lane.dragons[slot].facing;
  for (u32 d = 0; d < 4; ++d) {
    if ((directions >> d & 1) != 0) {
      cast_ray(lane, slot, d, aimed[d], events);
    } else if (ahead != nullptr && d == facing) {
      cast_ray(lane, slot, d, *ahead, events);
    }
  }
}

}  // namespace sparring::loong
