// Text and bytes into memory that the caller gives.
#pragma once

#include "../common/target.h"

namespace sparring::loong {

// What does not fit is dropped, but counted: `size` is what the whole text takes, so a caller can come back with more.
struct Out {
  u8* bytes;
  u64 capacity;
  u64 size;

  SPARRING_FN bool whole() const { return size <= capacity; }

  SPARRING_FN Out& put(char c) {
    if (size < capacity) bytes[size] = static_cast<u8>(c);
    ++size;
    return *this;
  }

  SPARRING_FN Out& put(const char* text) {
    for (; *text != '\0'; ++text) put(*text);
    return *this;
  }

  SPARRING_FN Out& put(const u8* text, u64 count) {
    for (u64 i = 0; i < count; ++i) put(static_cast<char>(text[i]));
    return *this;
  }

  SPARRING_FN Out& number(u64 value) {
    char digits[20];
    int count = 0;
    do {
      digits[count++] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    while (count > 0) put(digits[--count]);
    return *this;
  }

  SPARRING_FN Out& number(i64 value) {
    if (value < 0) put('-');
    return number(value < 0 ? 0 - static_cast<u64>(value) : static_cast<u64>(value));
  }

  SPARRING_FN Out& number(i32 value) { return number(static_cast<i64>(value)); }
  SPARRING_FN Out& number(u32 value) { return number(static_cast<u64>(value)); }
};

// The white space of C's isspace: space, \t, \n, \v, \f, \r.
SPARRING_FN bool is_blank(u8 c) { return c == ' ' || (c >= 9 && c <= 13); }
SPARRING_FN bool is_digit(u8 c) { return c >= '0' && c <= '9'; }

// A run of bytes inside a longer text, read from the front.
struct Span {
  const u8* at;
  const u8* end;

  SPARRING_FN u64 size() const { return static_cast<u64>(end - at); }
  SPARRING_FN bool empty() const { return at == end; }

  SPARRING_FN void skip_blanks() {
    while (at != end && is_blank(*at)) ++at;
  }

  // The next run of non-blank bytes, at most `longest` of them.
  SPARRING_FN Span word(u64 longest = ~0ull) {
    skip_blanks();
    Span found{at, at};
    while (at != end && !is_blank(*at) && found.size() < longest) found.end = ++at;
    return found;
  }

  // What precedes the next LF, which is taken too; at the end of the text, what is left.
  SPARRING_FN Span line() {
    Span found{at, at};
    while (found.end != end && *found.end != '\n') ++found.end;
    at = found.end == end ? end : found.end + 1;
    return found;
  }

  SPARRING_FN bool is(const char* text) const {
    const u8* c = at;
    for (; c != end && *text != '\0'; ++c, ++text) {
      if (*c != static_cast<u8>(*text)) return false;
    }
    return c == end && *text == '\0';
  }
};

}  // namespace sparring::loong
