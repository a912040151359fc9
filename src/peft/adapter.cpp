#include "peft/adapter.h"

#include <algorithm>

#include "base/error.h"
#include "base/stop.h"
#include "checkpoint/inspect.h"
#include "model/parameter_access.h"
#include "model/weight_copy.h"
#include "peft/names.h"

namespace hearth {
namespace {

/// Rows [begin, begin + rows) of a stored tensor as f32, and which of their elements were taken.
struct Rows {
  int64_t begin = 0, rows = 0, columns = 0;
  std::vector<float> values;
  std::vector<bool> taken;
};

}  // namespace

Digest base_digest(const Checkpoint& base) { return digest_checkpoint(base).root; }

std::vector<std::pair<std::string, Digest>> AdapterFile::digests() const {
  std::vector<std::pair<std::string, Digest>> out;
  std::vector<std::byte> buffer(size_t{4} << 20);
  for (const char* name : {kAdapterConfig, kAdapterWeights}) {
    const InputFile file(directory_ + "/" + name);
    Hasher hasher;
    for (uint64_t at = 0; at < file.size(); at += buffer.size()) {
      leave_if_stopped("the adapter was read");
      const auto bytes = static_cast<size_t>(std::min<uint64_t>(buffer.size(), file.size() - at));
      file.read(buffer.data(), bytes, at);
      hasher.update(buffer.data(), bytes);
    }
    out.emplace_back(name, hasher.digest());
  }
  return out;
}

void AdapterFile::add_to(ParameterTable& table) const {
  BlockId block = -1;
  for (const Pair& pair : pairs_) {
    const BlockId own = table.tensor(pair.matrix).block;
    if (own != block) table.add_adapter(own, pair.scale);
    block = own;
    table.add_low_rank(pair.matrix, pair.rank);
  }
  for (const auto& [entry, id] : replaced_) table.tensor(id).trainable = true;
}

void AdapterFile::read_replaced(ParameterTable& table) const {
  std::vector<float> stored;
  std::vector<std::byte> staging;
  for (const auto& [index, id] : replaced_) {
    const SafetensorsEntry& entry = file_.header().entries[index];
    const DType type = *safetensors_dtype(entry.dtype);
    if (!table.is_present(id)) continue;
    const View home{table.tensor(id).home().view};
    HEARTH_CHECK(home && home.contiguous(), "adapter file: no memory of " + entry.name);
    for (int64_t begin = 0; begin < home.size(); begin += kPieceElements) {
      leave_if_stopped("the adapter was read");
      const int64_t n = std::min(kPieceElements, home.size() - begin);
      stored.resize(static_cast<size_t>(n));
      file_.read(entry, stored.data(), static_cast<size_t>(n) * size_of(type),
                 static_cast<uint64_t>(begin) * size_of(type));
      const int64_t bad = find_not_finite(type, stored.data(), n);
      if (bad < n) {
        throw input_error(file_.path() + ": tensor " + quoted(entry.name) + ": element " +
                          std::to_string(begin + bad) + " is not finite (NaN or infinity)");
      }
      put_elements(table, table.tensor(id), home, begin, type, stored.data(), n, staging);
    }
  }
}

void AdapterFile::read(ParameterTable& table) const {
  const auto target_of = [&](const Part& part) -> Tensor& {
    const Tensor& matrix = table.tensor(part.matrix);
    const auto adapter = table.adapter_of(matrix.block);
    HEARTH_CHECK(adapter.has_value(), "adapter file: a table without its pairs");
    const auto all = table.tensors().begin();
    const auto end = all + table.block(*adapter).end;
    const auto found = std::find_if(all + table.block(*adapter).begin, end, [&](const Tensor& t) {
      return t.slot == matrix.slot && (t.factor == Factor::b) == part.is_b;
    });
    HEARTH_CHECK(found != end, "adapter file: a table without the pair of " + matrix.name);
    return *found;
  };
  std::vector<float> own;  // rows of a part
  std::vector<std::byte> staging;
  const auto take = [&](const Part& part, Rows& rows) {
    const Tensor& tensor = target_of(part);
    HEARTH_CHECK(tensor.rows == part.rows && tensor.cols == part.columns,
                 "adapter file: a table with other pairs: " + tensor.name);
    if (!table.block(tensor.block).present) return;
    const View home{tensor.home().view};
    HEARTH_CHECK(home && home.contiguous(), "adapter file: no memory of " + tensor.name);
    const double factor = part.factor;
    const int64_t first = std::max(part.row, rows.begin);
    const int64_t last = std::min(part.row + part.rows, rows.begin + rows.rows);
    if (first >= last) return;
    const int64_t n = (last - first) * part.columns;
    own.resize(static_cast<size_t>(n));
    float* to = own.data();
    for (int64_t r = first; r < last; ++r) {
      const int64_t at = (r - rows.begin) * rows.columns + part.column;
      for (int64_t c = 0; c < part.columns; ++c) {
        const auto from = static_cast<size_t>(at + c * part.step);
        *to++ = static_cast<float>(static_cast<double>(rows.values[from]) * factor);
        rows.taken[from] = true;
      }
    }
    put_elements(table, tensor, home, (first - part.row) * part.columns, DType::f32, own.data(), n,
                 staging);
  };

  std::vector<float> stored;
  for (const Source& source : sources_) {
    const SafetensorsEntry& entry = file_.header().entries[source.entry];
    const DType type = *safetensors_dtype(entry.dtype);
    Rows rows;
    rows.columns = entry.shape[1];
    const int64_t each = std::max<int64_t>(1, kPieceElements / std::max<int64_t>(1, rows.columns));
    for (; rows.begin < entry.shape[0]; rows.begin += rows.rows) {
      leave_if_stopped("the adapter was read");
      rows.rows = std::min(each, entry.shape[0] - rows.begin);
      const int64_t n = rows.rows * rows.columns;
      const int64_t at = rows.begin * rows.columns;
      const auto where = [&](int64_t element) {
        return file_.path() + ": tensor " + quoted(entry.name) + ": element " +
               std::to_string(at + element);
      };
      stored.resize(static_cast<size_t>(n));
      rows.values.resize(static_cast<size_t>(n));
      rows.taken.assign(static_cast<size_t>(n), false);
      file_.read(entry, stored.data(), static_cast<size_t>(n) * size_of(type),
                 static_cast<uint64_t>(at) * size_of(type));
      const int64_t bad = find_not_finite(type, stored.data(), n);
      if (bad < n) throw input_error(where(bad) + " is not finite (NaN or infinity)");
      convert(type, stored.data(), DType::f32, rows.values.data(), n);
      for (const Part& part : source.parts) take(part, rows);
      for (int64_t i = 0; i < n; ++i) {
        const auto k = static_cast<size_t>(i);
        if (rows.taken[k] || rows.values[k] == 0) continue;
        throw input_error(where(i) + " is not zero, although the file's metadata says that " +
                          "nothing is there");
      }
    }
  }
  read_replaced(table);
  for (Tensor& t : table.tensors()) {
    if (t.factor != Factor::none) t.home().version = t.version;
  }
}

LoadedAdapter::LoadedAdapter(ParameterTable trained) : table(std::move(trained)) {
  size_t elements = 0;
  for (const Tensor& t : table.tensors()) {
    if (t.trainable) elements += static_cast<size_t>(t.size());
  }
  memory.resize(elements);
  float* at = memory.data();
  for (Tensor& t : table.tensors()) {
    if (!t.trainable) continue;
    t.copies[static_cast<int>(CopyRole::master)] = {View(at, DType::f32, t.rows, t.cols),
                                                    t.version};
    at += t.size();
  }
}

static ParameterTable table_with(const AdapterFile& file, const Checkpoint& base) {
  ParameterTable table = base.make_table();
  file.add_to(table);
  return table;
}

LoadedAdapter::LoadedAdapter(const AdapterFile& file, const Checkpoint& base)
    : LoadedAdapter(table_with(file, base)) {
  file.read(table);
}

}  // namespace hearth
