#include "state/state_digest.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "model/weight_copy.h"

namespace hearth {
namespace {

uint64_t view_bytes(const StateView& view) {
  uint64_t bytes = size_of(view.dtype);
  for (const int64_t n : view.shape) bytes *= static_cast<uint64_t>(n);
  return bytes;
}

Digest digest_of_view(const StateView& view) {
  if (view.digest != nullptr) return *view.digest;
  if (view.direct()) return digest_of(view.bytes.data(), view.bytes.size());
  Hasher hasher;
  for_pieces(view, [&](std::span<const std::byte> piece, size_t /*at*/) {
    hasher.update(piece.data(), piece.size());
  });
  return hasher.digest();
}

bool by_name(const StateDigest::Item& a, const StateDigest::Item& b) { return a.name < b.name; }

}  // namespace

bool is_of_runtime(const std::string& component) {
  static const std::set<std::string, std::less<>> names{"popularity",  "predictor",
                                                        "predictor-2", "predictor-3",
                                                        "predictor-4", "predictor-pre-attention"};
  return names.contains(component);
}

Digest component_digest(const std::string& component, std::vector<StateTensor> tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const StateTensor& a, const StateTensor& b) { return a.name < b.name; });
  Hasher hasher;
  hasher.update_field(component);
  hasher.update_u64(tensors.size());
  for (const StateTensor& tensor : tensors) {
    hasher.update_field(tensor.name);
    hasher.update_field(tensor.dtype);
    hasher.update_u64(tensor.shape.size());
    for (const int64_t n : tensor.shape) hasher.update_u64(static_cast<uint64_t>(n));
    hasher.update_field(tensor.digest.hex());
  }
  return hasher.digest();
}

Digest DigestBuilder::add(const std::string& component, std::vector<StateTensor> tensors) {
  for (const StateTensor& tensor : tensors) {
    result_.tensors.push_back({component + "/" + tensor.name, tensor.digest});
  }
  const Digest digest = component_digest(component, std::move(tensors));
  result_.components.push_back({component, digest});
  return digest;
}

StateDigest DigestBuilder::take() {
  std::sort(result_.tensors.begin(), result_.tensors.end(), by_name);
  std::sort(result_.components.begin(), result_.components.end(), by_name);
  Hasher hasher;
  const auto own = std::ranges::count_if(
      result_.components, [](const StateDigest::Item& of) { return is_of_runtime(of.name); });
  hasher.update_u64(result_.components.size() - static_cast<size_t>(own));
  for (const auto& [name, digest] : result_.components) {
    if (is_of_runtime(name)) continue;
    hasher.update_field(name);
    hasher.update_field(digest.hex());
  }
  result_.root = hasher.digest();
  return std::move(result_);
}

std::vector<StateView> checked_views(const StateComponent& component) {
  std::vector<StateView> views = component.views();
  std::set<std::string> names;
  for (const StateView& view : views) {
    const std::string what = "state: " + component.name + "/" + view.name;
    HEARTH_CHECK(
        !view.name.empty() && view.name != "__metadata__" && names.insert(view.name).second,
        what + ": a name that is empty, reserved or used twice");
    HEARTH_CHECK(view.shape.empty() || (view.begin == 0 && view.end == view.shape[0]),
                 what + ": a slice; whole tensors are saved");
    HEARTH_CHECK(view.bytes.size() == view_bytes(view), what + ": memory of another size");
  }
  return views;
}

std::vector<StateTensor> digest_views(const std::vector<StateView>& views, const Pool* pool) {
  std::vector<StateTensor> tensors(views.size());
  for_views(views, pool, [&](size_t i) {
    const StateView& view = views[i];
    tensors[i] = {view.name, safetensors_name(view.dtype), view.shape, digest_of_view(view)};
  });
  return tensors;
}

std::vector<StateTensor> digest_views(const std::vector<StateView>& views, const Pool* pool,
                                      std::vector<int64_t>& not_finite) {
  constexpr size_t kPiece = size_t{1} << 18;  // stays in the cache between the two
  std::vector<StateTensor> tensors(views.size());
  not_finite.resize(views.size());
  for_views(views, pool, [&](size_t i) {
    const StateView& view = views[i];
    const auto elements = [&](size_t bytes) {
      return static_cast<int64_t>(bytes / size_of(view.dtype));
    };
    not_finite[i] = elements(view.bytes.size());
    if (view.digest != nullptr) {  // its owner has looked
      tensors[i] = {view.name, safetensors_name(view.dtype), view.shape, *view.digest};
      return;
    }
    Hasher hasher;
    for_pieces(view, [&](std::span<const std::byte> bytes, size_t begin) {
      for (size_t at = 0; at < bytes.size(); at += kPiece) {
        const auto piece = bytes.subspan(at, std::min(kPiece, bytes.size() - at));
        const int64_t n = elements(piece.size());
        const int64_t bad = find_not_finite(view.dtype, piece.data(), n);
        if (bad < n) not_finite[i] = std::min(not_finite[i], elements(begin + at) + bad);
        hasher.update(piece.data(), piece.size());
      }
    });
    tensors[i] = {view.name, safetensors_name(view.dtype), view.shape, hasher.digest()};
  });
  return tensors;
}

StateDigest state_digest(const StateRegistry& registry, const Pool* pool) {
  DigestBuilder builder;
  for (const StateComponent& component : registry.components()) {
    builder.add(component.name, digest_views(checked_views(component), pool));
  }
  return builder.take();
}

}  // namespace hearth
