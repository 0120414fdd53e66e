// The frame of one dragon: its facing is forward, and where it is mirrored its left hand is the world's right.
#pragma once

#include "map.h"

namespace sparring::loong {

constexpr u32 kForward = 0, kLeft = 1, kRight = 2;  // directions as a choice names them

struct Frame {
  u32 facing, mirrored;
  i32 fx, fy;  // one step forward on the board
  i32 rx, ry;  // one step to the dragon's right

  SPARRING_FN static Frame of(u32 facing, u32 mirrored) {
    const u32 right = (facing + (mirrored ? 3 : 1)) & 3;
    return Frame{facing, mirrored, step_x(facing), step_y(facing), step_x(right), step_y(right)};
  }

  SPARRING_FN static i32 step_x(u32 direction) { return direction == kEast ? 1 : direction == kWest ? -1 : 0; }
  SPARRING_FN static i32 step_y(u32 direction) { return direction == kSouth ? 1 : direction == kNorth ? -1 : 0; }

  SPARRING_FN i32 forward(i32 dx, i32 dy) const { return dx * fx + dy * fy; }
  SPARRING_FN i32 right(i32 dx, i32 dy) const { return dx * rx + dy * ry; }
  SPARRING_FN i32 dx(i32 forward, i32 right) const { return forward * fx + right * rx; }
  SPARRING_FN i32 dy(i32 forward, i32 right) const { return forward * fy + right * ry; }

  // The direction on the board of quarter `turn` clockwise in the frame: 0 forward, 1 right, 2 back, 3 left.
  SPARRING_FN u32 world(u32 turn) const { return (facing + (mirrored ? 4 - turn : turn)) & 3; }

  // The direction on the board of kForward, kLeft or kRight.
  SPARRING_FN u32 direction(u32 relative) const {
    return world(relative == kForward ? 0 : relative == kRight ? 1u : 3u);
  }
};

}  // namespace sparring::loong
