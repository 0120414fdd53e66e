// What the bindings of Loong share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <utility>
#include <vector>

#include "loong/memory.h"
#include "loong/text.h"

using sparring::i32;
using sparring::i64;
using sparring::u32;
using sparring::u64;
using sparring::u8;

using Rows = nanobind::ndarray<const u8, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;
using MutableRows = nanobind::ndarray<u8, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;
using Seeds = nanobind::ndarray<const u64, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
// Of dragons: [n, 5], an Identity each.
using Identities = nanobind::ndarray<const i32, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

inline nanobind::bytes to_bytes(const std::vector<u8>& bytes) {
  return nanobind::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

inline const u8* data_of(const nanobind::bytes& bytes) { return static_cast<const u8*>(bytes.data()); }

// What `write` puts out, in a vector of the right size.
template <typename Write>
std::vector<u8> written(Write&& write) {
  std::vector<u8> bytes(4096);
  for (;;) {
    sparring::loong::Out out{bytes.data(), bytes.size(), 0};
    write(out);
    bytes.resize(out.size);
    if (out.size <= out.capacity) return bytes;
  }
}

// What the judge told a dragon. Its init block says how the numbers of the round block are meant.
struct Told {
  sparring::loong::Identity who{};
  sparring::loong::View view;

  Told(const nanobind::bytes& init, const nanobind::bytes& block) {
    if (!sparring::loong::read_init(data_of(init), init.size(), who)) throw std::invalid_argument("not an init block");
    if (!sparring::loong::read_block(data_of(block), block.size(), who, view))
      throw std::invalid_argument("not a round block");
  }
};

struct OwnedLevel {
  std::vector<u64> memory;
  const sparring::loong::Level& operator*() const {
    return *reinterpret_cast<const sparring::loong::Level*>(memory.data());
  }
  const sparring::loong::Level* operator->() const { return &**this; }
};

// A NumPy dtype: [(name, format, offset)], and its size.
struct Field {
  const char* name;
  const char* format;
  std::size_t offset;
};

inline nanobind::object dtype(std::initializer_list<Field> fields, std::size_t size) {
  nanobind::list names, formats, offsets;
  for (const Field& field : fields) {
    names.append(field.name);
    formats.append(field.format);
    offsets.append(field.offset);
  }
  nanobind::dict description;
  description["names"] = names;
  description["formats"] = formats;
  description["offsets"] = offsets;
  description["itemsize"] = size;
  return description;
}

// The values as a NumPy array that owns them.
template <typename T>
nanobind::object own_array(std::vector<T>&& values, std::vector<std::size_t> shape) {
  auto* kept = new std::vector<T>(std::move(values));
  nanobind::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nanobind::cast(nanobind::ndarray<nanobind::numpy, T>(kept->data(), shape.size(), shape.data(), owner));
}

template <std::size_t kCount>
nanobind::list names_of(const char* const (&names)[kCount]) {
  nanobind::list list;
  for (const char* name : names) list.append(name);
  return list;
}

// A memory as arrays: the words of sight uint32 [height, width], the notes uint16 [height, width], and the Life as
// bytes.
nanobind::tuple memory_arrays(const sparring::loong::Memory& memory);

void bind_loong_batch(nanobind::module_& m);      // bind_loong_batch.cpp
void bind_loong_knowledge(nanobind::module_& m);  // bind_loong_knowledge.cpp
void bind_loong_turns(nanobind::module_& m);      // bind_loong_turns.cpp
