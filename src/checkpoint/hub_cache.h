// The local cache of the Hugging Face hub: models by their names. Nothing is ever downloaded.
#pragma once

#include <string>

namespace hearth {

/// The directory of a model: `name` itself when there is such a path or when it is no ORG/NAME;
/// else the snapshot that the cache holds of ORG/NAME (its revision `main`) or ORG/NAME@REVISION.
/// Looks in HF_HUB_CACHE, else HF_HOME/hub, else huggingface/hub below the user's cache directory.
/// An input error that names the place when it is not there.
std::string find_model(const std::string& name);

}  // namespace hearth
