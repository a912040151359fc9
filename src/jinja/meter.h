// What a template may use: steps and bytes of text, counted for the thread that renders.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::jinja {

struct Limits {
  int64_t steps = 50'000'000;  // a few seconds
  /// Of the texts that it makes and that live at once: so much, and eight times what it is given.
  int64_t text_bytes = int64_t{32} << 20;
  int depth = 700;  // of calls and expressions in one another
};

/// While it lives, charges of this thread count against these limits.
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

/// Takes steps; TemplateError when there are none left.
void charge(int64_t steps);
/// Work that touches so many bytes or so many values.
inline void charge_bytes(size_t bytes) { charge(1 + static_cast<int64_t>(bytes / 64)); }
inline void charge_values(size_t values) { charge(1 + static_cast<int64_t>(values)); }

void hold_text(int64_t bytes);  // TemplateError above the limit; then nothing is held
void release_text(int64_t bytes) noexcept;
/// For a text that grows before it is held: TemplateError when it could not be held as it is.
void check_growing(size_t bytes);

/// One level deeper; TemplateError at the limit.
class Level {
 public:
  Level();
  ~Level();
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
};

}  // namespace hearth::jinja
