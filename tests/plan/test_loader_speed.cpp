// The loader on the experts of a large model: how many events it takes per second.
#include <catch2/catch_test_macros.hpp>
#include <ctime>
#include <deque>

#include "base/random.h"
#include "base/sanitized.h"
#include "plan/loader/loader.h"

namespace hearth::test {
namespace {

/// 48 layers of 128 experts of 9 MiB in bf16, with accumulators of 18 MiB, on a device that holds
/// 1,100 experts and 96 accumulators.
class LargeModel {
 public:
  static constexpr int32_t kLayers = 48, kExperts = 128, kWave = 16, kWaves = 4;

  LargeModel()
      : loader_(items(), classes(), {.in_bytes_per_s = 25e9, .out_bytes_per_s = 25e9}, 2) {}

  void step(uint64_t number) {
    for (int32_t layer = 0; layer < kLayers; ++layer) pass(number, layer, false);
    for (int32_t layer = kLayers; layer-- > 0;) pass(number, layer, true);
    for (ItemId item = kLayers * kExperts; item < 2 * kLayers * kExperts; ++item) {
      loader_.bring_home(item);
      ++events_;
    }
    while (finish_one()) {
    }
  }
  uint64_t events() const { return events_; }
  uint64_t bytes() const { return bytes_; }

 private:
  static std::vector<LoadItem> items() {
    std::vector<LoadItem> result(kLayers * kExperts, {size_t{9} << 20});
    result.resize(2 * kLayers * kExperts, {size_t{18} << 20, true});
    return result;
  }
  static std::vector<SlotClass> classes() {
    return {{size_t{9} << 20, 1100, 64}, {size_t{18} << 20, 96, 32}};
  }
  static ItemId weights(int32_t layer, int32_t expert) { return layer * kExperts + expert; }
  /// Which experts a layer's tokens choose in a step: a skewed draw.
  ItemId chosen(uint64_t step, int32_t layer, int32_t i) const {
    const double u = random_.uniform(step * 100'000 + static_cast<uint64_t>(layer * 1000 + i));
    return weights(layer, static_cast<int32_t>(u * u * kExperts));
  }

  void pass(uint64_t step, int32_t layer, bool is_backward) {
    const int32_t next = is_backward ? layer - 1 : layer + 1;
    for (int32_t i = 0; next >= 0 && next < kLayers && i < 32; ++i) {
      loader_.want({chosen(step, next, i), Priority::layer, i});
      ++events_;
    }
    loader_.advance(is_backward ? 2 * kLayers - layer : layer);
    for (int32_t wave = 0; wave < kWaves; ++wave) {
      std::vector<Need> needs;
      for (int32_t i = wave * kWave; i < (wave + 1) * kWave; ++i) {
        const ItemId item = chosen(step, layer, i);
        needs.push_back({item, UseAccess::read});
        if (is_backward) needs.push_back({item + kLayers * kExperts, UseAccess::write});
      }
      loader_.demand(0, needs);
      is_woken_ = false;
      take();
      while (!is_woken_ && finish_one()) {
      }
      if (!is_woken_) FAIL("a demand is not woken");
      for (const Need& need : needs) {
        loader_.expect(need.item, is_backward ? kNever : 2 * kLayers - layer);
      }
      loader_.end_use(0);
      events_ += 2 + needs.size();
    }
  }

  void take() {
    while (const std::optional<LoadCommand> command = loader_.next()) {
      if (command->kind == CommandKind::wake) is_woken_ = true;
      if (command->kind != CommandKind::piece) continue;
      flying_.push_back(command->piece.ticket);
      bytes_ += command->piece.bytes;
    }
  }
  bool finish_one() {
    if (flying_.empty()) take();
    if (flying_.empty()) return false;
    loader_.finished(flying_.front());
    ++events_;
    flying_.pop_front();
    take();
    return true;
  }

  Loader loader_;
  Random random_{7, RandomSite::routing};
  std::deque<int32_t> flying_;
  bool is_woken_ = false;
  uint64_t events_ = 0, bytes_ = 0;
};

TEST_CASE("loader: events per second of a large model", "[.long]") {
  LargeModel model;
  model.step(0);
  const std::clock_t begin = std::clock();
  const uint64_t before = model.events();
  for (uint64_t step = 1; step <= (kSanitized ? 1 : 4); ++step) model.step(step);
  const auto events = static_cast<double>(model.events() - before);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  INFO(events / seconds << " events per second of a core, " << events << " events, "
                        << model.bytes() << " bytes");
  if (!kSanitized) CHECK(events / seconds > 100'000);  // a tenth of what an idle core does
  CHECK(model.bytes() > 0);
}

}  // namespace
}  // namespace hearth::test
