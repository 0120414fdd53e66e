// Layers of a student in integers, and how they lie in the file of its weights (docs/loong-student.md).
#pragma once

#include "../common/target.h"

namespace sparring::net {

using i8 = signed char;
using i16 = short;

constexpr u32 kRowBlock = 8;  // rows whose weights lie side by side
constexpr u32 kAlignment = 16;
constexpr u32 kMostShift = 45;

// Inputs of one row that lie together, where so many are left. Those of a convolution are a row of its window instead.
SPARRING_FN constexpr u32 segment_of(u32 left) { return left >= 128 ? 128 : left >= 32 ? 32 : 8; }

SPARRING_FN constexpr u32 in_blocks(u32 rows) { return (rows + kRowBlock - 1) / kRowBlock * kRowBlock; }

// out = (bias + sum of weight * input) * multiplier / 2^shift, rounded half up.
struct Layer {
  const i8* weights;
  const i32* bias;        // one set after another, where there are several
  const i32* multiplier;  // each row's
  u32 shift, rows, inputs;
};

// What a layer's outputs are cut to.
struct Limits {
  i32 low, high;
};
constexpr Limits kHidden{0, 8191}, kSigned{-8191, 8191}, kGate{-32768, 32767};

SPARRING_FN i32 cut(i32 value, Limits to) { return value < to.low ? to.low : value > to.high ? to.high : value; }

SPARRING_FN i32 scaled(i32 sum, i32 multiplier, u32 shift) {
  return static_cast<i32>((static_cast<i64>(sum) * multiplier + (i64{1} << (shift - 1))) >> shift);
}

// Reads a file's arrays in their order.
struct Reader {
  const u8* bytes;
  u64 at, size;

  // The next `count` values, or none where the file ends before.
  template <typename T>
  SPARRING_FN const T* take(u64 count) {
    at = (at + kAlignment - 1) / kAlignment * kAlignment;
    const u64 length = count * sizeof(T);
    if (at > size || length > size - at) {
      at = size + 1;
      return nullptr;
    }
    const T* values = reinterpret_cast<const T*>(bytes + at);
    at += length;
    return values;
  }

  SPARRING_FN Layer layer(u32 rows, u32 inputs, u32 sets = 1) {
    const u32 padded = in_blocks(rows);
    Layer layer{};
    layer.shift = take_shift();
    layer.multiplier = take<i32>(padded);
    layer.bias = take<i32>(u64{sets} * padded);
    layer.weights = take<i8>(u64{padded} * inputs);
    layer.rows = rows;
    layer.inputs = inputs;
    return layer;
  }

  SPARRING_FN u32 take_shift() {
    const u32* shift = take<u32>(1);
    if (shift != nullptr && *shift >= 1 && *shift <= kMostShift) return *shift;
    at = size + 1;
    return 1;
  }

  // All that was asked for was there.
  SPARRING_FN bool good() const { return at <= size; }
};

// A square of cells with all channels of a cell together, and a border of zeros one cell wide.
template <typename Out>
SPARRING_FN void clear_border(Out* grid, u32 side, u32 channels) {
  const u32 row = (side + 2) * channels;
  for (u32 i = 0; i < row; ++i) grid[i] = grid[(side + 1) * row + i] = 0;
  for (u32 y = 1; y <= side; ++y) {
    for (u32 c = 0; c < channels; ++c) grid[y * row + c] = grid[y * row + row - channels + c] = 0;
  }
}

// How the outputs of a convolution lie: the first cell, and from cell to cell and row to row.
struct Cells {
  i16* first;
  u32 column, row;

  SPARRING_FN static Cells bordered(i16* grid, u32 side, u32 channels) {
    return Cells{grid + (side + 3) * channels, channels, (side + 2) * channels};
  }
  SPARRING_FN static Cells flat(i16* grid, u32 side, u32 channels) { return Cells{grid, channels, side * channels}; }
};

// What both ways of computing share: the order in which weights are read. `Sums` are those of eight rows.
template <typename Way>
struct Layers {
  using Sums = typename Way::Sums;

  // int16 [inputs] -> int16 [rows in blocks].
  SPARRING_FN static void dense(const Layer& layer, const i16* x, Limits limits, i16* out, u32 set = 0) {
    rows(layer, x, set, [&](const Sums& sums, const i32* bias, const i32* multiplier, u32 row) {
      Way::finish(sums, bias, multiplier, layer.shift, limits, out + row);
    });
  }

  // int16 [inputs] -> int32 [rows in blocks].
  SPARRING_FN static void logits(const Layer& layer, const i16* x, i32* out) {
    rows(layer, x, 0, [&](const Sums& sums, const i32* bias, const i32* multiplier, u32 row) {
      Way::finish(sums, bias, multiplier, layer.shift, out + row);
    });
  }

  // 3x3 over a bordered grid of `channels`, `side` cells wide after the stride, to kHidden.
  SPARRING_FN static void convolve(const Layer& layer, const i16* grid, u32 grid_side, u32 channels, u32 stride,
                                   u32 side, const Cells& out) {
    if (channels == 8) convolve_rows<24>(layer, grid, grid_side, stride, side, out);
    if (channels == 16) convolve_rows<48>(layer, grid, grid_side, stride, side, out);
    if (channels == 32) convolve_rows<96>(layer, grid, grid_side, stride, side, out);
  }

 private:
  template <typename Finish>
  SPARRING_FN static void rows(const Layer& layer, const i16* x, u32 set, Finish&& finish) {
    const i32* bias = layer.bias + set * in_blocks(layer.rows);
    const i8* weights = layer.weights;
    for (u32 row = 0; row < layer.rows; row += kRowBlock) {
      Sums sums = Way::none();
      for (u32 at = 0; at < layer.inputs;) {
        const u32 length = segment_of(layer.inputs - at);
        if (length == 128) {
          Way::template add<128>(weights, x + at, sums);
        } else if (length == 32) {
          Way::template add<32>(weights, x + at, sums);
        } else {
          Way::template add<8>(weights, x + at, sums);
        }
        weights += kRowBlock * length;
        at += length;
      }
      finish(sums, bias + row, layer.multiplier + row, row);
    }
  }

  template <u32 kLength>
  SPARRING_FN static void convolve_rows(const Layer& layer, const i16* grid, u32 grid_side, u32 stride, u32 side,
                                        const Cells& out) {
    constexpr u32 channels = kLength / 3;
    const u32 grid_row = (grid_side + 2) * channels;
    for (u32 y = 0; y < side; ++y) {
      for (u32 x = 0; x < side; ++x) {
        const i16* window = grid + y * stride * grid_row + x * stride * channels;
        const i8* weights = layer.weights;
        for (u32 row = 0; row < layer.rows; row += kRowBlock) {
          Sums sums = Way::none();
          for (u32 line = 0; line < 3; ++line, weights += kRowBlock * kLength) {
            Way::template add<kLength>(weights, window + line * grid_row, sums);
          }
          Way::finish(sums, layer.bias + row, layer.multiplier + row, layer.shift, kHidden,
                      out.first + y * out.row + x * out.column + row);
        }
      }
    }
  }
};

}  // namespace sparring::net
