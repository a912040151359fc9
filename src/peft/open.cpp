// Opening a PEFT directory: which tensors are whose, and whether the settings say the same.
#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>

#include "base/error_format.h"
#include "base/setting.h"
#include "peft/adapter.h"
#include "peft/names.h"
#include "peft/tensors.h"

namespace hearth {
namespace {

constexpr size_t kMostTrials = 50'000'000;  // patterns times modules

/// A rank as people write it; halves come of the joint rank of gate and up.
std::string whole_or_not(double rank) {
  const auto whole = static_cast<int64_t>(rank);
  return static_cast<double>(whole) == rank ? std::to_string(whole) : Json(rank).dump();
}

}  // namespace

/// Fills an AdapterFile; what is found on the way lives here.
class AdapterOpener {
 public:
  AdapterOpener(AdapterFile& file, const Checkpoint& base, const AdapterReadOptions& options)
      : file_(file),
        path_(file.file_.path()),
        header_(file.file_.header()),
        base_(base),
        options_(options),
        table_(base.make_table()),
        modules_(adapter_modules(table_)),
        tensors_(file.file_, table_, modules_, base),
        notes_(header_, path_) {}

  void open() {
    check_base();
    if (!tensors_.fused.empty()) check_packing();
    check_targets();
    file_.sources_.resize(header_.entries.size());
    for (size_t i = 0; i < file_.sources_.size(); ++i) file_.sources_[i].entry = i;
    for (const auto& [module, halves] : tensors_.single) add_single(module, halves);
    for (const auto& [name, halves] : tensors_.fused) add_fused(name, halves);
    finish();
    add_whole();
  }

 private:
  std::string where(int64_t entry) const {
    return path_ + ": tensor " + quoted(header_.entries[static_cast<size_t>(entry)].name);
  }
  const std::vector<int64_t>& shape(int64_t entry) const {
    return header_.entries[static_cast<size_t>(entry)].shape;
  }

  void check_base() const {
    if (!notes_.base || options_.accept_other_base) return;
    if (*notes_.base == (options_.base_digest ? *options_.base_digest : base_digest(base_))) return;
    const std::string& named = file_.config_.base_model();
    throw input_error("{}: trained on another base than {}{}; to apply it anyway, pass {}", path_,
                      base_.directory(),
                      named.empty() ? "" : fmt::format(" (its config names {})", quoted(named)),
                      spelled(Setting::accept_other_base));
  }

  /// Shapes cannot tell how fused pairs are packed: not the order of columns in B, and where sizes
  /// are equal not even which dimension is which.
  void check_packing() {
    const bool known = notes_.block_diagonal || options_.fused_as_peft;
    if (known || file_.config_.packs_as_peft()) return;
    throw input_error(
        "{}: experts packed into one tensor, but {} does not say that PEFT 0.19.1 or later packed "
        "them "
        "(peft_version); other programs pack them in another order, which shapes do not show; if "
        "PEFT "
        "packed them, pass {}",
        where(tensors_.fused.begin()->second.a), file_.config_.source(),
        spelled(Setting::adapter_layout, "fused"));
  }

  void check_targets() {
    if (file_.config_.patterns() > kMostTrials / (modules_.size() + 1)) {
      throw input_error(
          file_.config_.source() +
          ": rank_pattern and alpha_pattern have too many keys; remove those without effect");
    }
    // Which module of a fused pair: what the settings select decides where there is one tensor.
    const bool moved = peft_moves_targets(base_.family());
    as_5_ = file_.config_.selected(modules_, AdapterNames::transformers_5, moved);
    std::vector<bool> present(modules_.size());
    for (const auto& [module, halves] : tensors_.single) present[module] = true;
    for (const auto& [name, halves] : tensors_.fused) {
      for (const size_t module : packed_in(name)) {
        if (present[module]) {
          throw input_error(where(halves.a) + ": " + quoted(modules_[module].name) +
                            " also has a pair of its own; remove one of the two");
        }
        present[module] = true;
      }
    }
    const auto as_4 = file_.config_.selected(modules_, AdapterNames::transformers_4, moved);
    names_ = AdapterNames::transformers_5;
    if (present == as_5_) return;
    if (tensors_.fused.empty()) {
      names_ = AdapterNames::transformers_4;
      if (present == as_4) return;
    }
    const auto& selected = tensors_.fused.empty() ? as_4 : as_5_;
    for (size_t i = 0; i < modules_.size(); ++i) {
      if (present[i] == selected[i]) continue;
      throw input_error(file_.config_.source() + ": target_modules and target_parameters " +
                        (present[i] ? "do not select " : "select ") + quoted(modules_[i].name) +
                        (present[i] ? ", which has tensors in " : ", which has no tensors in ") +
                        path_);
    }
  }

  /// The modules of a fused pair, expert by expert.
  std::vector<size_t> packed_in(const std::string& name) const {
    const bool inner = name.ends_with(kInnerPair);
    const std::string container = inner ? name.substr(0, name.size() - kInnerPair.size()) : name;
    const bool has_inner = inner || tensors_.fused.contains(name + std::string(kInnerPair));
    if (inner && !tensors_.fused.contains(container)) {
      throw input_error(where(tensors_.fused.at(name).a) + ": the outer pair " + quoted(container) +
                        " is missing");
    }
    std::vector<size_t> gate_up, down;
    bool gate_up_alone = !has_inner;
    for (size_t i = 0; i < modules_.size(); ++i) {
      const AdapterModule& module = modules_[i];
      if (module.kind != BlockKind::expert || !module.now.starts_with(container + ".")) continue;
      (module.in_gate_up() ? gate_up : down).push_back(i);
      if (as_5_[i] != module.in_gate_up()) gate_up_alone = false;
    }
    return inner || gate_up_alone ? gate_up : down;
  }

  int64_t kept_rank(size_t module, int64_t stored) const {
    const auto found = notes_.ranks.find(modules_[module].name);
    return found == notes_.ranks.end() ? stored : std::min(found->second, stored);
  }

  void require_shape(int64_t entry, int64_t rows, int64_t columns, const std::string& why) const {
    if (shape(entry) == std::vector<int64_t>{rows, columns}) return;
    throw input_error(where(entry) + " has shape " + shape_text(shape(entry)) + ", expected " +
                      shape_text({rows, columns}) + why);
  }

  double scale_of(size_t module, int64_t rank, bool fused, int64_t entry) const {
    const AdapterConfig::Size size = file_.config_.size_of(modules_[module], names_, fused);
    if (size.rank != static_cast<double>(rank)) {
      throw input_error(where(entry) + " has rank " + std::to_string(rank) + ", but r and " +
                        "rank_pattern of " + file_.config_.source() + " say " +
                        whole_or_not(size.rank));
    }
    return size.scale;
  }

  void add(size_t module, int64_t rank, double scale, const AdapterFile::Part& a, int64_t a_entry,
           const AdapterFile::Part& b, int64_t b_entry) {
    if (rank == 0) return;  // all of it zeros
    file_.pairs_.push_back({modules_[module].matrix, rank, scale});
    file_.sources_[static_cast<size_t>(a_entry)].parts.push_back(a);
    file_.sources_[static_cast<size_t>(b_entry)].parts.push_back(b);
  }

  void add_single(size_t module, const AdapterTensors::Halves& halves) {
    const Tensor& matrix = table_.tensor(modules_[module].matrix);
    const int64_t stored = shape(halves.a)[0];
    const std::string why = " for a matrix of shape " + shape_text({matrix.rows, matrix.cols});
    require_shape(halves.a, stored, matrix.cols, why);
    require_shape(halves.b, matrix.rows, stored, why + " and the rank of lora_A");
    const double scale = scale_of(module, stored, false, halves.a);
    const int64_t rank = kept_rank(module, stored);
    const TensorId id = modules_[module].matrix;
    add(module, rank, scale, {id, false, 0, 0, 1, rank, matrix.cols, 1}, halves.a,
        {id, true, 0, 0, 1, matrix.rows, rank, 1}, halves.b);
  }

  /// A: rows of expert after expert. B: column j * experts + e is column j of expert e.
  void add_fused(const std::string& name, const AdapterTensors::Halves& halves) {
    const std::vector<size_t> modules = packed_in(name);
    const AdapterModule& first = modules_[modules.front()];
    const Tensor& matrix = table_.tensor(first.matrix);
    const int64_t parts = first.in_gate_up() ? 2 : 1;
    const auto experts = static_cast<int64_t>(modules.size()) / parts;
    const int64_t stored = shape(halves.a)[0] / experts;
    const std::string why = " for " + std::to_string(experts) + " experts of shape " +
                            shape_text({parts * matrix.rows, matrix.cols});
    if (stored == 0) require_shape(halves.a, experts, matrix.cols, why);
    require_shape(halves.a, stored * experts, matrix.cols, why);
    require_shape(halves.b, parts * matrix.rows, stored * experts, why);
    const double scale = scale_of(modules.front(), stored, true, halves.a);
    const bool halved = notes_.block_diagonal && parts == 2;
    if (halved && stored % 2 != 0) {
      throw input_error(where(halves.a) + " has an odd rank, although " + kGateUpNote + " says " +
                        kBlockDiagonal);
    }
    const int64_t own = halved ? stored / 2 : stored;
    for (size_t i = 0; i < modules.size(); ++i) {
      const AdapterModule& module = modules_[modules[i]];
      const int64_t part = module.slot == Slot::up ? 1 : 0;
      const int64_t first_rank = halved ? part * own : 0;
      const int64_t rank = kept_rank(modules[i], own);
      add(modules[i], rank, scale,
          {module.matrix, false, module.expert * stored + first_rank, 0, 1, rank, matrix.cols, 1},
          halves.a,
          {module.matrix, true, part * matrix.rows, first_rank * experts + module.expert, experts,
           matrix.rows, rank, 1},
          halves.b);
    }
  }

  /// What stands there whole: a module that the settings name, else the base's own.
  void add_whole() {
    std::unordered_map<std::string, bool> saved;  // modules that are to be there; are they
    std::set<std::string> unknown = file_.config_.saved();
    for (const Tensor& t : table_.tensors()) {
      if (table_.block(t.block).kind == BlockKind::expert) continue;
      const std::string module = module_of(name_in_transformers_5(t.name));
      if (!file_.config_.saves(module)) continue;
      saved[name_in_transformers_5(t.name)] = false;
      std::erase_if(unknown, [&](const std::string& name) { return module.ends_with(name); });
    }
    if (!unknown.empty()) {
      throw input_error(file_.config_.source() + ": modules_to_save names " +
                        quoted(*unknown.begin()) +
                        ", which is no module of the base (experts are not kept whole)");
    }
    for (const auto& [entry, id] : tensors_.whole) {
      const Tensor& t = table_.tensor(id);
      const auto found = saved.find(name_in_transformers_5(t.name));
      if (found == saved.end()) {
        AdapterTensors::check_copy(file_.file_, header_.entries[entry], published_name(id), base_);
      } else {
        found->second = true;
        file_.replaced_.emplace_back(entry, id);
      }
    }
    for (const auto& [name, there] : saved) {
      if (there) continue;
      throw input_error(file_.config_.source() + ": modules_to_save selects " + quoted(name) +
                        ", which " + path_ + " does not have");
    }
    for (auto whole = tensors_.whole.rbegin(); whole != tensors_.whole.rend(); ++whole) {
      file_.sources_.erase(file_.sources_.begin() + static_cast<std::ptrdiff_t>(whole->first));
    }
  }

  std::string published_name(TensorId id) const {
    const auto& all = base_.layout().tensors();
    const auto found = std::find_if(all.begin(), all.end(), [&](const PublishedTensor& tensor) {
      return tensor.parts[0] == id;
    });
    HEARTH_CHECK(found != all.end(), "adapter file: a tensor that is not published");
    return found->name;
  }

  /// Pairs by matrix; the scales of a block become its first one's.
  void finish() {
    auto& pairs = file_.pairs_;
    if (pairs.empty()) throw input_error(path_ + ": its metadata notes every pair as empty");
    std::sort(pairs.begin(), pairs.end(),
              [](const auto& x, const auto& y) { return x.matrix < y.matrix; });
    std::unordered_map<TensorId, double> factors;
    for (size_t i = 0, first = 0; i < pairs.size(); ++i) {
      if (table_.tensor(pairs[i].matrix).block != table_.tensor(pairs[first].matrix).block) {
        first = i;
      }
      factors[pairs[i].matrix] = pairs[i].scale / pairs[first].scale;
      pairs[i].scale = pairs[first].scale;
    }
    for (AdapterFile::Source& source : file_.sources_) {
      for (AdapterFile::Part& part : source.parts) {
        if (part.is_b) part.factor = factors.at(part.matrix);
      }
    }
  }

  AdapterFile& file_;
  const std::string& path_;
  const SafetensorsHeader& header_;
  const Checkpoint& base_;
  const AdapterReadOptions& options_;
  const ParameterTable table_;
  const std::vector<AdapterModule> modules_;
  const AdapterTensors tensors_;
  const AdapterNotes notes_;
  AdapterNames names_ = AdapterNames::transformers_4;
  std::vector<bool> as_5_;  // modules that the settings select in transformers 5
};

AdapterFile::AdapterFile(const std::string& directory, const Checkpoint& base,
                         const AdapterReadOptions& options)
    : directory_(directory),
      config_(open_adapter_config(directory, options.follow_links)),
      file_(open_adapter_weights(directory, options.follow_links)) {
  AdapterOpener(*this, base, options).open();
}

}  // namespace hearth
