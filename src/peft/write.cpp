#include "peft/write.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_map>

#include "base/error.h"
#include "base/stop.h"
#include "checkpoint/inspect.h"
#include "checkpoint/new_directory.h"
#include "checkpoint/safetensors_writer.h"
#include "model/parameter_access.h"
#include "model/weight_copy.h"
#include "peft/card.h"
#include "peft/names.h"
#include "peft/readers.h"
#include "peft/targets.h"

namespace hearth {
namespace {

/// A tensor of the file: rows of pairs, in their order. Pairs that follow each other in a plan:
/// [begin, end); one, or those of a layer's experts that are fused.
struct FileTensor {
  SafetensorsEntry entry;
  size_t begin = 0, end = 0;
  bool is_b = false;
  TensorId whole = -1;  // instead of pairs: a tensor of the model
};

/// Takes the bytes of a tensor, a row at a time.
using Sink = std::function<void(const void* data, size_t bytes)>;

class AdapterWriter {
 public:
  AdapterWriter(const ParameterTable& table, const AdapterPlan& plan, const std::string& path)
      : table_(table), plan_(plan), path_(path) {}

  uint64_t bytes(AdapterLayout layout) {
    add_tensors(layout == AdapterLayout::fused);
    uint64_t sum = 0;
    for (const FileTensor& tensor : tensors_) {
      uint64_t size = sizeof(float);
      for (const int64_t of : tensor.entry.shape) size *= static_cast<uint64_t>(of);
      sum += size;
    }
    return sum;
  }

  void write(AdapterLayout layout, const Digest& base) {
    const bool fused = layout == AdapterLayout::fused;
    add_tensors(fused);
    std::vector<SafetensorsEntry> entries;
    std::vector<std::pair<std::string, Digest>> digests;
    for (const FileTensor& tensor : tensors_) {
      entries.push_back(tensor.entry);
      digests.emplace_back(tensor.entry.name, digest_of(tensor));
    }
    const Digest content = content_digest(std::move(digests)).root;
    SafetensorsWriter writer(path_, entries, notes(fused, base, content));
    for (const FileTensor& tensor : tensors_) {
      write(tensor, [&](const void* data, size_t bytes) { writer.write(data, bytes); });
    }
    const Digest written = writer.close();
    if (digest_of_file() != written) {
      throw storage_error(path_ + ": reads back differently from what was written; the disk or " +
                          "its cable may be failing");
    }
  }

 private:
  const AdapterModule& module_of(size_t pair) const {
    return plan_.modules[plan_.pairs[pair].module];
  }

  void write(const FileTensor& tensor, const Sink& sink) {
    leave_if_stopped("the adapter was written");
    windows_.clear();
    if (tensor.whole >= 0) {
      write_whole(table_.tensor(tensor.whole), sink);
    } else if (tensor.end - tensor.begin == 1) {
      write_one(tensor, sink);
    } else {
      write_fused(tensor, sink);
    }
  }

  /// As digest_adapter takes it from the file.
  Digest digest_of(const FileTensor& tensor) {
    Hasher hasher = tensor_hasher(tensor.entry.name, tensor.entry.dtype, tensor.entry.shape);
    write(tensor, [&](const void* data, size_t bytes) { hasher.update(data, bytes); });
    return hasher.digest();
  }

  std::vector<std::pair<std::string, std::string>> notes(bool fused, const Digest& base,
                                                         const Digest& content) const {
    std::vector<std::pair<std::string, std::string>> notes = {
        {"format", "pt"}, {kBaseNote, base.hex()}, {kContentNote, content.hex()}};
    JsonObject ranks;
    for (const FilePair& pair : plan_.pairs) {
      if (pair.rank != pair.file_rank)
        ranks.emplace_back(plan_.modules[pair.module].name, pair.rank);
    }
    if (!ranks.empty()) notes.emplace_back(kRanksNote, Json(std::move(ranks)).dump());
    if (fused) notes.emplace_back(kGateUpNote, kBlockDiagonal);
    return notes;
  }

  void add(const std::string& name, bool is_b, int64_t rows, int64_t columns, size_t begin,
           size_t end) {
    FileTensor tensor;
    tensor.entry.name = std::string(kAdapterPrefix) + name + std::string(is_b ? kLoraB : kLoraA);
    tensor.entry.dtype = "F32";
    tensor.entry.shape = {rows, columns};
    tensor.begin = begin;
    tensor.end = end;
    tensor.is_b = is_b;
    tensors_.push_back(std::move(tensor));
  }

  void add_tensors(bool fused) {
    for (size_t i = 0; i < plan_.pairs.size();) {
      if (fused && module_of(i).kind == BlockKind::expert) {
        i = add_fused(i);
        continue;
      }
      const Tensor& matrix = table_.tensor(module_of(i).matrix);
      add(module_of(i).name, false, plan_.pairs[i].file_rank, matrix.cols, i, i + 1);
      add(module_of(i).name, true, matrix.rows, plan_.pairs[i].file_rank, i, i + 1);
      ++i;
    }
    for (const TensorId id : plan_.whole) {
      const Tensor& t = table_.tensor(id);
      FileTensor tensor;
      tensor.entry.name = std::string(kAdapterPrefix) + name_in_transformers_5(t.name);
      tensor.entry.dtype = "F32";
      tensor.entry.shape = {t.rows, t.cols};
      if (t.vector) tensor.entry.shape = {t.cols};
      tensor.whole = id;
      tensors_.push_back(std::move(tensor));
    }
  }

  void write_whole(const Tensor& tensor, const Sink& sink) {
    FilePair as_pair;
    as_pair.a = *table_.find(tensor.name);
    as_pair.rank = tensor.rows;
    std::vector<float> row(static_cast<size_t>(tensor.cols));
    for (int64_t r = 0; r < tensor.rows; ++r) {
      put_row(as_pair, false, r, row.data(), 1);
      sink(row.data(), row.size() * sizeof(float));
    }
  }

  /// The experts of a layer: down outside, gate and up inside of it if they are there.
  size_t add_fused(size_t begin) {
    size_t end = begin;
    while (end < plan_.pairs.size() && module_of(end).kind == BlockKind::expert &&
           module_of(end).layer == module_of(begin).layer) {
      ++end;
    }
    const bool has_gate_up = module_of(begin).in_gate_up();
    const AdapterModule& last = module_of(end - 1);
    HEARTH_CHECK(!last.in_gate_up(), "adapter writer: gate and up without down");
    const std::string name = last.now.substr(0, last.now.rfind('.'));
    const int64_t each = has_gate_up ? 3 : 1;
    const int64_t experts = static_cast<int64_t>(end - begin) / each;
    const int64_t ranks = plan_.rank * experts;
    if (has_gate_up) {
      const Tensor& gate = table_.tensor(module_of(begin).matrix);
      const std::string inner = name + std::string(kInnerPair);
      add(inner, false, 2 * ranks, gate.cols, begin, end);
      add(inner, true, 2 * gate.rows, 2 * ranks, begin, end);
    }
    const Tensor& down = table_.tensor(last.matrix);
    add(name, false, ranks, down.cols, begin, end);
    add(name, true, down.rows, ranks, begin, end);
    return end;
  }

  /// Puts row `row` of a pair's A or B into [file_rank or out, ...]: `n` values `step` apart.
  void put_row(const FilePair& pair, bool is_b, int64_t row, float* out, int64_t step) {
    const TensorId id = is_b ? pair.b : pair.a;
    if (id < 0 || (!is_b && row >= pair.rank)) return;
    const Tensor& tensor = table_.tensor(id);
    const View home{tensor.home().view};
    HEARTH_CHECK(tensor.home().present() && home.contiguous(), "no memory of " + tensor.name);
    row_.resize(static_cast<size_t>(tensor.cols));
    convert(home.dtype, row_at(id, home, row), DType::f32, row_.data(), tensor.cols);
    for (int64_t c = 0; c < tensor.cols; ++c) {
      const auto value = static_cast<double>(row_[static_cast<size_t>(c)]);
      const auto written = static_cast<float>(is_b ? value * pair.factor : value);
      if (!std::isfinite(written)) {
        throw numeric_error(path_ + ": tensor " + quoted(tensor.name) + ": element " +
                            std::to_string(row * tensor.cols + c) + " is not finite");
      }
      out[c * step] = written;
    }
  }

  /// A row of a tensor: where it lies, or in a window of rows brought from another place. Those of a
  /// layer's fused experts are read in turns, so each of the tensors has its own.
  const void* row_at(TensorId id, const View& home, int64_t row) {
    if (table_.memory().host_reaches(table_.place(id))) return home.slice(row, 1).data;
    Window& window = windows_[id];
    if (row < window.begin || row >= window.end) {
      window.begin = row;
      window.end = std::min(home.rows, row + std::max<int64_t>(1, kPieceElements / home.cols));
      host_elements(table_, table_.tensor(id), home, row * home.cols,
                    (window.end - row) * home.cols, window.bytes);
    }
    return window.bytes.data() +
           static_cast<size_t>((row - window.begin) * home.cols) * size_of(home.dtype);
  }

  void write_one(const FileTensor& tensor, const Sink& sink) {
    const FilePair& pair = plan_.pairs[tensor.begin];
    std::vector<float> row(static_cast<size_t>(tensor.entry.shape[1]));
    for (int64_t r = 0; r < tensor.entry.shape[0]; ++r) {
      std::fill(row.begin(), row.end(), 0.0f);
      put_row(pair, tensor.is_b, r, row.data(), 1);
      sink(row.data(), row.size() * sizeof(float));
    }
  }

  /// A: the rows of expert after expert, of gate, then of up. B: column j * experts + e is column j
  /// of expert e; columns of gate are zero in the rows of up, and the other way round.
  void write_fused(const FileTensor& tensor, const Sink& sink) {
    std::vector<size_t> slots[2];  // gate and up, or down alone: a pair of each expert
    const bool inner = tensor.entry.name.find(kInnerPair) != std::string::npos;
    for (size_t i = tensor.begin; i < tensor.end; ++i) {
      if (module_of(i).in_gate_up() != inner) continue;
      slots[module_of(i).slot == Slot::up ? 1 : 0].push_back(i);
    }
    const auto experts = static_cast<int64_t>(slots[0].size());
    const int64_t parts = inner ? 2 : 1, rank = plan_.rank;
    const int64_t part_rows = tensor.entry.shape[0] / parts;
    std::vector<float> row(static_cast<size_t>(tensor.entry.shape[1]));
    for (int64_t r = 0; r < tensor.entry.shape[0]; ++r) {
      std::fill(row.begin(), row.end(), 0.0f);
      if (!tensor.is_b) {
        const int64_t in_expert = r % (parts * rank);
        const size_t pair = slots[in_expert / rank][static_cast<size_t>(r / (parts * rank))];
        put_row(plan_.pairs[pair], false, in_expert % rank, row.data(), 1);
      } else {
        const int64_t part = r / part_rows;
        for (int64_t e = 0; e < experts; ++e) {
          const FilePair& pair = plan_.pairs[slots[part][static_cast<size_t>(e)]];
          put_row(pair, true, r % part_rows, row.data() + part * rank * experts + e, experts);
        }
      }
      sink(row.data(), row.size() * sizeof(float));
    }
  }

  Digest digest_of_file() const {
    const InputFile file(path_);
    std::vector<std::byte> buffer(size_t{4} << 20);
    Hasher hasher;
    for (uint64_t at = 0; at < file.size(); at += buffer.size()) {
      const auto bytes = static_cast<size_t>(std::min<uint64_t>(buffer.size(), file.size() - at));
      file.read(buffer.data(), bytes, at);
      hasher.update(buffer.data(), bytes);
    }
    return hasher.digest();
  }

  const ParameterTable& table_;
  const AdapterPlan& plan_;
  std::string path_;
  struct Window {
    int64_t begin = 0, end = 0;  // rows
    std::vector<std::byte> bytes;
  };

  std::vector<FileTensor> tensors_;
  std::vector<float> row_;
  std::unordered_map<TensorId, Window> windows_;  // of the file's tensor that is written
};

void write_text(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(text.data(), text.size());
  file.close();
}

}  // namespace

uint64_t adapter_bytes(const ParameterTable& table, const Family& family, AdapterLayout layout) {
  const AdapterPlan plan(table, family, layout);
  return AdapterWriter(table, plan, "").bytes(layout);
}

void write_adapter(const ParameterTable& table, const Checkpoint& base,
                   const AdapterFileOptions& options, const std::string& directory) {
  const AdapterPlan plan(table, base.family(), options.layout);
  const std::string name = options.base_name.empty() ? base.directory() : options.base_name;
  NewDirectory result(directory);
  AdapterWriter(table, plan, result.path() + "/" + kAdapterWeights)
      .write(options.layout, options.base_digest ? *options.base_digest : base_digest(base));
  Json config = plan.config();
  config["base_model_name_or_path"] = name;
  config["revision"] = options.revision.empty() ? Json() : Json(options.revision);
  write_text(result.path() + "/" + kAdapterConfig, config.dump(2) + "\n");
  std::string card =
      adapter_card(plan, card_base(name, options.revision, base.directory()), options.card) + "\n";
  for (const std::string& line : reader_notes(table, options.layout)) card += "* " + line + "\n";
  write_text(result.path() + "/README.md", card);
  write_companions(base, options.changes, result);
  result.publish();
}

}  // namespace hearth
