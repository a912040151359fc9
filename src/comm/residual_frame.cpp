#include "comm/residual_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/error.h"

namespace hearth {

namespace {

constexpr uint32_t kMagic = 0x46524557;  // "WERF": weights of an expert, residual frame
constexpr int64_t kRun = 65536;
constexpr size_t kHeader = 48, kPerTensor = 16;

int64_t runs_of(int64_t elements) { return (elements + kRun - 1) / kRun; }

size_t tensor_bytes(int64_t elements, int64_t kept, size_t each, bool dense) {
  if (dense) return static_cast<size_t>(elements) * each;
  return static_cast<size_t>(runs_of(elements)) * sizeof(uint32_t) +
         static_cast<size_t>(kept) * (sizeof(uint16_t) + each);
}

/// Writes and reads values one after the other. Whoever reads has asked whether so many bytes are left.
struct Writer {
  std::byte* at;
  template <class T>
  void put(T value) {
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
  }
};
struct Reader {
  const std::byte* at;
  size_t left;
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, at, sizeof value);
    at += sizeof value;
    left -= sizeof value;
    return value;
  }
};

float rounded(float weight, DType type) {
  return type == DType::bf16 ? round_to_bf16(weight) : weight;
}

/// Rises with the magnitude; of NaN it is larger than of any number.
uint32_t key_of(float weight, float shared) {
  return std::bit_cast<uint32_t>(weight - shared) & 0x7fffffffu;
}

template <class T>
T wire_value(float weight) {
  if constexpr (std::is_same_v<T, bf16>) {
    return to_bf16(weight);
  } else {
    return weight;
  }
}

/// Sums of squares, in the order of elements.
struct Squares {
  double left_out = 0, all = 0;
  double error() const {
    if (left_out == 0) return 0;
    return std::isfinite(all) ? std::sqrt(left_out / all)
                              : std::numeric_limits<double>::quiet_NaN();
  }
};

template <class T>
void put_dense(const SentTensor& tensor, Writer& out) {
  for (const float weight : tensor.weights) out.put(wire_value<T>(weight));
}

template <class T>
void put_dense_tensor(const ReceivedTensor& tensor, const std::byte* values) {
  std::memcpy(tensor.weights, values, tensor.shared.size() * sizeof(T));
}

template <class T>
void put_residual_tensor(const ReceivedTensor& tensor, Reader frame, int64_t kept) {
  auto* const weights = static_cast<T*>(tensor.weights);
  for (size_t i = 0; i < tensor.shared.size(); ++i) weights[i] = wire_value<T>(tensor.shared[i]);
  const auto runs = runs_of(std::ssize(tensor.shared));
  Reader indices{frame.at + runs * sizeof(uint32_t), 0};
  Reader values{indices.at + static_cast<size_t>(kept) * sizeof(uint16_t), 0};
  for (int64_t run = 0; run < runs; ++run) {
    for (auto sent = frame.take<uint32_t>(); sent > 0; --sent) {
      weights[run * kRun + indices.take<uint16_t>()] = values.take<T>();
    }
  }
}

/// Whether counts and indices of a tensor are those of k rising elements.
bool has_sound_indices(Reader frame, int64_t elements, int64_t kept) {
  const int64_t runs = runs_of(elements);
  Reader indices{frame.at + runs * sizeof(uint32_t), 0};
  int64_t left = kept;
  for (int64_t run = 0; run < runs; ++run) {
    const int64_t sent = frame.take<uint32_t>();
    if (sent > left) return false;
    left -= sent;
    int64_t before = -1;
    for (int64_t i = 0; i < sent; ++i) {
      const int64_t index = indices.take<uint16_t>();
      if (index <= before || run * kRun + index >= elements) return false;
      before = index;
    }
  }
  return left == 0;
}

[[noreturn]] void refuse(const std::string& what) { throw device_error(what); }

/// A tensor of a frame that was checked.
struct CheckedTensor {
  Reader at;
  int64_t kept;
};

}  // namespace

std::string FrameVersion::text() const {
  return fmt::format("expert {} of step {}, shared expert {:016x}", expert, step, shared);
}

int64_t kept_elements(int64_t elements, DType type, double ratio) {
  const auto each = static_cast<double>(size_of(type));
  const double room =
      static_cast<double>(elements) * each / ratio -
      static_cast<double>(sizeof(uint32_t)) * static_cast<double>(runs_of(elements));
  const double kept = std::floor(room / (sizeof(uint16_t) + each));
  return std::clamp<int64_t>(
      kept < static_cast<double>(elements) ? static_cast<int64_t>(kept) : elements,
      std::min<int64_t>(1, elements), elements);
}

size_t frame_bytes(std::span<const int64_t> elements, DType type, double ratio) {
  size_t bytes = kHeader + kPerTensor * elements.size();
  for (const int64_t n : elements) {
    bytes += tensor_bytes(n, kept_elements(n, type, ratio), size_of(type), ratio == kDenseRatio);
  }
  return bytes;
}

/// Two passes over the residuals: the upper halves of their keys, then the lower halves of those that
/// share the upper half of the k-th.
FrameEncoder::Cut FrameEncoder::cut_of(const SentTensor& tensor, DType type, int64_t kept) {
  constexpr uint32_t kHalf = 16, kLow = 0xffff;
  const auto each_key = [&](const auto& f) {
    for (size_t i = 0; i < tensor.weights.size(); ++i) {
      f(key_of(rounded(tensor.weights[i], type), tensor.shared[i]));
    }
  };
  /// The count in which the k-th lies, from the largest down; afterwards `kept` counts from its end.
  const auto find = [&] {
    uint32_t at = kLow;
    while (static_cast<int64_t>(counts_[at]) < kept) kept -= counts_[at--];
    return at;
  };
  counts_.assign(size_t{kLow} + 1, 0);
  each_key([&](uint32_t key) { ++counts_[key >> kHalf]; });
  const uint32_t high = find();
  std::ranges::fill(counts_, 0);
  each_key([&](uint32_t key) {
    if (key >> kHalf == high) ++counts_[key & kLow];
  });
  const uint32_t low = find();
  return {high << kHalf | low, kept};
}

namespace {

/// Writes the elements that a cut sends, and adds up what it leaves out.
template <class T>
void put_residual(const SentTensor& tensor, DType type, uint32_t cut, int64_t of_cut, int64_t kept,
                  Writer& out, Squares& squares) {
  const auto elements = static_cast<int64_t>(tensor.weights.size());
  Writer indices{out.at + static_cast<size_t>(runs_of(elements)) * sizeof(uint32_t)};
  Writer values{indices.at + static_cast<size_t>(kept) * sizeof(uint16_t)};
  for (int64_t begin = 0; begin < elements; begin += kRun) {
    uint32_t sent = 0;
    for (int64_t i = begin; i < std::min(elements, begin + kRun); ++i) {
      const auto at = static_cast<size_t>(i);
      const float weight = rounded(tensor.weights[at], type);
      squares.all += static_cast<double>(weight) * weight;
      const uint32_t key = key_of(weight, tensor.shared[at]);
      if (key > cut || (key == cut && of_cut-- > 0)) {
        indices.put(static_cast<uint16_t>(i - begin));
        values.put(wire_value<T>(weight));
        ++sent;
        continue;
      }
      const double left = static_cast<double>(weight) - static_cast<double>(tensor.shared[at]);
      squares.left_out += left * left;
    }
    out.put(sent);
  }
  out.at = values.at;
}

}  // namespace

Encoded FrameEncoder::encode(const FrameVersion& version, DType type,
                             std::span<const SentTensor> tensors, double ratio, Bytes out) {
  HEARTH_CHECK(type == DType::f32 || type == DType::bf16, "residual frame: another type");
  std::vector<int64_t> sizes;
  for (const SentTensor& tensor : tensors) {
    HEARTH_CHECK(tensor.weights.size() == tensor.shared.size(), "residual frame: another size");
    sizes.push_back(std::ssize(tensor.weights));
  }
  const size_t bytes = frame_bytes(sizes, type, ratio);
  HEARTH_CHECK(out.bytes >= bytes, "residual frame: too little memory");
  const bool dense = ratio == kDenseRatio;
  Writer frame{out.data + kHeader};
  for (const int64_t n : sizes) {
    frame.put(static_cast<uint64_t>(n));
    frame.put(static_cast<uint64_t>(dense ? n : kept_elements(n, type, ratio)));
  }
  Squares squares;
  for (const SentTensor& tensor : tensors) {
    if (tensor.weights.empty()) continue;
    if (dense) {
      type == DType::bf16 ? put_dense<bf16>(tensor, frame) : put_dense<float>(tensor, frame);
      continue;
    }
    const int64_t kept = kept_elements(std::ssize(tensor.weights), type, ratio);
    const auto [cut, of_cut] = cut_of(tensor, type, kept);
    const auto put = type == DType::bf16 ? put_residual<bf16> : put_residual<float>;
    put(tensor, type, cut, of_cut, kept, frame, squares);
  }
  const Encoded encoded{bytes, squares.error()};
  Writer header{out.data};
  header.put(kMagic);
  header.put(uint32_t{dense ? 0u : 1u});
  header.put(static_cast<uint32_t>(type));
  header.put(static_cast<uint32_t>(tensors.size()));
  header.put(version.layer);
  header.put(version.expert);
  header.put(version.step);
  header.put(version.shared);
  header.put(encoded.error);
  return encoded;
}

FrameFacts decode_frame(ConstBytes frame, const FrameVersion& expected, DType type,
                        std::span<const ReceivedTensor> tensors) {
  const auto at = [&] { return fmt::format("layer {}: ", expected.layer); };
  if (frame.bytes < kHeader + kPerTensor * tensors.size()) refuse(at() + "a frame that is cut off");
  Reader header{frame.data, frame.bytes};
  const auto magic = header.take<uint32_t>(), kind = header.take<uint32_t>(),
             of_type = header.take<uint32_t>(), count = header.take<uint32_t>();
  if (magic != kMagic || kind > 1 || of_type != static_cast<uint32_t>(type) ||
      count != tensors.size()) {
    refuse(at() + "a frame of another kind");
  }
  FrameVersion version;
  version.layer = header.take<int32_t>();
  version.expert = header.take<int32_t>();
  version.step = header.take<int64_t>();
  version.shared = header.take<uint64_t>();
  if (version != expected) {
    refuse(fmt::format("layer {}: weights of layer {}, {}; expected {}", expected.layer,
                       version.layer, version.text(), expected.text()));
  }
  const FrameFacts facts{kind == 0, header.take<double>()};
  Reader body = header;
  body.at += kPerTensor * tensors.size();
  body.left -= kPerTensor * tensors.size();
  std::vector<CheckedTensor> checked;
  for (const ReceivedTensor& tensor : tensors) {
    const uint64_t n = tensor.shared.size();
    const auto elements = header.take<uint64_t>(), kept = header.take<uint64_t>();
    if (elements != n || kept > n || (facts.dense && kept != n)) {
      refuse(at() + "a frame of tensors of another size");
    }
    const auto k = static_cast<int64_t>(kept);
    const size_t bytes = tensor_bytes(static_cast<int64_t>(n), k, size_of(type), facts.dense);
    if (bytes > body.left) refuse(at() + "a frame that is cut off");
    if (!facts.dense && !has_sound_indices(body, static_cast<int64_t>(n), k)) {
      refuse(at() + "a frame with indices that are none of its tensors");
    }
    checked.push_back({body, k});
    body.at += bytes;
    body.left -= bytes;
  }
  if (body.left > 0) refuse(at() + "a frame with more bytes than its tensors have");
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].shared.empty()) continue;
    if (facts.dense) {
      const auto put = type == DType::bf16 ? put_dense_tensor<bf16> : put_dense_tensor<float>;
      put(tensors[i], checked[i].at.at);
    } else {
      const auto put = type == DType::bf16 ? put_residual_tensor<bf16> : put_residual_tensor<float>;
      put(tensors[i], checked[i].at, checked[i].kept);
    }
  }
  return facts;
}

}  // namespace hearth
