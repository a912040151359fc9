// A saved state in parts: this process owns the embedding and the history, another one the head.
#pragma once

#include <functional>

#include "train/state_fixture.h"

namespace hearth::test {

/// Memory that must not be looked at; a load may write to it.
class OtherMemory : public PlaceMemory {
 public:
  explicit OtherMemory(std::vector<float>& target) : target_(target) {}
  bool host_reaches(Place) const override { return false; }
  void read(Place, const std::byte*, std::span<std::byte>) override {
    HEARTH_CHECK(false, "memory of another rank was read");
  }
  void write(Place, std::byte* target, std::span<const std::byte> source) override {
    auto* const to = reinterpret_cast<std::byte*>(target_.data());
    std::copy(source.begin(), source.end(), to + (target - address()));
  }
  static std::byte* address() { return reinterpret_cast<std::byte*>(uintptr_t{1}); }

 private:
  std::vector<float>& target_;
};

/// Both processes of a save in one: `first` answers for all of the state, and rank 1 writes the head.
class SharedSave : public OtherWriters {
 public:
  SavedRun& run;
  StateRegistry first;
  std::function<void()> before_other = {};  // writes
  int begun = 0, waited = 0, ended = 0, beats = 0;
  bool is_lost = false;  // the other cannot be reached any more, and may write

  explicit SharedSave(SavedRun& of) : run(of), memory_(of.head) {
    for (const StateComponent& component : run.registry.components()) {
      StateComponent own = component, other = component;
      if (component.name == "weights") {
        own.views = [this, all = component.views] {
          std::vector<StateView> views = all();
          StateView& head = views[1];
          head_digest_ = digest_of(head.bytes.data(), head.bytes.size());
          head.bytes = {OtherMemory::address(), head.bytes.size()};
          head.memory = &memory_;
          head.digest = &head_digest_;
          head.writer = 1;
          return views;
        };
        other.views = [all = component.views] { return std::vector{all()[1]}; };
        second_.add(other);
      }
      first.add(own);
    }
  }

  SavedState save(const std::string& run_dir, int64_t step, int keep = 5) {
    SaveRequest request{run_dir, step, {keep}, kExtra, {}};
    request.others = this;
    return StateSave(first, std::move(request)).write();
  }

  void begin(const std::string& directory) override {
    ++begun;
    quiet_ = !is_lost;
    directory_ = directory;
  }
  bool is_quiet() const override { return quiet_; }
  void beat() override { ++beats; }
  void wait(StateParts& parts) override {
    ++waited;
    if (before_other) before_other();
    StateParts other(second_, 0, nullptr, 1);
    other.write(directory_);
    for (const StateFile& file : other.files()) {
      parts.set_written(file.component, *file.rank, file.bytes, file.chunks);
    }
  }
  void end() noexcept override { ++ended; }

  /// The digest of the head that the other process tells, and what it owns.
  Digest& head_digest() { return head_digest_; }
  const StateRegistry& other() const { return second_; }

 private:
  OtherMemory memory_;
  Digest head_digest_;
  StateRegistry second_;
  std::string directory_;
  bool quiet_ = true;
};

/// The other process of a load, in this one: it reads the head.
class SharedLoad : public OtherReaders {
 public:
  int begun = 0, ended = 0;
  bool is_reading = false;
  bool spoils = false;  // what it reads

  explicit SharedLoad(SharedSave& of) : of_(of) {}
  void begin_reading(const SavedState& state) override {
    ++begun;
    directory_ = state.directory;
  }
  void end_reading() override {
    ++ended;
    is_reading = true;
    int alive = 0;
    const std::vector<Digest> read =
        load_part(of_.other(), open_state(directory_), [&] { ++alive; });
    is_reading = false;
    if (alive != 1 || read.size() != 1) throw storage_error("the other process has one tensor");
    if (spoils) of_.run.head[0] += 1;
    of_.head_digest() =
        spoils ? digest_of(of_.run.head.data(), of_.run.head.size() * sizeof(float)) : read[0];
  }

 private:
  SharedSave& of_;
  std::string directory_;
};

}  // namespace hearth::test
