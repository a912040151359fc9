#include "verdict/gradient_record.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "model/parameter_access.h"

namespace hearth {

namespace {

constexpr int64_t kMomentPiece = int64_t{1} << 14;  // elements looked at together: 64 KiB
constexpr char kDigits[] = "0123456789abcdef";

/// Of a tensor that another rank updates: false, that rank knows.
bool has_moment(const ParameterTable& table, TensorId id, std::vector<std::byte>& staging) {
  if (!table.tensor(id).copies[static_cast<int>(CopyRole::moment1)].present()) return false;
  const View moment = table.view(id, CopyRole::moment1);
  HEARTH_CHECK(moment.dtype == DType::f32 && moment.contiguous(), "moments are whole f32 tensors");
  for (int64_t begin = 0; begin < moment.size(); begin += kMomentPiece) {
    const int64_t n = std::min(kMomentPiece, moment.size() - begin);
    const auto* m = static_cast<const float*>(
        host_elements(table, table.tensor(id), moment, begin, n, staging));
    if (std::any_of(m, m + n, [](float x) { return x != 0; })) return true;
  }
  return false;
}

}  // namespace

GradientRecord::GradientRecord(const ParameterTable& table, const ModelSpec& spec)
    : had_(table.tensors().size()) {
  size_t layers = 0;
  for (const bool moe : spec.moe) moe_layer_.push_back(moe ? layers++ : 0);
  for (TensorId id = 0; id < std::ssize(table.tensors()); ++id) {
    if (table.tensor(id).trainable) trained_.push_back(id);
  }
  waiting_ = trained_;
}

void GradientRecord::look(const ParameterTable& table,
                          const std::vector<std::vector<double>>& expert_tokens) {
  std::vector<std::byte> staging;
  std::erase_if(waiting_, [&](TensorId id) {
    const Block& own = table.block(table.tensor(id).block);
    const Block& block = own.kind == BlockKind::adapter ? table.block(own.base) : own;
    if (block.kind == BlockKind::expert) {
      const size_t layer = moe_layer_[static_cast<size_t>(block.layer)];
      if (expert_tokens[layer][static_cast<size_t>(block.expert)] == 0) return false;
    }
    if (!has_moment(table, id, staging)) return false;
    had_[static_cast<size_t>(id)] = true;
    return true;
  });
}

void GradientRecord::add(const std::string& digits) {
  HEARTH_CHECK(digits.size() == (trained_.size() + 3) / 4, "gradients: of another table");
  for (size_t i = 0; i < trained_.size(); ++i) {
    const size_t digit = std::string_view(kDigits).find(digits[i / 4]);
    if ((digit >> (i % 4) & 1) != 0) had_[static_cast<size_t>(trained_[i])] = true;
  }
  std::erase_if(waiting_, [&](TensorId id) { return had_gradient(id); });
}

Json GradientRecord::to_json() const {
  std::string digits;
  for (size_t i = 0; i < trained_.size(); i += 4) {
    unsigned digit = 0;
    for (size_t k = i; k < std::min(i + 4, trained_.size()); ++k) {
      digit |= static_cast<unsigned>(had_gradient(trained_[k])) << (k - i);
    }
    digits += kDigits[digit];
  }
  return digits;
}

void GradientRecord::restore(const Json* saved, const std::string& source) {
  const std::string all((trained_.size() + 3) / 4, 'f');
  const std::string digits = saved == nullptr ? all : saved->is_string() ? saved->as_string() : "";
  const bool is_hex = digits.find_first_not_of(kDigits) == std::string::npos;
  if (digits.size() != all.size() || !is_hex) {
    throw storage_error(source + ": gradients: expected " + std::to_string(all.size()) +
                        " hexadecimal digits, one bit per trained tensor");
  }
  waiting_.clear();
  for (size_t i = 0; i < trained_.size(); ++i) {
    const size_t digit = std::string_view(kDigits).find(digits[i / 4]);
    const bool had = (digit >> (i % 4) & 1) != 0;
    had_[static_cast<size_t>(trained_[i])] = had;
    if (!had) waiting_.push_back(trained_[i]);
  }
}

}  // namespace hearth
