// The events of a match as a replay of the judge's lists them, for Python to make a replay of. Not for the GPU: it
// grows.
#pragma once

#include <initializer_list>
#include <vector>

#include "out.h"
#include "turn.h"

namespace sparring::loong {

// Words of 32 bits: per event its kind, then what it says; a text says its size here, and its bytes elsewhere. Once the
// words exceed the room, events are counted and nothing more: so the last one kept is whole.
// src/sparring/judge/recording.py reads them.
class Recording {
 public:
  // The judge's numbers.
  enum Tag : i32 {
    kRoundStart,
    kTurnStart,
    kPearlCountdown,
    kTileChange,
    kDragonAction,
    kEngineLog,
    kDragonLog,
    kDragonIndicator,
    kDebugDraw,
    kDragonUpdate,
    kDragonSplit,
    kDragonDeath,
    kSonarPing
  };

  explicit Recording(u64 room) : room_(room) {}

  void event(Tag tag, std::initializer_list<i64> words) {
    ++events_;
    kept_ = words_.size() < room_;
    put(tag);
    for (const i64 word : words) put(word);
  }

  void text(Span text) {
    put(static_cast<i64>(text.size()));
    if (kept_) texts_.insert(texts_.end(), text.at, text.end);
  }

  void action(const Dragon& dragon, const Action& action) {
    event(kDragonAction, {dragon.id, static_cast<i64>(action.kind)});
    if (action.kind == Kind::kSplit) put(action.split);
    if (action.kind != Kind::kMove) return;
    put(action.step_count);
    for (u32 i = 0; i < action.step_count; ++i) put(action.steps[i]);
  }

  // The tiles of a body from its head; its list of cells runs the other way.
  void body(const Lane& lane, const Dragon& dragon) {
    put(dragon.length);
    if (!kept_) return;
    words_.resize(words_.size() + dragon.length);
    u32 cell = dragon.tail;
    for (u32 i = 1; i <= dragon.length; ++i, cell = lane.cells[cell].next) {
      words_[words_.size() - i] = static_cast<i32>(lane.tile_of(cell));
    }
  }

  i32 events() const { return events_; }
  const std::vector<i32>& words() const { return words_; }
  const std::vector<u8>& texts() const { return texts_; }

 private:
  // Unsigned words keep their bits.
  void put(i64 word) {
    if (kept_) words_.push_back(static_cast<i32>(word));
  }

  u64 room_;
  bool kept_ = false;  // the event that is being told
  i32 events_ = 0;
  std::vector<i32> words_;
  std::vector<u8> texts_;
};

}  // namespace sparring::loong
