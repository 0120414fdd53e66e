// Python's view of what Loong's dragons know: rows of inputs and masks, and dragons that live outside lanes, fed by the
// judge's text or by views, as in a bot or in served play.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bind_loong.h"
#include "loong/lone.h"
#include "loong/observe.h"
#include "loong/text.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace sparring::loong;

namespace {

using Numbers = nb::ndarray<const i64, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Dragons of a bot, each with a memory of its own, in slots.
class LoneDragons {
 public:
  LoneDragons(i64 slots, u64 build) : build_(build) {
    if (slots < 1) throw std::invalid_argument("slots must be 1 or more");
    dragons_.resize(static_cast<std::size_t>(slots));
  }

  i64 slots() const { return static_cast<i64>(dragons_.size()); }

  nb::tuple observe(const nb::bytes& init, const nb::bytes& block, i64 slot) {
    const Told told(init, block);
    std::vector<u8> inputs(sizeof(InputsRow)), mask(sizeof(MaskRow));
    know(slot, told.who, told.view, inputs.data(), mask.data());
    return nb::make_tuple(own_array(std::move(inputs), {sizeof(InputsRow)}),
                          own_array(std::move(mask), {sizeof(MaskRow)}));
  }

  nb::tuple observe_views(const Numbers& slots, const Identities& identities, const Rows& views) {
    const std::size_t n = slots.shape(0);
    if (identities.shape(0) != n || identities.shape(1) != sizeof(Identity) / sizeof(i32))
      throw std::invalid_argument("identities must be a row of five for each slot");
    if (views.shape(0) != n || views.shape(1) != sizeof(View))
      throw std::invalid_argument("views must be one row of LOONG_VIEW for each slot");
    std::vector<u8> inputs(n * sizeof(InputsRow)), masks(n * sizeof(MaskRow));
    for (std::size_t i = 0; i < n; ++i) {
      Identity who;
      View view;
      std::memcpy(&who, identities.data() + 5 * i, sizeof who);
      std::memcpy(&view, views.data() + i * sizeof view, sizeof view);
      know(slots.data()[i], who, view, inputs.data() + i * sizeof(InputsRow), masks.data() + i * sizeof(MaskRow));
    }
    return nb::make_tuple(own_array(std::move(inputs), {n, sizeof(InputsRow)}),
                          own_array(std::move(masks), {n, sizeof(MaskRow)}));
  }

  // The reply to the judge.
  nb::bytes act(i64 packed, i64 slot) {
    const ActionRow action = chosen(packed, slot);
    return to_bytes(written([&](Out& out) { write_reply(action.action(), out); }));
  }

  // The same for dragons in these slots, as rows.
  nb::object act_rows(const Numbers& packed, const Numbers& slots) {
    const std::size_t n = packed.shape(0);
    if (slots.shape(0) != n) throw std::invalid_argument("there must be a choice for each slot");
    std::vector<u8> rows(n * sizeof(ActionRow));
    for (std::size_t i = 0; i < n; ++i) {
      const ActionRow action = chosen(packed.data()[i], slots.data()[i]);
      std::memcpy(rows.data() + i * sizeof action, &action, sizeof action);
    }
    return own_array(std::move(rows), {n, sizeof(ActionRow)});
  }

  void forget(i64 slot) { at(slot).clear(); }

  nb::tuple remembered(i64 slot) { return memory_arrays(living(slot).memory); }

 private:
  std::vector<u64>& at(i64 slot) {
    if (slot < 0 || slot >= slots()) throw std::out_of_range("slot out of range");
    return dragons_[static_cast<std::size_t>(slot)];
  }

  Lone living(i64 slot) {
    if (at(slot).empty()) throw std::logic_error("the dragon of this slot has not been told anything");
    return Lone::at(at(slot).data());
  }

  ActionRow chosen(i64 packed, i64 slot) {
    Lone lone = living(slot);
    if (!choosable(lone.memory.life, packed))
      throw std::invalid_argument(std::to_string(packed) + " is no choice, or not of the role that is held");
    ActionRow action;
    choose(lone.memory, packed, packet_key(lone.who, build_), action);
    if (action.kind == Kind::kMove) remember_steps(lone.memory.life, action.step_count);
    return action;
  }

  // Another dragon, or an earlier round, is another life.
  void know(i64 slot, const Identity& who, const View& view, u8* inputs, u8* mask) {
    const auto sound = [](i32 side) { return side >= kSmallestSide && side <= kLargestSide; };
    const auto inside = [](i32 place, i32 side) { return place >= 0 && place < side; };
    if (!sound(who.width) || !sound(who.height) || who.team > 1) throw std::invalid_argument("no map has such a size");
    if (!inside(view.x, who.width) || !inside(view.y, who.height) || !inside(view.round, kRounds) || view.facing > 3 ||
        view.length < static_cast<i32>(kLeastSegments))
      throw std::invalid_argument("no dragon is told this");
    std::vector<u64>& block = at(slot);
    const bool goes_on = !block.empty() && std::memcmp(&Lone::at(block.data()).who, &who, sizeof who) == 0 &&
                         view.round + 1 >= Lone::at(block.data()).memory.life.seen_at;
    if (!goes_on) {
      block.assign(Lone::bytes(static_cast<u32>(who.width * who.height)) / 8, 0);
      Lone::begin(block.data(), who);
    }
    Lone lone = Lone::at(block.data());
    lone.take_in(view, packet_key(who, build_));
    InputsRow row;
    MaskRow mask_row;
    sparring::loong::observe(lone.memory, who, view, row);
    fill_mask(lone.memory.life, who, view, mask_row);
    std::memcpy(inputs, &row, sizeof row);
    std::memcpy(mask, &mask_row, sizeof mask_row);
  }

  std::vector<std::vector<u64>> dragons_;  // blocks of a Lone
  u64 build_;
};

i64 pack_fields(u32 role, const std::string& kind, u32 direction, u32 segments, const std::vector<u32>& steps,
                u32 claim) {
  Choice choice{};
  choice.role = role;
  choice.kind = kind == "move"     ? kChooseMove
                : kind == "sprint" ? kChooseSprint
                : kind == "split"  ? kChooseSplit
                                   : kNone;
  choice.direction = direction;
  choice.segments = segments;
  choice.claim = claim;
  const u32 sizes = kLeastSegments + kSplitSizes;
  bool good = role < kRoles && choice.kind != kNone && claim <= kNoClaim && steps.size() <= kMostSprint;
  good = good && (choice.kind == kChooseMove ? direction <= kRight : direction == 0);
  good = good && (choice.kind == kChooseSplit ? segments >= kLeastSegments && segments < sizes : segments == 0);
  good = good && (choice.kind == kChooseSprint ? steps.size() >= 2 : steps.empty());
  for (std::size_t i = 0; i < steps.size() && good; ++i) {
    choice.steps[choice.step_count++] = static_cast<u8>(steps[i]);
    good = steps[i] <= kRight;
  }
  if (!good) throw std::invalid_argument("no choice has these parts");
  return pack(choice);
}

nb::tuple unpack_fields_of(i64 packed) {
  Choice choice;
  if (!unpack(packed, choice)) throw std::invalid_argument(std::to_string(packed) + " is no choice");
  std::vector<u32> steps(choice.steps, choice.steps + choice.step_count);
  const char* const kinds[] = {"move", "sprint", "split"};
  return nb::make_tuple(choice.role, kinds[choice.kind], choice.direction, choice.segments, steps, choice.claim);
}

}  // namespace

nb::tuple memory_arrays(const Memory& memory) {
  std::vector<u32> sights(memory.cells);
  std::vector<sparring::loong::u16> notes(memory.cells);
  for (u32 tile = 0; tile < memory.cells; ++tile) {
    sights[tile] = memory.sight(tile);
    notes[tile] = static_cast<sparring::loong::u16>(memory.note(tile));
  }
  const std::size_t width = memory.width, height = memory.height;
  return nb::make_tuple(own_array(std::move(sights), {height, width}), own_array(std::move(notes), {height, width}),
                        nb::bytes(reinterpret_cast<const char*>(&memory.life), sizeof(Life)));
}

void bind_loong_knowledge(nb::module_& m) {
  m.attr("LOONG_INPUTS") = dtype({{"crop", "(15,15,32)u1", offsetof(InputsRow, crop)},
                                  {"overview", "(16,16,8)u1", offsetof(InputsRow, overview)},
                                  {"scalars", "(48,)u1", offsetof(InputsRow, scalars)},
                                  {"sonar", "(8,16)u1", offsetof(InputsRow, sonar)}},
                                 sizeof(InputsRow));
  m.attr("LOONG_MASK") = dtype({{"kinds", "(3,)u1", offsetof(MaskRow, kinds)},
                                {"sizes", "(32,)u1", offsetof(MaskRow, sizes)},
                                {"payable", "u1", offsetof(MaskRow, payable)},
                                {"role_due", "u1", offsetof(MaskRow, role_due)},
                                {"held", "u1", offsetof(MaskRow, held)}},
                               sizeof(MaskRow));
  m.attr("LOONG_LIFE") = dtype({{"heard", "(8,)u8", offsetof(Life, heard)},
                                {"id", "u4", offsetof(Life, id)},
                                {"length", "u4", offsetof(Life, length)},
                                {"known", "u4", offsetof(Life, known)},
                                {"decisions", "u2", offsetof(Life, decisions)},
                                {"gone", "u2", offsetof(Life, gone)},
                                {"facing", "u1", offsetof(Life, facing)},
                                {"symmetry", "u1", offsetof(Life, symmetry)},
                                {"mirrored", "u1", offsetof(Life, mirrored)},
                                {"role", "u1", offsetof(Life, role)},
                                {"claim", "u1", offsetof(Life, claim)}},
                               sizeof(Life));
  nb::dict planes;
  planes["crop"] = names_of(kCropNames);
  planes["overview"] = names_of(kOverviewNames);
  planes["scalars"] = names_of(kScalarNames);
  planes["sonar"] = names_of(kSonarNames);
  m.attr("LOONG_PLANES") = planes;
  m.def("loong_pack", &pack_fields, "role"_a, "kind"_a, "direction"_a, "segments"_a, "steps"_a, "claim"_a);
  m.def("loong_unpack", &unpack_fields_of, "packed"_a);
  nb::class_<LoneDragons>(m, "LoongDragons")
      .def(nb::init<i64, u64>(), "slots"_a = 1, nb::kw_only(), "build"_a = 0)
      .def_prop_ro("slots", &LoneDragons::slots)
      .def("observe", &LoneDragons::observe, "init"_a, "block"_a, "slot"_a = 0)
      .def("observe_views", &LoneDragons::observe_views, "slots"_a, "identities"_a, "views"_a)
      .def("act", &LoneDragons::act, "packed"_a, "slot"_a = 0)
      .def("act_rows", &LoneDragons::act_rows, "packed"_a, "slots"_a)
      .def("forget", &LoneDragons::forget, "slot"_a = 0)
      .def("remembered", &LoneDragons::remembered, "slot"_a = 0);
}
