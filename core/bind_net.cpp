// Python's view of the student in integers, for tests and for served play.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "bind_loong.h"
#include "net/student.h"

namespace nb = nanobind;
using namespace nb::literals;
namespace loong = sparring::loong;
namespace net = sparring::net;

namespace {

using Rows = nb::ndarray<const u8, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Memories = nb::ndarray<const net::i16, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

nb::tuple net_step(const nb::bytes& blob, const Rows& inputs, const Rows& mask, const Memories& memory) {
  net::Student student;
  if (!student.bind(data_of(blob), blob.size())) throw std::invalid_argument("these are no weights of a student");
  const std::size_t n = inputs.shape(0), width = student.sizes().memory;
  if (inputs.shape(1) != sizeof(loong::InputsRow) || mask.shape(0) != n || mask.shape(1) != sizeof(loong::MaskRow) ||
      memory.shape(0) != n || memory.shape(1) != width)
    throw std::invalid_argument("inputs must be [n, 9424], mask [n, 40] and memory [n, as wide as the student's]");
  std::vector<loong::MaskRow> masks(n);
  if (n > 0) std::memcpy(masks.data(), mask.data(), n * sizeof(loong::MaskRow));
  for (const loong::MaskRow& row : masks) {
    if (row.held >= loong::kRoles) throw std::invalid_argument("no such role is held");
  }
  std::vector<i64> packed(n);
  std::vector<net::i16> after(memory.data(), memory.data() + n * width);
  const auto scratch = std::make_unique<net::Scratch>();
  {
    const nb::gil_scoped_release release;
    for (std::size_t i = 0; i < n; ++i) {
      const auto& row = reinterpret_cast<const loong::InputsRow*>(inputs.data())[i];
      packed[i] = student.decide<net::Scalar>(row, masks[i], after.data() + i * width, *scratch);
    }
  }
  return nb::make_tuple(own_array(std::move(packed), {n}), own_array(std::move(after), {n, width}));
}

}  // namespace

void bind_net(nb::module_& m) { m.def("net_step", &net_step, "blob"_a, "inputs"_a, "mask"_a, "memory"_a); }
