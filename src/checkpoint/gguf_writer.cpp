#include "checkpoint/gguf_writer.h"

#include "base/error.h"

namespace hearth {
namespace {

constexpr uint64_t kAlignment = 32;

uint64_t padded(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

uint64_t GgufTensor::bytes() const {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return gguf_bytes(type, n);
}

GgufWriter::GgufWriter(const std::string& path, const GgufMetadata& metadata,
                       const std::vector<GgufTensor>& tensors)
    : file_(path) {
  std::string head = "GGUF";
  append_gguf(head, uint32_t{3});
  append_gguf(head, static_cast<uint64_t>(tensors.size()));
  append_gguf(head, metadata.count());
  head += metadata.bytes();
  uint64_t offset = 0;
  for (const GgufTensor& tensor : tensors) {
    append_gguf_text(head, tensor.name);
    append_gguf(head, static_cast<uint32_t>(tensor.shape.size()));
    for (const int64_t size : tensor.shape) append_gguf(head, static_cast<uint64_t>(size));
    append_gguf(head, static_cast<uint32_t>(tensor.type));
    append_gguf(head, offset);
    sizes_.push_back(tensor.bytes());
    offset += padded(sizes_.back());
  }
  file_.reserve(padded(head.size()) + offset);
  put(head.data(), head.size());
  pad();
}

void GgufWriter::put(const void* data, size_t bytes) {
  file_.write(data, bytes);
  hasher_.update(data, bytes);
}

void GgufWriter::pad() {
  constexpr char zeros[kAlignment] = {};
  put(zeros, static_cast<size_t>(padded(file_.written()) - file_.written()));
}

void GgufWriter::write(const void* data, size_t bytes) {
  HEARTH_CHECK(tensor_ < sizes_.size() && in_tensor_ + bytes <= sizes_[tensor_],
               "gguf: more data than the list of tensors says");
  put(data, bytes);
  in_tensor_ += bytes;
  if (in_tensor_ < sizes_[tensor_]) return;
  pad();
  ++tensor_;
  in_tensor_ = 0;
}

Digest GgufWriter::close() {
  HEARTH_CHECK(tensor_ == sizes_.size(), "gguf: tensors without data");
  file_.close();
  return hasher_.digest();
}

}  // namespace hearth
