// Limits on what a template may use: steps and bytes of text, counted per rendering thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::jinja {

struct Limits {
  int64_t steps = 50'000'000;  // a few seconds
  /// Bytes of live text that the template made. Eight times the bytes of its input are added to
  /// this.
  int64_t text_bytes = int64_t{32} << 20;
  int depth = 700;  // of nested calls and expressions
};

/// RAII: charges of this thread count against these limits until it is destroyed.
class Meter {
 public:
  explicit Meter(const Limits& limits);
  ~Meter();
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;
  int64_t steps_left() const;

 private:
  Limits outer_;
};

/// Uses up steps; TemplateError if none are left.
void charge(int64_t steps);
/// Charge for work that touches this many bytes or values.
inline void charge_bytes(size_t bytes) { charge(1 + static_cast<int64_t>(bytes / 64)); }
inline void charge_values(size_t values) { charge(1 + static_cast<int64_t>(values)); }

void hold_text(int64_t bytes);  // TemplateError above the limit; then counts nothing
void release_text(int64_t bytes) noexcept;
/// For a text that grows before hold_text: TemplateError if that many bytes would exceed the limit.
void check_growing(size_t bytes);

/// RAII: one level of nesting; TemplateError at the limit.
class Level {
 public:
  Level();
  ~Level();
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
};

}  // namespace hearth::jinja
