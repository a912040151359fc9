// Element types, hashes and random numbers against independent slow code and published values.
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "base/dtype.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/utf8.h"

using namespace hearth;

namespace {

// The value of a 16-bit float with `e` exponent bits, by the definition of IEEE 754.
double value_of(uint16_t bits, int e) {
  const int fraction_bits = 15 - e;
  const int bias = (1 << (e - 1)) - 1;
  const int exponent = bits >> fraction_bits & ((1 << e) - 1);
  const double fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << e) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(1 + std::ldexp(fraction, -fraction_bits), exponent - bias);
}

// Nearest 16-bit float by search among the non-negative ones, ties to the even pattern.
uint16_t nearest(double x, int e) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const double magnitude = std::fabs(x);
  const auto infinity = static_cast<uint16_t>(((1 << e) - 1) << (15 - e));
  // As if the exponent went on: the value that would follow the largest finite one.
  const double beyond = 2 * std::ldexp(1.0, (1 << (e - 1)) - 1);
  const auto at = [&](uint16_t b) { return b == infinity ? beyond : value_of(b, e); };
  uint16_t low = 0, high = infinity;
  if (magnitude >= beyond) return sign | infinity;
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (at(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - at(low), above = at(high) - magnitude;
  const bool up = above < below || (above == below && (low & 1));
  return static_cast<uint16_t>(sign | (up ? high : low));
}

template <class T>
T converted(double x) {
  T result;
  convert(DType::f64, &x, dtype_of<T>(), &result, 1);
  return result;
}

}  // namespace

TEST_CASE("every 16-bit float has its value and reads back") {
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const double b = value_of(bits, 8), h = value_of(bits, 5);
    const float fb = to_float(bf16{bits}), fh = to_float(f16{bits});
    if (std::isnan(b)) {
      REQUIRE(std::isnan(fb));
      REQUIRE(std::isnan(to_float(to_bf16(fb))));
    } else {
      REQUIRE(fb == b);
      REQUIRE(to_bf16(fb).bits == bits);
    }
    if (std::isnan(h)) {
      REQUIRE(std::isnan(fh));
      REQUIRE(std::isnan(to_float(to_f16(fh))));
    } else {
      REQUIRE(fh == h);
      REQUIRE(to_f16(fh).bits == bits);
    }
  }
}

TEST_CASE("rounding is to nearest even") {
  std::mt19937_64 random(2);
  const auto check = [](float x) {
    REQUIRE(to_bf16(x).bits == nearest(x, 8));
    REQUIRE(to_f16(x).bits == nearest(x, 5));
  };
  for (uint32_t i = 0; i < 65535; ++i) {  // every value, every midpoint and its neighbours
    for (const int e : {5, 8}) {
      const double low = value_of(static_cast<uint16_t>(i), e);
      const double high = value_of(static_cast<uint16_t>(i + 1), e);
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      const auto middle = static_cast<float>((low + high) / 2);
      check(middle);
      check(std::nextafter(middle, 1e30f));
      check(std::nextafter(middle, -1e30f));
    }
  }
  for (int i = 0; i < 500000; ++i) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (!std::isnan(x)) check(x);
  }
  for (const float x :
       {65504.0f, 65519.99f, 65520.0f, 65536.0f, 0x1p-24f, 0x1p-25f, 0x1.01p-25f,
        std::numeric_limits<float>::max(), std::numeric_limits<float>::infinity()}) {
    check(x);
    check(-x);
  }
}

TEST_CASE("f64 rounds once, not by way of f32") {
  // 1 + 2^-8 is halfway between two bf16; a little more must go up although f32 cannot see it.
  CHECK(converted<bf16>(1 + 0x1p-8 + 0x1p-40).bits == 0x3f81);
  CHECK(converted<bf16>(1 + 0x1p-8).bits == 0x3f80);
  CHECK(converted<f16>(1 + 0x1p-11 + 0x1p-40).bits == 0x3c01);
  CHECK(converted<f16>(1 + 0x1p-11).bits == 0x3c00);
  std::mt19937_64 random(3);
  for (int i = 0; i < 300000; ++i) {
    // Near midpoints, where rounding twice goes wrong.
    const auto bits = static_cast<uint16_t>(random() % 0x7000);
    for (const int e : {5, 8}) {
      const double middle = (value_of(bits, e) + value_of(static_cast<uint16_t>(bits + 1), e)) / 2;
      const double x = middle * (1 + (static_cast<double>(random() % 7) - 3) * 0x1p-45);
      REQUIRE(converted<bf16>(x).bits == nearest(x, 8));
      REQUIRE(converted<f16>(x).bits == nearest(x, 5));
    }
  }
}

TEST_CASE("convert covers every pair of floating types") {
  const std::vector<DType> types{DType::f64, DType::f32, DType::bf16, DType::f16};
  const std::vector<double> values{0, 1, -2.5, 0.375, 1024};  // exact in all of them
  for (const DType from : types) {
    for (const DType to : types) {
      std::vector<std::byte> a(40), b(40);
      std::vector<double> back(5);
      convert(DType::f64, values.data(), from, a.data(), 5);
      convert(from, a.data(), to, b.data(), 5);
      convert(to, b.data(), DType::f64, back.data(), 5);
      CHECK(back == values);
    }
  }
}

TEST_CASE("philox gives the published numbers") {
  // Known answers of Random123 (kat_vectors, philox4x32 10).
  using Block = std::array<uint32_t, 4>;
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("draws depend on every coordinate and on nothing else") {
  std::set<uint64_t> seen;
  for (const uint64_t seed : {0u, 1u}) {
    for (const RandomSite site : {RandomSite::init, RandomSite::dropout}) {
      for (const uint32_t a : {0u, 1u}) {
        for (const uint32_t b : {0u, 1u}) {
          for (const uint64_t index : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
            seen.insert(Random(seed, site, a, b).bits(index));
          }
        }
      }
    }
  }
  CHECK(seen.size() == 48);
  // Part of saved runs: these must never change.
  CHECK(Random(42, RandomSite::init).bits(0) == 0x4306b273a1d7a484u);
  CHECK(name_key("model.embed_tokens.weight") == 0x05b573bc8f9c840eu);
}

TEST_CASE("draws have the distribution they claim") {
  const Random r(7, RandomSite::sample);
  double sum = 0, squares = 0, uniform = 0;
  std::vector<int> counts(7);
  const int n = 200000;
  for (uint64_t i = 0; i < n; ++i) {
    const double x = r.normal(i), u = r.uniform(i);
    REQUIRE((u >= 0 && u < 1));
    sum += x, squares += x * x, uniform += u;
    ++counts[r.below(i, 7)];
    REQUIRE(r.below(i, 1) == 0);
  }
  CHECK(std::fabs(sum / n) < 0.01);
  CHECK(std::fabs(squares / n - 1) < 0.02);
  CHECK(std::fabs(uniform / n - 0.5) < 0.005);
  for (const int c : counts) CHECK(std::abs(c - n / 7) < 800);
  const uint64_t large = uint64_t{3} << 62;  // a modulo would favour the lower part
  int above = 0;
  for (uint64_t i = 0; i < 10000; ++i) above += r.below(i, large) >= large / 2;
  CHECK(std::abs(above - 5000) < 250);
}

TEST_CASE("hashes are those of the xxHash tools") {
  CHECK(digest_of("").hex() == "99aa06d3014798d86001c324468d497f");
  CHECK(digest_of("abc").hex() == "06b05ab6733a618578af5f94892f3950");
  Hasher pieces;
  std::vector<char> data(100000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 31 >> 3);
  for (size_t at = 0, step = 1; at < data.size(); at += step, step = step * 2 + 1) {
    pieces.update(data.data() + at, std::min(step, data.size() - at));
  }
  CHECK(pieces.digest() == digest_of(data.data(), data.size()));

  Hasher ab_c, a_bc;
  ab_c.update_field("ab"), ab_c.update_field("c");
  a_bc.update_field("a"), a_bc.update_field("bc");
  CHECK_FALSE(ab_c.digest() == a_bc.digest());
}

TEST_CASE("chunks of a stream are hashed apart, however it arrives") {
  const std::string text = "0123456789abcdefghij";
  for (const size_t step : {size_t{1}, size_t{3}, size_t{8}, text.size()}) {
    ChunkHasher hasher(8);
    for (size_t at = 0; at < text.size(); at += step) {
      hasher.update(text.data() + at, std::min(step, text.size() - at));
    }
    CHECK(hasher.finish() ==
          std::vector<Digest>{digest_of("01234567"), digest_of("89abcdef"), digest_of("ghij")});
  }
  CHECK(ChunkHasher(8).finish().empty());
  ChunkHasher whole(4);
  whole.update("abcdefgh", 8);
  CHECK(whole.finish().size() == 2);
}

TEST_CASE("digests read back from their digits") {
  const Digest d = digest_of("abc");
  CHECK(Digest::from_hex(d.hex()) == d);
  for (const char* bad :
       {"", "06b05ab6733a618578af5f94892f395", "06B05AB6733A618578AF5F94892F3950",
        "g6b05ab6733a618578af5f94892f3950", "06b05ab6733a618578af5f94892f39500"}) {
    CHECK_FALSE(Digest::from_hex(bad));
  }
}

TEST_CASE("valid UTF-8 is what the standard says") {
  CHECK(decode_utf8("\xf4\x8f\xbf\xbf").code == 0x10ffff);
  for (const char* bad :
       {"\xf4\x90\x80\x80", "\xed\xa0\x80", "\xc0\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80", "\x80",
        "\xc3", "\xe2\x82", "\xff", "\xf8\x88\x80\x80"}) {
    CHECK(decode_utf8(bad).length == 0);
  }
  CHECK(find_invalid_utf8("ab\xc3\xa9\xffz") == 4);
  CHECK(replace_invalid_utf8("a\xff\xc3"
                             "b") ==
        "a\xef\xbf\xbd\xef\xbf\xbd"
        "b");
}
