#include "data/chat/jinja_meter.h"

#include <string>

#include "data/chat/jinja_value.h"

namespace hearth::jinja {
namespace {

thread_local Limits left;
thread_local int64_t text_held = 0;
thread_local int levels = 0;

}  // namespace

Meter::Meter(const Limits& limits) : outer_(left) { left = limits; }
Meter::~Meter() { left = outer_; }
int64_t Meter::steps_left() const { return left.steps; }

void charge(int64_t steps) {
  left.steps -= steps;
  if (left.steps < 0) throw TemplateError("the template takes too many steps");
}

void hold_text(int64_t bytes) {
  if (text_held + bytes > left.text_bytes) {
    throw TemplateError("the template makes more than " + std::to_string(left.text_bytes >> 20) +
                        " MiB of text");
  }
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
