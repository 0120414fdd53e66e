// Players that a batch plays by itself: the scripted ones, and the foil. A CPU and a GPU call the same functions.
#pragma once

#include "foil.h"
#include "knowing.h"

namespace sparring::loong {

// By number: the scripted players, then the foil.
constexpr u8 kFoilPlayer = kScripts;
constexpr u32 kPlayers = kScripts + 1;

// What the foil does in a lane that waits, whoever plays it.
SPARRING_FN void foil_in(const Batch& batch, const Knowing& knowing, u64 index, const Wishes& wishes,
                         FoilScratch& scratch, ActionRow& action) {
  know_in(batch, knowing, index);
  const Lane lane = batch.lane(index);
  Memory memory = knowing.of(batch, index).of(lane.match.acting);
  const Identity who = identity_of(lane, lane.dragons[lane.match.acting]);
  play_foil(wishes, who, batch.views[index], memory, packet_key(who, knowing.build), scratch, action);
}

// What the foil's bot does, whoever the others in the lane are: unlike theirs, none of its lives is mirrored, and it
// goes by packets of its own build.
SPARRING_FN void bot_foil_in(const Batch& batch, const Knowing& knowing, u64 index, FoilScratch& scratch,
                             ActionRow& action) {
  const Wishes usual{};
  Knowing own = knowing;
  own.build = kFoilBuild;
  own.of(batch, index).lives[batch.lane(index).match.acting].mirrored = 0;
  foil_in(batch, own, index, usual, scratch, action);
}

// The players of A and B act until a dragon of nobody's waits, or the match is over. `knowing` may be null, and
// `scratch` where no foil plays.
SPARRING_FN void play_in(const Batch& batch, const Knowing* knowing, u64 index, const u8* players, u64 seed,
                         FoilScratch* scratch) {
  const Script* const scripts = reinterpret_cast<const Script*>(players);
  const LaneRow& row = batch.rows[index];
  while (row.waiting != 0 && scripts[row.team] != Script::kNobody) {
    ActionRow action;
    if (players[row.team] == kFoilPlayer) {
      bot_foil_in(batch, *knowing, index, *scratch, action);
    } else {
      decide_in(batch, index, scripts, seed, action);
    }
    if (knowing != nullptr) {
      act_knowing(batch, *knowing, index, action);
    } else {
      act(batch, index, action);
    }
  }
}

}  // namespace sparring::loong
