#include "budget/run_memory.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/heap_bytes.h"
#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "model/adapters.h"
#include "state/state_save.h"

namespace hearth {

namespace {

constexpr size_t kSavedComponents = 3;  // master and two moments

/// What a save of several ranks takes more for a trained tensor of this process. Files list what they
/// have. The manifest of rank 0 has these names in a copy of the lists, as JSON and as text, when the
/// lists for digests are free.
uint64_t rank_saving_bytes(const Tensor& t, bool owned, bool is_leader) {
  const size_t name = text_heap_bytes(t.name.size());
  const size_t listed = sizeof(std::string) + name;
  const size_t lists = 2 * (sizeof(StateTensor) + name + heap_bytes(2 * sizeof(int64_t)));
  const size_t manifest =
      is_leader
          ? kSavedComponents * (listed + sizeof(Json) + name + 2 * (t.name.size() + sizeof "\"\","))
          : 0;
  return (owned ? kSavedComponents * listed : 0) + manifest - std::min(manifest, lists);
}

}  // namespace

uint64_t table_bytes(const PlanSubject& subject, const RankShards& shards) {
  constexpr uint64_t kOwners = sizeof(int32_t) + sizeof(std::vector<int32_t>) + heap_bytes(24);
  constexpr uint64_t kFarView = sizeof(Digest) + sizeof(void*) + heap_bytes(80);
  const ParameterTable& table = subject.table;
  const bool is_thread = shards.are_threads && shards.rank > 0;
  const bool has_roles = shards.rank == 0 && shards.attention_ranks > 0;  // a plan of the other one
  uint64_t bytes = (is_thread || has_roles ? 2 : 1) * table.memory_bytes();
  if (shards.ranks > 1) bytes += kOwners * table.blocks().size();
  for (const Tensor& t : table.tensors()) {
    bytes += t.trainable ? 2 * sizeof(TensorId) : sizeof(Digest);
    const bool far = shards.rank == 0 && t.trainable && !table.block(t.block).owned;
    if (far) bytes += kSavedComponents * kFarView;
  }
  return bytes;
}

uint64_t saving_bytes(const PlanSubject& subject, const RankShards& shards) {
  // Before a save, processes move what they own. Measured: what Open MPI keeps of a tensor's messages.
  constexpr uint64_t kMessage = 512;
  const bool is_leader = shards.rank == 0;
  uint64_t bytes = 0;
  for (const Tensor& t : subject.table.tensors()) {
    if (!t.trainable) continue;
    const bool owned = subject.table.block(t.block).owned;
    const bool here = owned || (shards.are_threads && is_leader);
    if (here) bytes += save_memory_bytes(t.name.size(), kSavedComponents);
    if (!owned && is_leader) bytes += save_memory_bytes(t.name.size(), kSavedComponents, true);
    if (shards.ranks > 1) bytes += rank_saving_bytes(t, here, is_leader);
    if (shards.ranks > 1 && !shards.are_threads) bytes += is_leader ? kMessage / 2 : kMessage;
  }
  return bytes;
}

uint64_t result_bytes(const PlanSubject& subject, const RankShards& shards) {
  if (shards.rank > 0) return 0;
  const uint64_t buffer = Checkpoint::read_buffer_bytes(1);
  if (!has_adapters(subject.table)) return buffer + subject.opening_bytes;
  uint64_t bytes = buffer;
  for (const Tensor& t : subject.table.tensors()) {
    if (t.factor != Factor::none) continue;
    bytes += sizeof(std::pair<std::string, Digest>) + text_heap_bytes(t.name.size());
  }
  return bytes;
}

std::vector<KindOfRun> kinds_of(const PlanSubject& subject, const RankShards& shards) {
  constexpr uint64_t kThread = 1152 << 10, kLeader = 3328 << 10;
  std::vector<KindOfRun> kinds;
  if (has_adapters(subject.table)) kinds.push_back({192 << 10, "adapters"});
  if (subject.of_model.travel != Travel::never) kinds.push_back({224 << 10, "weights that travel"});
  if (shards.ranks > 1 && shards.are_threads) {
    kinds.push_back({kThread * static_cast<uint64_t>(shards.ranks - 1), "other ranks"});
  } else if (shards.ranks > 1 && shards.rank == 0) {
    kinds.push_back({kLeader, "messages of other processes"});
  }
  return kinds;
}

uint64_t running_bytes(const PlanSubject& subject, const RankShards& shards, size_t far_places) {
  constexpr uint64_t kRun = 960 << 10, kPlace = 144 << 10, kWorker = 16 << 10;
  constexpr uint64_t kGpu = uint64_t{12} << 20;  // of its library; not measured yet
  uint64_t bytes = kRun + kPlace * subject.places.size() +
                   kWorker * static_cast<uint64_t>(subject.workers) + kGpu * far_places;
  for (const KindOfRun& kind : kinds_of(subject, shards)) bytes += kind.bytes;
  return bytes;
}

}  // namespace hearth
