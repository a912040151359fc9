// Saved states that are forged as docs/checkpoint-format.md says: every digest is right.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hostile/hostile.h"

namespace hearth::test {

inline const std::string kState = "run/state/step-00000001";
inline const std::string kManifest = kState + "/manifest.json";

/// run/state of a run of the place's files: step 1, its last. The result is not there, so that `train`
/// reads the state and goes on.
void with_state(const Place& place);

/// The same with another manifest: its members changed, or its text before the seal; sealed anew.
std::function<void(const Place&)> manifest(std::function<void(Json& members)> change);
std::function<void(const Place&)> manifest_text(std::function<void(std::string& text)> change);

/// The same with another content of a component's file: bytes, chunks, the component's digest where
/// the file can be read, and the root are made to fit.
std::function<void(const Place&)> component(const std::string& name,
                                            std::function<void(std::string& file)> change);

/// The file that holds the text of the component `progress`.
std::string progress_file(std::string_view text);

/// What is done to the files themselves.
std::function<void(const Place&)> state(std::function<void(const Place&)> change);

}  // namespace hearth::test
