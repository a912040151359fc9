#include "support/fake_cuda_queues.h"

#include <stdexcept>
#include <utility>

namespace hearth::test {

bool FakeQueues::step(FakeStream& stream) {
  if (stream.items.empty()) return false;
  FakeItem& first = stream.items.front();
  if (first.wait && !first.wait->reached) return false;
  FakeItem item = std::move(first);
  stream.items.pop_front();  // before it runs: what throws has ended
  if (item.work) {
    clock += seconds_per_work;
    run_work(stream, item);
  }
  if (item.record) {
    item.record->reached = true;
    item.record->seconds = clock;
  }
  return true;
}

// Some steps of any streams, as another order of a real device.
void FakeQueues::stir() {
  if (seed == 0) return;
  for (uint64_t left = random() % 4; left > 0; --left) {
    step(*streams[random() % streams.size()]);
  }
}

void FakeQueues::advance(FakeStream& stream, const FakeRecord* until) {
  while (until != nullptr ? !until->reached : !stream.items.empty()) {
    stir();
    if (until != nullptr ? until->reached : stream.items.empty()) return;
    if (step(stream)) continue;
    if (stream.items.empty()) throw std::logic_error("fake cuda: a record that no stream holds");
    const std::shared_ptr<FakeRecord> wait = stream.items.front().wait;
    advance(*wait->stream, wait.get());
  }
}

}  // namespace hearth::test
