// What readers of a saved state have in common: files that are wrong are damage of the state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "state/saved_state.h"
#include "state/state_digest.h"
#include "state/state_manifest.h"

namespace hearth {

/// Runs a reader of one file of a state: whatever it refuses is damage of that file. A request to stop
/// passes.
template <class Action>
auto reading(const std::string& directory, const std::string& file, const Action& action) {
  try {
    return action(directory + "/" + file);
  } catch (const DamagedState&) {
    throw;
  } catch (const NewerState&) {
    throw;
  } catch (const Error& error) {
    if (error.code() == ExitCode::stopped) throw;
    std::string reason = error.what();
    const std::string path = directory + "/" + file + ": ";
    if (reason.starts_with(path)) reason.erase(0, path.size());
    throw DamagedState(directory, file, reason);
  }
}

StateManifest read_manifest(const std::string& directory);

/// What is wrong with a piece of an f32 tensor, `offset` bytes into it, a multiple of 4 where nothing
/// was wrong before; empty if all is finite.
std::string not_finite(const std::string& tensor, const std::byte* data, uint64_t offset,
                       uint64_t bytes);

/// The names of a part stand in the manifest, too. Input error if they differ.
void check_names(const StateFile& expected, const SafetensorsHeader& header);

/// The files of each component, which stand together.
std::vector<std::span<const StateFile>> by_component(std::span<const StateFile> files);

/// DamagedState if the content has another root digest than the manifest.
void check_root(const std::string& directory, const StateDigest& digest,
                const StateManifest& manifest);

}  // namespace hearth
