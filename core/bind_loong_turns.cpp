// Python's view of single turns outside of lanes, told by the judge's text or by rows: what served play asks.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>

#include "bind_loong.h"
#include "loong/rows.h"
#include "loong/scripted.h"
#include "loong/text.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace sparring::loong;

namespace {

// What a row says to the judge.
nb::bytes reply_text(const nb::bytes& row) {
  ActionRow action;
  if (row.size() != sizeof action) throw std::invalid_argument("an action is one row of LOONG_ACTION");
  std::memcpy(&action, row.data(), sizeof action);
  if (!action.valid()) throw std::invalid_argument("not an action");
  return to_bytes(written([&](Out& out) { write_reply(action.action(), out); }));
}

// What the judge told a dragon, as a row.
nb::bytes view_row(const nb::bytes& init, const nb::bytes& block) {
  const Told told(init, block);
  return nb::bytes(reinterpret_cast<const char*>(&told.view), sizeof told.view);
}

// What a scripted player replies: what it does in a lane of the same match.
nb::bytes scripted_reply(u32 script, const nb::bytes& init, const nb::bytes& block, u64 seed, u64 match_seed) {
  if (script >= kScripts) {
    throw std::invalid_argument("there are only " + std::to_string(kScripts) + " scripted players");
  }
  const Told told(init, block);
  Draws draws = Draws::of(seed, match_seed, told.who.id, told.view.round);
  ActionRow action;
  decide(static_cast<Script>(script), told.who, told.view, draws, action);
  return to_bytes(written([&](Out& out) { write_reply(action.action(), out); }));
}

// What scripted players do in turns that are told by rows.
void decide_rows(const Rows& scripts, const Identities& identities, const Rows& views, u64 seed,
                 const Seeds& match_seeds, const MutableRows& actions) {
  static_assert(sizeof(Identity) == 5 * sizeof(i32));
  const std::size_t n = views.shape(0);
  if (scripts.shape(0) != n || scripts.shape(1) != 1 || identities.shape(0) != n || identities.shape(1) != 5 ||
      views.shape(1) != sizeof(View) || match_seeds.shape(0) != n || actions.shape(0) != n ||
      actions.shape(1) != sizeof(ActionRow)) {
    throw std::invalid_argument("scripts, identities, views, match seeds and actions must have a row for each dragon");
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (scripts.data()[i] >= kScripts)
      throw std::invalid_argument("row " + std::to_string(i) + ": there are only " + std::to_string(kScripts) +
                                  " scripted players");
  }
  const nb::gil_scoped_release release;
  for (std::size_t i = 0; i < n; ++i) {
    Identity who;
    View view;
    ActionRow action;
    std::memcpy(&who, identities.data() + 5 * i, sizeof who);
    std::memcpy(&view, views.data() + sizeof view * i, sizeof view);
    Draws draws = Draws::of(seed, match_seeds.data()[i], who.id, view.round);
    decide(static_cast<Script>(scripts.data()[i]), who, view, draws, action);
    std::memcpy(actions.data() + sizeof action * i, &action, sizeof action);
  }
}

}  // namespace

void bind_loong_turns(nb::module_& m) {
  m.def("loong_reply", &reply_text, "action"_a);
  m.def("loong_decide_rows", &decide_rows, "scripts"_a.noconvert(), "identities"_a.noconvert(), "views"_a.noconvert(),
        "seed"_a, "match_seeds"_a.noconvert(), "actions"_a.noconvert());
  m.def("loong_view", &view_row, "init"_a, "block"_a);
  m.def("loong_decide", &scripted_reply, "script"_a, "init"_a, "block"_a, "seed"_a, "match_seed"_a);
}
