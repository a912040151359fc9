#include "train/far_state.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error_format.h"
#include "base/json.h"
#include "base/stop.h"

namespace hearth {

namespace {

constexpr std::array kRoles{CopyRole::master, CopyRole::moment1, CopyRole::moment2};

}  // namespace

/// Offsets stand in for addresses. One must not be null, so they begin at 1.
class FarState::FarView final : public PlaceMemory {
 public:
  FarView(StateChannel& channel, size_t view) : channel_(channel), view_(view) {}

  static std::byte* address() { return reinterpret_cast<std::byte*>(uintptr_t{1}); }
  bool host_reaches(Place /*place*/) const override { return false; }
  void read(Place /*place*/, const std::byte* source, std::span<std::byte> target) override {
    ask(StateRequest::Kind::read, source, target.size());
    channel_.receive({target.data(), target.size()});
  }
  void write(Place /*place*/, std::byte* target, std::span<const std::byte> source) override {
    ask(StateRequest::Kind::fill, target, source.size());
    channel_.send({source.data(), source.size()});
    if (!filled_ || target == address()) filled_.emplace();
    filled_->update(source.data(), source.size());
    was_read_.reset();
  }
  /// The owner has read it.
  void set_read(const Digest& digest) { was_read_ = digest; }
  bool holds(const Digest& digest) const {
    if (was_read_) return *was_read_ == digest;
    return !filled_ || filled_->digest() == digest;
  }

 private:
  void ask(StateRequest::Kind kind, const std::byte* from, size_t bytes) {
    const auto at = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(from) - 1);
    channel_.ask({kind, 0, view_, at, bytes});
  }

  StateChannel& channel_;
  const size_t view_;
  std::optional<Digest> was_read_;
  /// Of what was written since the first byte was; none: nothing. A hasher is large, and only a resume
  /// writes.
  std::optional<Hasher> filled_;
};

FarState::FarState(RankTeam& team, const ParameterTable& table, const Owners& owners,
                   std::vector<bool> writes)
    : world_(team.world()),
      writes_(std::move(writes)),
      reads_(writes_.size()),
      answers_(writes_.size()),
      owner_(table.tensors().size()),
      index_(table.tensors().size()),
      count_(static_cast<size_t>(team.size())),
      channels_(make_state_channels(team.world())),
      digests_(count_.size()),
      views_(count_.size()) {
  for (size_t id = 0; id < owner_.size(); ++id) {
    const Tensor& t = table.tensors()[id];
    if (!t.trainable) continue;
    owner_[id] = owners.owner(t.block);
    index_[id] = count_[static_cast<size_t>(owner_[id])]++;
  }
  for (size_t rank = 1; rank < count_.size(); ++rank) {
    digests_[rank].resize(kRoles.size() * count_[rank]);
    for (size_t view = 0; view < digests_[rank].size(); ++view) {
      views_[rank].push_back(std::make_unique<FarView>(channels_[rank], view));
    }
  }
}

FarState::~FarState() = default;

void FarState::show(TensorId id, CopyRole role, size_t bytes, StateView& view) const {
  const auto tensor = static_cast<size_t>(id);
  const auto rank = static_cast<size_t>(owner_[tensor]);
  const auto component = static_cast<size_t>(std::ranges::find(kRoles, role) - kRoles.begin());
  const size_t at = component * count_[rank] + index_[tensor];
  view.bytes = {FarView::address(), bytes};
  view.memory = views_[rank][at].get();
  view.digest = &digests_[rank][at];
  if (reaches_files(rank)) view.writer = owner_[tensor];
}

void FarState::take_digests(RankTeam& team) {
  std::vector<Incoming> in;
  for (size_t rank = 1; rank < digests_.size(); ++rank) {
    std::vector<Digest>& of = digests_[rank];
    in.push_back({static_cast<int32_t>(rank),
                  {reinterpret_cast<std::byte*>(of.data()), of.size() * sizeof(Digest)}});
  }
  team.comm().wait_for(team.comm().transfer(team.next(), {}, std::move(in)));
}

void FarState::begin_step(int64_t step) {
  step_ = step;
  for (size_t rank = 1; rank < channels_.size(); ++rank) channels_[rank].begin(step);
}

void FarState::require_arrived() const {
  for (size_t rank = 1; rank < views_.size(); ++rank) {
    for (size_t view = 0; view < views_[rank].size(); ++view) {
      HEARTH_CHECK(views_[rank][view]->holds(digests_[rank][view]),
                   "state: rank " + std::to_string(rank) + " does not hold what was read for it");
    }
  }
}

/// A state before this one may have been damaged.
void FarState::begin_reading(const SavedState& state) {
  for (size_t rank = 1; rank < channels_.size(); ++rank) {
    if (answers_[rank]) hear_read(rank);
  }
  loaded_ = state.directory;
  is_loading_ = true;
  const Json named(JsonObject{{"directory", state.directory}, {"root", state.digest.root.hex()}});
  for (size_t rank = 1; rank < channels_.size(); ++rank) {
    channels_[rank].ask({.kind = StateRequest::Kind::load});
    channels_[rank].send_text(named.dump());
  }
  for (size_t rank = 1; rank < channels_.size(); ++rank) {
    reads_[rank] = channels_[rank].receive_text() == kReads;
    answers_[rank] = reads_[rank];
  }
}

std::string FarState::hear_read(size_t rank) {
  const auto look = [this] {
    try {
      leave_if_stopped("saved state was read");
    } catch (const Error& stopped) {
      throw world_.fail(stopped);  // before the operation is given up
    }
  };
  answers_[rank] = false;
  std::string wrong = channels_[rank].receive_text(look);
  if (!wrong.empty()) return wrong;
  std::vector<Digest>& of = digests_[rank];
  channels_[rank].receive({reinterpret_cast<std::byte*>(of.data()), of.size() * sizeof(Digest)});
  for (size_t view = 0; view < of.size(); ++view) views_[rank][view]->set_read(of[view]);
  return {};
}

/// All answer before an error is raised.
void FarState::end_reading() {
  std::optional<DamagedState> damaged;
  for (size_t rank = 1; rank < channels_.size(); ++rank) {
    if (!answers_[rank]) continue;
    const std::string wrong = hear_read(rank);
    if (wrong.empty() || damaged) continue;
    const Json json = parse_json(wrong, "what a rank could not read");
    const auto number = static_cast<int32_t>(rank);
    damaged.emplace(
        loaded_, json.find("file")->as_string(),
        named_rank(number, world_.host(number)) + ": " + json.find("reason")->as_string());
  }
  if (damaged) throw *damaged;
}

void FarState::end_load() {
  end();
  is_loading_ = false;
}

std::vector<int32_t> FarState::readers() const {
  std::vector<int32_t> ranks{0};
  for (size_t rank = 1; rank < reads_.size(); ++rank) {
    if (reads_[rank]) ranks.push_back(static_cast<int32_t>(rank));
  }
  return ranks;
}

void FarState::begin(const std::string& /*directory*/) {
  is_quiet_ = false;
  for (size_t rank = 1; rank < channels_.size(); ++rank) {
    if (writes_[rank]) channels_[rank].ask({.kind = StateRequest::Kind::write, .step = step_});
  }
}

/// All answer before an error is raised: then none of them writes any more.
void FarState::wait(StateParts& parts) {
  std::string failure;
  for (size_t rank = 1; rank < channels_.size(); ++rank) {
    if (!writes_[rank]) continue;
    const Json answer = parse_json(channels_[rank].receive_text(), "what a rank has written");
    if (const Json* const why = answer.find("failure")) {
      if (failure.empty()) failure = why->as_string();
      continue;
    }
    for (const Json& file : answer.find("files")->as_array()) {
      std::vector<Digest> chunks;
      for (const Json& chunk : file.find("chunks")->as_array()) {
        chunks.push_back(Digest::from_hex(chunk.as_string()).value());
      }
      parts.set_written(file.find("component")->as_string(), static_cast<int32_t>(rank),
                        file.find("bytes")->as_uint(), std::move(chunks));
    }
  }
  is_quiet_ = true;
  if (!failure.empty()) throw storage_error(failure);
}

void FarState::end() noexcept {
  try {
    for (size_t rank = 1; rank < channels_.size(); ++rank) channels_[rank].ask({});
  } catch (const Error&) {  // the run of all ranks has failed, as the next step will say
  }
}

}  // namespace hearth
