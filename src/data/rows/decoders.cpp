#include "data/rows/decoders.h"

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <limits>
#include <new>

#include "base/error.h"

namespace hearth {
namespace {

class GzipUnpacker final : public Unpacker {
 public:
  explicit GzipUnpacker(std::string name) : name_(std::move(name)) {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~GzipUnpacker() override { inflateEnd(&stream_); }
  GzipUnpacker(const GzipUnpacker&) = delete;
  GzipUnpacker& operator=(const GzipUnpacker&) = delete;

  void decode(std::string_view& packed, std::span<char>& room) override {
    if (member_ended_) {
      packed.remove_prefix(std::min(packed.find_first_not_of('\0'), packed.size()));
      if (packed.empty()) return;
      if (packed[0] != '\x1f')
        throw input_error(name_ + ": bytes after the end of the gzip data; fetch the file again");
      inflateReset(&stream_);
      member_ended_ = false;
    }
    constexpr size_t kMost = std::numeric_limits<uInt>::max();
    // zlib does not write to its input, whatever its type says.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(std::min(packed.size(), kMost));
    stream_.next_out = reinterpret_cast<Bytef*>(room.data());
    stream_.avail_out = static_cast<uInt>(std::min(room.size(), kMost));
    const uInt given = stream_.avail_in, free = stream_.avail_out;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    packed.remove_prefix(given - stream_.avail_in);
    room = room.subspan(free - stream_.avail_out);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    member_ended_ = result == Z_STREAM_END;
    // Z_BUF_ERROR: there was nothing to take, or no room.
    if (!member_ended_ && result != Z_OK && result != Z_BUF_ERROR) {
      throw input_error(name_ + ": the gzip file is damaged" +
                        (stream_.msg ? " (" + std::string(stream_.msg) + ")" : ""));
    }
  }

  bool at_end() const override { return member_ended_; }

 private:
  std::string name_;
  z_stream stream_ = {};
  bool member_ended_ = false;
};

constexpr std::string_view kFrame = "\x28\xb5\x2f\xfd";

// Frames, and frames to be skipped, which may come first.
bool is_zstd(std::string_view head) {
  return head.starts_with(kFrame) || (head.size() >= 4 && (head[0] & 0xf0) == 0x50 &&
                                      head.substr(1).starts_with("\x2a\x4d\x18"));
}

class ZstdUnpacker final : public Unpacker {
 public:
  ZstdUnpacker(std::string name, int window_log) : name_(std::move(name)) {
    if (!context_) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, window_log);
  }

  void decode(std::string_view& packed, std::span<char>& room) override {
    begin_frame(packed);
    // A frame that comes whole in one call the library decodes in another way, which takes and refuses
    // others; it looks for one while it reads a header. So headers are given to it by the byte.
    const size_t most = head_.size() < kMostHead ? 1 : packed.size();
    ZSTD_inBuffer in{packed.data(), std::min(packed.size(), most), 0};
    ZSTD_outBuffer out{room.data(), room.size(), 0};
    const size_t result = ZSTD_decompressStream(context_.get(), &out, &in);
    if (ZSTD_isError(result)) refuse(result);
    head_.append(packed.substr(0, std::min(in.pos, kMostHead - head_.size())));
    unpacked_ += out.pos;
    packed.remove_prefix(in.pos);
    room = room.subspan(out.pos);
    // Without progress the result only tells what the next frame would need.
    if (in.pos > 0 || out.pos > 0) frame_ended_ = result == 0;
    if (frame_ended_ && !head_.empty()) end_frame();
  }

  bool at_end() const override { return frame_ended_; }

 private:
  static constexpr size_t kMostHead = 18;  // bytes of a frame's header

  // Frames of the format's drafts the library may know, but not where they come in pieces.
  void begin_frame(std::string_view packed) const {
    if (head_.size() >= kFrame.size()) return;
    const std::string magic = head_ + std::string(packed.substr(0, kFrame.size() - head_.size()));
    if (magic.size() == kFrame.size() && !is_zstd(magic)) {
      throw input_error(name_ + ": the zstd file is damaged (no frame where one should begin)");
    }
  }

  // The library checks the size that a frame declares, but not where an empty last block ends it.
  void end_frame() {
    const unsigned long long declared = ZSTD_getFrameContentSize(head_.data(), head_.size());
    if (declared != ZSTD_CONTENTSIZE_UNKNOWN && declared != unpacked_) {
      throw input_error(
          name_ + ": the zstd file is damaged (a frame differs from the size that it declares)");
    }
    head_.clear();
    unpacked_ = 0;
  }

  [[noreturn]] void refuse(size_t result) const {
    const ZSTD_ErrorCode code = ZSTD_getErrorCode(result);
    if (code == ZSTD_error_memory_allocation) throw std::bad_alloc();
    if (code == ZSTD_error_frameParameter_windowTooLarge) {
      throw input_error(name_ +
                        ": the zstd file needs a window of more than 128 MiB; compress it again "
                        "without --long");
    }
    throw input_error(name_ + ": the zstd file is damaged (" + ZSTD_getErrorName(result) + ")");
  }

  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  std::string name_;
  std::unique_ptr<ZSTD_DCtx, Free> context_{ZSTD_createDCtx()};
  std::string head_;       // of the frame that is being read
  uint64_t unpacked_ = 0;  // of it
  bool frame_ended_ = false;
};

constexpr std::string_view kXz(
    "\xfd"
    "7zXZ\0",
    6);

class XzUnpacker final : public Unpacker {
 public:
  XzUnpacker(std::string name, uint64_t most_bytes) : name_(std::move(name)) {
    if (lzma_stream_decoder(&stream_, most_bytes, LZMA_CONCATENATED) != LZMA_OK) {
      throw std::bad_alloc();
    }
  }
  ~XzUnpacker() override { lzma_end(&stream_); }
  XzUnpacker(const XzUnpacker&) = delete;
  XzUnpacker& operator=(const XzUnpacker&) = delete;

  void decode(std::string_view& packed, std::span<char>& room) override {
    if (ended_) return;
    stream_.next_in = reinterpret_cast<const uint8_t*>(packed.data());
    stream_.avail_in = packed.size();
    stream_.next_out = reinterpret_cast<uint8_t*>(room.data());
    stream_.avail_out = room.size();
    const lzma_ret result = lzma_code(&stream_, LZMA_RUN);
    packed.remove_prefix(packed.size() - stream_.avail_in);
    room = room.subspan(room.size() - stream_.avail_out);
    if (result == LZMA_MEM_ERROR) throw std::bad_alloc();
    if (result == LZMA_MEMLIMIT_ERROR) {
      throw input_error(name_ +
                        ": the xz file needs more than 128 MiB to be read; compress it again "
                        "with -9 or less");
    }
    // LZMA_BUF_ERROR: there was nothing to take, or no room.
    if (result != LZMA_OK && result != LZMA_STREAM_END && result != LZMA_BUF_ERROR) {
      throw input_error(name_ + ": the xz file is damaged");
    }
  }

  // The end of the file: with several streams in a row, only the decoder knows whether all are whole.
  bool at_end() const override {
    char none = 0;
    stream_.next_in = nullptr;
    stream_.avail_in = 0;
    stream_.next_out = reinterpret_cast<uint8_t*>(&none);
    stream_.avail_out = 0;
    ended_ = ended_ || lzma_code(&stream_, LZMA_FINISH) == LZMA_STREAM_END;
    return ended_;
  }

 private:
  std::string name_;
  mutable lzma_stream stream_ = LZMA_STREAM_INIT;  // asked at the end whether it is whole
  mutable bool ended_ = false;
};

}  // namespace

std::unique_ptr<Unpacker> make_unpacker(std::string_view head, const std::string& name,
                                        int zstd_window_log) {
  if (head.starts_with("\x1f\x8b")) return std::make_unique<GzipUnpacker>(name);
  if (is_zstd(head)) return std::make_unique<ZstdUnpacker>(name, zstd_window_log);
  if (head.starts_with(kXz))
    return std::make_unique<XzUnpacker>(name, uint64_t{1} << zstd_window_log);
  return nullptr;
}

}  // namespace hearth
