#include "jinja/meter.h"

#include <string>

#include "jinja/value.h"

namespace hearth::jinja {
namespace {

thread_local Limits left;
thread_local int64_t text_held = 0;
thread_local int levels = 0;

}  // namespace

Meter::Meter(const Limits& limits) : outer_(left) {
  left = limits;
  left.text_bytes += 9 * text_held;  // what is given is held, too
}
Meter::~Meter() { left = outer_; }
int64_t Meter::steps_left() const { return left.steps; }

void charge(int64_t steps) {
  left.steps -= steps;
  if (left.steps < 0) throw TemplateError("the template takes too many steps");
}

void check_growing(size_t bytes) {
  if (static_cast<int64_t>(bytes) > left.text_bytes - text_held) {
    throw TemplateError("the template makes more than " + std::to_string(left.text_bytes >> 20) +
                        " MiB of text");
  }
}

void hold_text(int64_t bytes) {
  check_growing(static_cast<size_t>(bytes));
  text_held += bytes;
}

void release_text(int64_t bytes) noexcept { text_held -= bytes; }

Level::Level() {
  if (++levels > left.depth) {
    --levels;
    throw TemplateError("calls and expressions nested too deep");
  }
}
Level::~Level() { --levels; }

}  // namespace hearth::jinja
