#include "data/rows/byte_stream.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "checkpoint/model_files.h"

namespace hearth {
namespace {

constexpr size_t kStreamPiece = size_t{1} << 18;
constexpr size_t kHead = 64;  // bytes that tell the kind of a file

// Its end comes first, so it is read neither packed nor from a pipe.
[[noreturn]] void refuse_parquet(const std::string& name) {
  throw input_error(name +
                    ": a Parquet file where a text should be; name the file itself, unpacked");
}

[[noreturn]] void refuse_arrow(const std::string& name) {
  throw input_error(name +
                    ": an Arrow file; convert it to JSON Lines: python -c \"import datasets; "
                    "datasets.Dataset.from_file('FILE').to_json('rows.jsonl')\"");
}

[[noreturn]] void refuse_packed(const std::string& name, const std::string& kind) {
  throw input_error(name + ": packed by " + kind + ", which is not read; unpack it (" + kind +
                    " -d), or pack it by gzip, zstd or xz");
}

void refuse_kinds(std::string_view head, const std::string& name) {
  if (head.starts_with("BZh") && head.size() > 4 && head.substr(4).starts_with("1AY")) {
    refuse_packed(name, "bzip2");
  }
  refuse_foreign(head, name);
  if (head.starts_with("PAR1")) refuse_parquet(name);
  // A file of record batches, or the stream of them that the datasets library saves.
  const bool stream = head.size() >= 8 && head.starts_with("\xff\xff\xff\xff") && head[7] == 0;
  if (head.starts_with("ARROW1") || stream) refuse_arrow(name);
}

void refuse_names(const std::string& path, bool packed) {
  const std::string extension = extension_of(path);
  if (extension == ".parquet") {
    throw input_error(path + (packed ? ": a packed file, not a Parquet file; unpack it"
                                     : ": not a Parquet file; rename it"));
  }
  if (extension == ".arrow" || extension == ".feather") refuse_arrow(path);
  if (is_packing(extension) && !packed) {
    throw input_error(path + ": is not a " + extension + " file; rename it or compress it");
  }
}

}  // namespace

std::string extension_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos || path.find('/', dot) != std::string::npos) return "";
  std::string extension = path.substr(dot);
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

bool is_packing(const std::string& extension) {
  return extension == ".gz" || extension == ".zst" || extension == ".xz";
}

std::string shown_name(const std::string& path) { return path == "-" ? "standard input" : path; }

ByteStream::ByteStream(const std::string& path) : name_(shown_name(path)) {
  if (path != "-") file_.emplace(path);
  piece_.resize(kStreamPiece);
  size_t size = 0;
  while (size < kHead) {
    const size_t got = read_file(piece_.data() + size, kStreamPiece - size);
    if (got == 0) break;
    size += got;
  }
  left_ = std::string_view(piece_).substr(0, size);
  const std::string_view head = left_.substr(0, kHead);
  refuse_kinds(head, name_);
  decoder_ = make_unpacker(head, name_);
  if (path != "-") refuse_names(path, decoder_ != nullptr);
}

size_t ByteStream::read_file(char* target, size_t most) {
  size_t got = 0;
  if (file_) {
    got = static_cast<size_t>(std::min<uint64_t>(most, file_->size() - offset_));
    file_->read(target, got, offset_);
  } else {
    got = std::fread(target, 1, most, stdin);
    if (std::ferror(stdin) != 0) throw input_error("standard input cannot be read");
  }
  hasher_.update(target, got);
  offset_ += got;
  return got;
}

bool ByteStream::append_to(std::string& text, size_t most) {
  const size_t before = text.size();
  text.resize(before + most);
  char* target = text.data() + before;
  size_t got = 0;
  if (decoder_) {
    got = unpack(target, most);
    // The first bytes may come one by one, and tell the kind together.
    while (!unpacked_any_ && got > 0 && got < std::min(kHead, most)) {
      const size_t more = unpack(target + got, most - got);
      if (more == 0) break;
      got += more;
    }
    if (got > 0 && !unpacked_any_) {
      const std::string_view head(target, std::min(got, kHead));
      refuse_kinds(head, name_);
      if (make_unpacker(head, name_))
        throw input_error(name_ + ": compressed twice; decompress it once");
      unpacked_any_ = true;
    }
  } else if (!left_.empty()) {
    got = std::min(most, left_.size());
    std::memcpy(target, left_.data(), got);
    left_.remove_prefix(got);
  } else {
    got = read_file(target, most);
  }
  text.resize(before + got);
  return got > 0;
}

void ByteStream::skip_rest() {
  left_ = {};
  while (read_file(piece_.data(), piece_.size()) > 0) {
  }
}

size_t ByteStream::unpack(char* target, size_t most) {
  std::span<char> room(target, most);
  while (true) {
    const size_t packed = left_.size();
    decoder_->decode(left_, room);
    if (room.size() < most) return most - room.size();
    if (left_.size() < packed) continue;
    if (!left_.empty()) throw input_error(name_ + ": the compressed file is damaged");
    left_ = std::string_view(piece_).substr(0, read_file(piece_.data(), piece_.size()));
    if (left_.empty()) {
      if (decoder_->at_end()) return 0;
      throw input_error(name_ + ": the compressed file is cut off; fetch it again");
    }
  }
}

}  // namespace hearth
