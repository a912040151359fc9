// Adapters with values of their own for tests: tables with memory, directories, single tensors.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/glob.h"
#include "base/random.h"
#include "checkpoint/safetensors_writer.h"
#include "model/adapters.h"
#include "model_fixtures.h"
#include "peft/adapter.h"
#include "peft/merge.h"
#include "peft/write.h"
#include "support/stored_tensors.h"
#include "support/temporary_directory.h"

namespace hearth::test {

/// A table with adapters, and memory for what is trained alone.
struct AdapterTable {
  ParameterTable table;
  std::vector<float> memory;

  explicit AdapterTable(ParameterTable with_adapters) : table(std::move(with_adapters)) {
    size_t elements = 0;
    for (const Tensor& t : table.tensors()) elements += t.trainable ? t.size() : 0;
    memory.resize(elements);
    float* at = memory.data();
    for (Tensor& t : table.tensors()) {
      if (!t.trainable) continue;
      t.copies[static_cast<int>(CopyRole::master)] = {View(at, DType::f32, t.rows, t.cols), 1};
      at += t.size();
    }
  }
};

/// Fresh adapters whose B are not zero either; `trained`: globs of tensors trained beside them.
inline AdapterTable make_adapters(const Checkpoint& base, const AdapterOptions& options,
                                  uint64_t seed = 3, const std::vector<std::string>& trained = {}) {
  ParameterTable table = base.make_table();
  for (Tensor& t : table.tensors()) {
    for (const std::string& glob : trained) t.trainable |= glob_matches(glob, t.name);
  }
  add_adapters(table, base.layout(), options);
  AdapterTable owned(std::move(table));
  init_adapters(owned.table, seed);
  const Random random(seed, RandomSite::init);
  uint64_t n = 0;
  for (Tensor& t : owned.table.tensors()) {
    if (!t.trainable || t.factor == Factor::a) continue;
    auto* values = View{t.home().view}.as<float>();
    for (int64_t i = 0; i < t.size(); ++i) values[i] = static_cast<float>(random.normal(n++) / 4);
  }
  return owned;
}

inline LoadedAdapter read_adapter(const std::string& directory, const Checkpoint& base,
                                  const AdapterReadOptions& options = {}) {
  return LoadedAdapter(AdapterFile(directory, base, options), base);
}

/// scale * B A of every matrix with a pair, by name, in f64.
inline std::map<std::string, std::vector<double>> deltas(const ParameterTable& table) {
  std::map<std::string, std::vector<double>> out;
  for (const Block& block : table.blocks()) {
    if (block.kind != BlockKind::adapter) continue;
    for (TensorId id = block.begin; id < block.end; id += 2) {
      const Tensor& a = table.tensor(id);
      const Tensor& b = table.tensor(id + 1);
      std::vector<double> delta(static_cast<size_t>(b.rows * a.cols));
      const auto* av = a.home().view.as<float>();
      const auto* bv = b.home().view.as<float>();
      for (int64_t r = 0; r < b.rows; ++r) {
        for (int64_t c = 0; c < a.cols; ++c) {
          double sum = 0;
          for (int64_t j = 0; j < a.rows; ++j) {
            sum +=
                static_cast<double>(bv[r * a.rows + j]) * static_cast<double>(av[j * a.cols + c]);
          }
          delta[static_cast<size_t>(r * a.cols + c)] = block.scale * sum;
        }
      }
      out.emplace(table.tensor(*table.find_slot(block.base, a.slot)).name, std::move(delta));
    }
  }
  return out;
}

/// The largest difference of two sets of deltas; infinite where a name stands in one alone and is
/// not zero there.
inline double distance(const ParameterTable& x, const ParameterTable& y) {
  double largest = 0;
  const auto ours = deltas(x), theirs = deltas(y);
  const auto one_side = [&](const auto& these, const auto& those) {
    for (const auto& [name, values] : these) {
      const auto other = those.find(name);
      for (size_t i = 0; i < values.size(); ++i) {
        const double against = other == those.end() ? 0 : other->second[i];
        largest = std::max(largest, std::abs(values[i] - against));
      }
    }
  };
  one_side(ours, theirs);
  one_side(theirs, ours);
  return largest;
}

inline Json read_json(const std::string& path) { return parse_json(read_text(path), path); }

inline constexpr const char* kAdapterWeightsFile = "/adapter_model.safetensors";
inline constexpr const char* kAdapterConfigFile = "/adapter_config.json";

/// Metadata of the weights.
using Notes = std::vector<std::pair<std::string, std::string>>;

inline void store_noted(const std::string& adapter, const std::vector<StoredTensor>& tensors,
                        const Notes& notes) {
  const std::string path = adapter + kAdapterWeightsFile;
  std::vector<SafetensorsEntry> entries;
  for (const StoredTensor& t : tensors) entries.push_back(t.entry);
  remove_file(path);
  SafetensorsWriter writer(path, entries, notes);
  for (const StoredTensor& t : tensors) writer.write(t.data.data(), t.data.size());
  writer.close();
}

/// A base and an adapter of it, and copies of the adapter with something changed.
class AdapterCase {
 public:
  explicit AdapterCase(AdapterLayout layout = AdapterLayout::per_expert,
                       const std::vector<std::string>& targets = {"attention", "experts"},
                       const Json& config = small_config(),
                       const std::vector<std::string>& trained = {}) {
    make_checkpoint(config, directory_ / "base");
    base_.emplace(directory_ / "base");
    AdapterOptions options;
    options.rank = options.expert_rank = 2;
    options.targets = targets;
    AdapterFileOptions files;
    files.layout = layout;
    write_adapter(make_adapters(*base_, options, 3, trained).table, *base_, files, adapter());
  }

  const Checkpoint& base() const { return *base_; }
  std::string adapter() const { return directory_ / "adapter"; }

  /// The refusal with this JSON text as a setting.
  std::string with(const std::string& key, const std::string& value,
                   const AdapterReadOptions& options = {}) const {
    return after(
        [&](const std::string& copy) {
          write_text(copy + kAdapterConfigFile,
                     changed(read_json(copy + kAdapterConfigFile), key, parse_json(value, "value"))
                         .dump());
        },
        options);
  }
  std::string with_tensors(const std::function<void(std::vector<StoredTensor>&)>& change,
                           const AdapterReadOptions& options = {}) const {
    return after(
        [&](const std::string& copy) {
          std::vector<StoredTensor> tensors = load(copy + kAdapterWeightsFile);
          change(tensors);
          store(copy + kAdapterWeightsFile, tensors);
        },
        options);
  }
  std::string after(const std::function<void(const std::string&)>& change,
                    const AdapterReadOptions& options = {}) const {
    const std::string copy = directory_ / "copy";
    std::filesystem::remove_all(copy);
    std::filesystem::copy(adapter(), copy);
    change(copy);
    return error_of([&] { read_adapter(copy, *base_, options); });
  }

 private:
  TemporaryDirectory directory_;
  std::optional<Checkpoint> base_;
};

}  // namespace hearth::test
