// Faults of what a state holds, by the functions of its components (decorate_components):
//   drop-COMPONENT                 what a load reads of it is lost
//   forget-COUNTER                 a counter of progress is loaded as 0
//   off-by-one-cursor              data go on one sequence later
//   digest-leaves-out-a-tensor     a component does not show its last tensor
#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/state_registry.h"
#include "support/planted.h"

namespace hearth::test {
namespace {

/// What a load is given of a component that is dropped: memory of nobody, of the file's sizes.
struct Lost {
  bool loading = false;
  std::vector<std::pair<std::string, std::vector<std::byte>>> tensors;
};

std::vector<StateView> lost_views(std::vector<StateView> views, Lost& lost) {
  for (StateView& view : views) {
    for (auto& [name, bytes] : lost.tensors) {
      if (name != view.name) continue;
      int64_t row = static_cast<int64_t>(size_of(view.dtype));
      for (size_t i = 1; i < view.shape.size(); ++i) row *= view.shape[i];
      view.shape[0] = view.end = static_cast<int64_t>(bytes.size()) / row;
      view.begin = 0;
      view.bytes = bytes;
      view.place = kHostPlace;
      view.memory = &host_memory();
    }
  }
  return views;
}

/// Gives a counter in the text of a component another value, over as many characters.
void change_counter(std::span<std::byte> bytes, const std::string& key, bool forget) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t name = text.find("\"" + key + "\":");
  if (name == std::string_view::npos) return;
  const size_t begin = name + key.size() + 3;
  const size_t end = std::min(text.find_first_of(",}", begin), text.size());
  int64_t value = 0;
  const size_t digits = std::min(text.find_first_of("0123456789", begin), end);
  std::from_chars(text.data() + digits, text.data() + end, value);
  std::string changed = std::to_string(forget ? 0 : value + 1);
  if (changed.size() > end - begin) return;
  changed.insert(0, end - begin - changed.size(), ' ');
  std::memcpy(bytes.data() + begin, changed.data(), changed.size());
}

void decorate(StateComponent& component) {
  const auto lost = std::make_shared<Lost>();
  const std::string drop = "drop-" + component.name;
  const bool counters = component.name == "progress";
  component.prepare = [lost, drop, inner = component.prepare](std::string_view view,
                                                              uint64_t bytes) {
    if (!planted(drop)) {
      if (inner) inner(view, bytes);
      return;
    }
    if (!lost->loading) lost->tensors.clear();
    lost->loading = true;
    lost->tensors.emplace_back(view, bytes);
  };
  component.restored = [lost, drop, counters, views = component.views, inner = component.restored] {
    if (planted(drop)) {
      lost->loading = false;
      return;
    }
    if (counters) {
      const std::span<std::byte> text = views().front().bytes;
      for (const char* key : {"step", "updates", "tokens", "trained_tokens", "skipped",
                              "skipped_in_a_row", "epoch", "sequence"}) {
        if (planted(std::string("forget-") + key)) change_counter(text, key, true);
      }
      if (planted("off-by-one-cursor")) change_counter(text, "sequence", false);
    }
    if (inner) inner();
  };
  component.views = [lost, inner = component.views] {
    std::vector<StateView> views = inner();
    if (lost->loading) return lost_views(std::move(views), *lost);
    if (planted("digest-leaves-out-a-tensor") && views.size() > 1) {
      views.erase(
          std::max_element(views.begin(), views.end(),
                           [](const StateView& a, const StateView& b) { return a.name < b.name; }));
    }
    return views;
  };
}

const bool decorated = (decorate_components(decorate), true);

}  // namespace
}  // namespace hearth::test
