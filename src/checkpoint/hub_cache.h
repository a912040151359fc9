// Finds models and data sets by name in the local cache of the Hugging Face hub. Never downloads.
#pragma once

#include <optional>
#include <string>

namespace hearth {

/// The directory of a model. If `name` is an existing path, or not of the form ORG/NAME or
/// ORG/NAME@REVISION, returns `name`. Otherwise returns the cached snapshot of that revision
/// (default `main`). The cache is HF_HUB_CACHE, else HF_HOME/hub, else huggingface/hub in the
/// user's cache directory. Input error, naming the cache folder, if the model is not there.
std::string find_model(const std::string& name);

/// The snapshot of a data set ORG/NAME or ORG/NAME@REVISION in the same cache; nullopt if `name` is of
/// another form. Input error, naming the cache folder, if the data set is not there.
std::optional<std::string> find_cached_data_set(const std::string& name);

/// The model's name in the files of a result.
struct ModelName {
  std::string name;      // as the user gave it, without the revision of a hub model
  std::string revision;  // of a hub model, if the user gave one; else empty
};
/// `given` is the user's name of the model; `directory` is find_model's result.
ModelName name_of_model(const std::string& given, const std::string& directory);

}  // namespace hearth
