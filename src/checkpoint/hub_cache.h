// The local cache of the Hugging Face hub: models by their names. Nothing is ever downloaded.
#pragma once

#include <string>

namespace hearth {

/// The directory of a model: `name` itself when there is such a path or when it is no ORG/NAME;
/// else the snapshot that the cache holds of ORG/NAME (its revision `main`) or ORG/NAME@REVISION.
/// Looks in HF_HUB_CACHE, else HF_HOME/hub, else huggingface/hub below the user's cache directory.
/// An input error that names the place when it is not there.
std::string find_model(const std::string& name);

/// A model as files of a result name it.
struct ModelName {
  std::string name;      // as the user gave it, of a model of the hub without its revision
  std::string revision;  // of a model of the hub, where the user gave one; else empty
};
/// What `find_model` found in `directory` under the name that the user gave.
ModelName name_of_model(const std::string& given, const std::string& directory);

}  // namespace hearth
