// The judge's text protocol: what a dragon reads, and the grammar of its replies.
#pragma once

#include "turn.h"
#include "view.h"

namespace sparring::loong {

SPARRING_FN char direction_letter(u32 direction) { return "NESW"[direction]; }

SPARRING_FN u32 direction_of(u8 letter) {
  return letter == 'N' ? kNorth : letter == 'E' ? kEast : letter == 'S' ? kSouth : letter == 'W' ? kWest : kNowhere;
}

// ---- What a dragon reads.

SPARRING_FN void write_init(const Identity& who, Out& out) {
  out.put("ID ").number(who.id).put("\nTEAM ").put(who.team == 0 ? 'A' : 'B');
  out.put("\nMAP ").number(who.width).put(' ').number(who.height);
  out.put("\nUNIT_LIMIT ").number(who.unit_limit).put('\n');
}

namespace writing {

SPARRING_FN void segment(const Lane& lane, const Dragon& dragon, u32 cell, Out& out) {
  const u32 width = static_cast<u32>(lane.level.width), tile = lane.tile_of(cell);
  const bool head = cell == dragon.head;
  out.put(dragon.team == 0 ? 'A' : 'B').put(' ').number(dragon.id).put(' ').number(tile % width).put(' ');
  out.number(tile / width).put(' ').put(direction_letter(segment_facing(lane, dragon, cell)));
  out.put(head ? " 1\n" : " 0\n");
}

SPARRING_FN bool inside(const Lane& lane, const Window& window, u32 cell) {
  const u32 tile = lane.tile_of(cell);
  return window.place(tile % window.width, tile / window.width) != kNone;
}

// The segments of one dragon inside the window, head first; the list of cells runs the other way.
SPARRING_FN void segments(const Lane& lane, const Window& window, const Dragon& dragon, Out& out) {
  u32 found[kWindowTiles];
  u32 count = 0;
  for (u32 i = 0, cell = dragon.tail; i < dragon.length; ++i, cell = lane.cells[cell].next) {
    if (inside(lane, window, cell)) found[count++] = cell;
  }
  while (count > 0) segment(lane, dragon, found[--count], out);
}

SPARRING_FN void bodies(const Lane& lane, const Window& window, Out& out) {
  u32 slots[kWindowTiles];
  u32 seen = 0, count = 0;
  for (u32 place = 0; place < kWindowTiles; ++place) {
    const u32 slot = lane.cells[window.tile(place)].slot();
    if (slot == kNone) continue;
    ++count;
    u32 at = 0;
    while (at < seen && slots[at] != slot) ++at;
    if (at < seen) continue;
    for (at = seen++; at > 0 && lane.dragons[slots[at - 1]].id > lane.dragons[slot].id; --at) slots[at] = slots[at - 1];
    slots[at] = slot;
  }
  out.put("DRAGON_BODIES ").number(count).put('\n');
  for (u32 i = 0; i < seen; ++i) segments(lane, window, lane.dragons[slots[i]], out);
}

// On maps with repeats the board does not say who is where, and a tile may be listed many times: count every body to
// the end, for every segment anew.
SPARRING_FN void repeated_bodies(const Lane& lane, const Window& window, Out& out) {
  u32 count = 0;
  for (u32 pass = 0; pass < 2; ++pass) {
    for (u32 i = 0; i < lane.match.alive; ++i) {
      const Dragon& dragon = lane.dragons[lane.order[i]];
      for (u32 from_head = 0; from_head < dragon.length; ++from_head) {
        u32 cell = dragon.tail;
        for (u32 step = from_head + 1; step < dragon.length; ++step) cell = lane.cells[cell].next;
        if (!inside(lane, window, cell)) continue;
        if (pass == 0) {
          ++count;
        } else {
          segment(lane, dragon, cell, out);
        }
      }
    }
    if (pass == 0) out.put("DRAGON_BODIES ").number(count).put('\n');
  }
}

SPARRING_FN void edge(i32 edge, bool last, Out& out) {
  if (edge >= 0) {
    out.number(edge);
  } else {
    out.put(edge == kKelp ? 'w' : '.');
  }
  out.put(last ? '\n' : ' ');
}

}  // namespace writing

// The block of the dragon in `slot` as it stands now.
SPARRING_FN void write_block(const Lane& lane, u32 slot, Out& out) {
  const Dragon& self = lane.dragons[slot];
  const Window window = Window::around(lane.level, lane.head_tile(self));
  out.put("ROUND ").number(lane.match.round).put("\nDIR ").put(direction_letter(self.facing));
  out.put("\nLENGTH ").number(self.length).put("\nUNIT_COUNT ").number(lane.match.team_alive[self.team]);
  out.put("\nNUM_MSGS ").number(messages_told(lane, self)).put('\n');
  for (u32 i = 0, at = self.first_message; i < self.messages; ++i, at = lane.messages[at].next) {
    const Message& message = lane.messages[at];
    if (is_told(self, message)) out.number(message.number()).put('\n');
  }
  if (self.wide) {
    out.put("ECHOES");
    for (u32 i = 0; i < 5; ++i) out.put(' ').number(static_cast<u32>(self.echoes[i]));
    out.put('\n');
  }
  for (u32 place = 0; place < kWindowTiles; ++place) {
    const u32 tile = window.tile(place);
    out.number(tile % window.width).put(' ').number(tile / window.width).put(lane.cells[tile].pearl() ? " 1 " : " 0 ");
    out.number(lane.countdown(tile)).put('\n');
  }
  if (lane.level.repeats == 0) {
    writing::bodies(lane, window, out);
  } else {
    writing::repeated_bodies(lane, window, out);
  }
  const i32* edges = lane.level.edges();
  for (u32 row = 0; row <= kWindow; ++row) {
    for (u32 column = 0; column < kWindow; ++column) {
      writing::edge(edges[window.row(row) * window.width + window.column(column)], column + 1 == kWindow, out);
    }
  }
  for (u32 row = 0; row < kWindow; ++row) {
    for (u32 column = 0; column <= kWindow; ++column) {
      const u32 tile = window.row(row) * window.width + window.column(column);
      writing::edge(edges[window.cells + tile], column == kWindow, out);
    }
  }
}

namespace reading {

// A decimal number of at most 20 digits that fits 64 bits, without a sign.
SPARRING_FN bool natural(Span& text, u64& value) {
  text.skip_blanks();
  u64 sum = 0;
  u32 digits = 0;
  for (; !text.empty() && is_digit(*text.at); ++text.at, ++digits) {
    const u64 digit = static_cast<u64>(*text.at - '0');
    if (digits == 20 || sum > ~0ull / 10 || (sum == ~0ull / 10 && digit > ~0ull % 10)) return false;
    sum = sum * 10 + digit;
  }
  value = sum;
  return digits > 0;
}

// `KEY number` on a line of its own.
SPARRING_FN bool keyed(Span& text, const char* key, i32& value) {
  Span line = text.line();
  return line.word().is(key) && number(line, value);
}

SPARRING_FN bool edge(Span& line, i32& value) {
  Span word = line.word();
  value = word.is(".") ? kOpen : kKelp;
  return word.is(".") || word.is("w") || number(word, value);
}

}  // namespace reading

// Reads an init block. False: it is none.
SPARRING_FN bool read_init(const u8* bytes, u64 size, Identity& who) {
  Span text{bytes, bytes + size};
  i32 id = 0;
  if (!reading::keyed(text, "ID", id)) return false;
  who.id = static_cast<u32>(id);
  Span line = text.line();
  if (!line.word().is("TEAM")) return false;
  who.team = line.word().is("B");
  line = text.line();
  return line.word().is("MAP") && reading::number(line, who.width) && reading::number(line, who.height) &&
         reading::keyed(text, "UNIT_LIMIT", who.unit_limit);
}

// Reads a round block. False: it is none.
SPARRING_FN bool read_block(const u8* bytes, u64 size, const Identity& who, View& view) {
  using reading::keyed, reading::number, reading::natural;
  Span text{bytes, bytes + size};
  view = View{};
  i32 messages = 0;
  if (!keyed(text, "ROUND", view.round)) return false;
  Span line = text.line();
  if (!line.word().is("DIR")) return false;
  const Span facing = line.word();
  if (facing.empty() || (view.facing = direction_of(*facing.at)) == kNowhere) return false;
  if (!keyed(text, "LENGTH", view.length) || !keyed(text, "UNIT_COUNT", view.units)) return false;
  if (!keyed(text, "NUM_MSGS", messages) || messages < 0) return false;
  view.messages = static_cast<u32>(messages);
  for (u32 i = 0, skipped = view.messages > kViewMessages ? view.messages - kViewMessages : 0; i < view.messages; ++i) {
    u64 value = 0;
    line = text.line();
    if (!natural(line, value)) return false;
    if (i >= skipped) view.newest[i - skipped] = value;
  }

  Span peek = text;
  Span first = peek.line();
  if (first.word().is("ECHOES")) {
    view.wide = 1;
    for (i32& echo : view.echoes) {
      if (!number(first, echo)) return false;
    }
    text = peek;
  }

  Window window{static_cast<u32>(who.width), static_cast<u32>(who.height), 0, 0, 0};
  for (u32 place = 0; place < kWindowTiles; ++place) {
    i32 x = 0, y = 0, pearl = 0;
    line = text.line();
    if (!number(line, x) || !number(line, y) || !number(line, pearl) || !number(line, view.countdown[place]))
      return false;
    view.pearl[place] = pearl != 0;
    view.id[place] = kNone;
    if (place == 0) {
      window.x = static_cast<u32>(x);
      window.y = static_cast<u32>(y);
    } else if (place == kWindowCentre) {
      view.x = x;
      view.y = y;
    }
  }

  i32 bodies = 0;
  if (!keyed(text, "DRAGON_BODIES", bodies)) return false;
  for (i32 i = 0; i < bodies; ++i) {
    line = text.line();
    const bool team_b = line.word().is("B");
    i32 id = 0, x = 0, y = 0, head = 0;
    if (!number(line, id) || !number(line, x) || !number(line, y)) return false;
    const Span heading_word = line.word();
    if (heading_word.empty() || !number(line, head)) return false;
    const u32 heading_at = direction_of(*heading_word.at);
    const u32 place = window.place(static_cast<u32>(x), static_cast<u32>(y));
    if (heading_at == kNowhere || place == kNone) return false;
    if (view.body[place] != 0) continue;
    Dragon dragon{};
    dragon.id = static_cast<u32>(id);
    dragon.team = team_b;
    put_segment(view, place, dragon, head != 0, heading_at);
  }

  for (u32 i = 0; i < kWindowEdges; ++i) {
    if (i % kWindow == 0) line = text.line();
    if (!reading::edge(line, view.north[i])) return false;
  }
  for (u32 i = 0; i < kWindowEdges; ++i) {
    if (i % (kWindow + 1) == 0) line = text.line();
    if (!reading::edge(line, view.west[i])) return false;
  }
  return true;
}

// ---- What a dragon replies.

// The judge's notes on replies and actions that it cannot use.
SPARRING_FN void note_unreadable(Span line, Out& out) { out.put("can't read line: ").put(line.at, line.size()); }
SPARRING_FN void note_cannot_pay(u32 step, Out& out) { out.put("can't pay for step ").number(step); }
SPARRING_FN void note_limit(i32 unit_limit, Out& out) {
  out.put("can't split: unit limit of ").number(unit_limit).put(" reached");
}
SPARRING_FN void note_cannot_split(i32 segments, u32 length, Out& out) {
  out.put("can't split ").number(segments).put(" segments off a length of ").number(length);
}

// What a reply may say besides an action, as it is read.
struct NoNotes {
  SPARRING_FN void unreadable(Span /*line: up to its end, behind a NUL too*/) {}
  SPARRING_FN void log(Span /*text*/) {}
  SPARRING_FN void indicator(Span /*text*/) {}
  SPARRING_FN void draw(bool /*line*/, const i32* /*numbers: x y, x2 y2 if a line, r g b*/) {}
};

namespace reading {

// As scanf's %d and %u: formed in 64 bits, where it sticks at the largest and forgets its sign, then cut to 32 bits.
SPARRING_FN bool scanned(Span& text, i32& value) {
  text.skip_blanks();
  bool negative = false, stuck = false;
  if (!text.empty() && (*text.at == '-' || *text.at == '+')) negative = *text.at++ == '-';
  if (text.empty() || !is_digit(*text.at)) return false;
  u64 sum = 0;
  for (; !text.empty() && is_digit(*text.at); ++text.at) {
    const u64 digit = static_cast<u64>(*text.at - '0');
    stuck = stuck || sum > ~0ull / 10 || (sum == ~0ull / 10 && digit > ~0ull % 10);
    sum = sum * 10 + digit;
  }
  if (stuck) sum = ~0ull;
  value = static_cast<i32>(static_cast<u32>(negative && !stuck ? 0 - sum : sum));
  return true;
}

SPARRING_FN bool all_blank(Span text) {
  text.skip_blanks();
  return text.empty();
}

// Leaves `value` as it was if the text is not a number and nothing else.
SPARRING_FN bool only_scanned(Span text, i32& value) {
  i32 found = 0;
  if (!scanned(text, found) || !all_blank(text)) return false;
  value = found;
  return true;
}

SPARRING_FN bool steps(Span text, u8* steps_out, Action& action) {
  const Span run = text.word();
  for (const u8* c = run.at; c != run.end; ++c) {
    if (direction_of(*c) == kNowhere) return false;
  }
  if (run.empty() || !all_blank(text)) return false;
  for (u64 i = 0; i < run.size(); ++i) steps_out[i] = static_cast<u8>(direction_of(run.at[i]));
  action.kind = Kind::kMove;
  action.steps = steps_out;
  action.step_count = static_cast<u32>(run.size());
  return true;
}

SPARRING_FN bool sonar(Span text, Action& action) {
  text.skip_blanks();
  const u32 direction = text.empty() ? kNowhere : direction_of(*text.at);
  if (direction == kNowhere) {
    i32 value = 0;
    if (!only_scanned(text, value)) return false;
    action.ahead = static_cast<u32>(value);
    action.sends_ahead = true;
    return true;
  }
  ++text.at;
  u64 value = 0;
  if (!natural(text, value) || !all_blank(text)) return false;
  action.aimed[direction] = value;
  action.aimed_directions = static_cast<u8>(action.aimed_directions | 1u << direction);
  return true;
}

template <typename Notes>
SPARRING_FN bool drawing(Span text, bool line, Notes& notes) {
  i32 numbers[7];
  for (u32 i = 0; i < (line ? 7u : 5u); ++i) {
    if (!scanned(text, numbers[i])) return false;
  }
  if (!all_blank(text)) return false;
  notes.draw(line, numbers);
  return true;
}

}  // namespace reading

// Reads a reply. `steps` has room for as many bytes as the reply; the action's steps lie there.
template <typename Notes>
SPARRING_FN Action read_reply(const u8* bytes, u64 size, u8* steps, Notes& notes) {
  Action action{};
  while (size > 0 && bytes[size - 1] != '\n') --size;  // a line without an end is lost
  for (Span text{bytes, bytes + size}; !text.empty();) {
    Span line = text.line();
    if (!line.empty() && line.end[-1] == '\r') --line.end;
    const Span whole = line;
    const u8* visible = line.at;
    while (visible != line.end && *visible != 0) ++visible;
    line.end = visible;
    Span rest = line;
    const Span key = rest.word(15);
    if (key.empty()) continue;
    bool good = false;
    if (key.is("MOVE")) {
      good = reading::steps(rest, steps, action);
    } else if (key.is("SPLIT")) {
      good = reading::only_scanned(rest, action.split);
      if (good) action.kind = Kind::kSplit;
    } else if (key.is("SONAR")) {
      good = reading::sonar(rest, action);
    } else if (key.is("PROTOCOL")) {
      good = reading::only_scanned(rest, action.protocol);
      if (good) action.sets_protocol = true;
    } else if (key.is("INDICATOR")) {
      good = true;
      rest.skip_blanks();
      notes.indicator(rest);
    } else if (key.is("LOG")) {
      good = true;
      rest.skip_blanks();
      notes.log(rest);
    } else if (key.is("DOT") || key.is("LINE")) {
      good = reading::drawing(rest, key.is("LINE"), notes);
    } else if (key.is("ENDTURN")) {
      if (reading::all_blank(rest)) break;
    }
    if (!good) notes.unreadable(whole);
  }
  return action;
}

}  // namespace sparring::loong
