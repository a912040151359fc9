#include "support/memory_disk.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/file_failure.h"

namespace hearth::test {

using Kind = DiskChange::Kind;
using Guard = std::lock_guard<std::recursive_mutex>;

MemoryDisk::MemoryDisk(std::string root) : MemoryDisk(std::move(root), {Node{true, {}, {}}}) {}

MemoryDisk::MemoryDisk(std::string root, std::vector<Node> nodes)
    : root_(std::move(root)), base_(nodes), nodes_(std::move(nodes)) {}

void MemoryDisk::settle() {
  base_ = nodes_;
  changes_.clear();
  promises_.clear();
}

void MemoryDisk::promise(int what) {
  const Guard guard(mutex_);
  promises_.emplace_back(changes_.size(), what);
}

int MemoryDisk::promised_at(size_t changes) const {
  int what = 0;
  for (const auto& [at, promise] : promises_) {
    if (at <= changes) what = promise;
  }
  return what;
}

std::vector<MemoryDisk::Node> MemoryDisk::durable_nodes() const {
  std::vector<Node> nodes = base_;
  for (size_t i = nodes.size(); i < nodes_.size(); ++i) {
    nodes.push_back({nodes_[i].directory, {}, {}});
  }
  return nodes;
}

std::unique_ptr<MemoryDisk> MemoryDisk::killed_after(size_t changes) const {
  auto disk = std::make_unique<MemoryDisk>(root_, base_);
  disk->nodes_ = durable_nodes();
  for (size_t i = 0; i < changes; ++i) {
    apply(disk->nodes_, changes_[i]);
    disk->changes_.push_back(changes_[i]);
  }
  return disk;
}

std::string& MemoryDisk::content_of(Node& node) {
  if (!node.content) {
    node.content = std::make_shared<std::string>();
  } else if (node.content.use_count() > 1) {
    node.content = std::make_shared<std::string>(*node.content);
  }
  return *node.content;
}

void MemoryDisk::apply(std::vector<Node>& nodes, const DiskChange& change) {
  Node& node = nodes[static_cast<size_t>(change.node)];
  const auto erase = [&](const std::string& name) {
    const auto entry = node.entries.find(name);
    if (entry != node.entries.end() && entry->second == change.child) node.entries.erase(entry);
  };
  switch (change.kind) {
    case Kind::write: {
      std::string& content = content_of(node);
      content.resize(std::max(content.size(), change.at + change.data.size()));
      content.replace(change.at, change.data.size(), change.data);
      break;
    }
    case Kind::resize: content_of(node).resize(change.at); break;
    case Kind::link: node.entries[change.name] = change.child; break;
    case Kind::move:
      erase(change.name);
      node.entries[change.to_name] = change.child;
      break;
    case Kind::erase: erase(change.name); break;
    case Kind::sync: break;
  }
}

void MemoryDisk::change(DiskChange change) {
  apply(nodes_, change);
  changes_.push_back(std::move(change));
}

bool MemoryDisk::is_mine(const char* path) const {
  const size_t length = root_.size();
  return std::strncmp(path, root_.c_str(), length) == 0 &&
         (path[length] == '\0' || path[length] == '/');
}

MemoryDisk::Place MemoryDisk::find(const std::string& path) const {
  Place place{-1, "", 0};
  for (size_t at = root_.size(); at < path.size();) {
    const size_t begin = path.find_first_not_of('/', at);
    if (begin == std::string::npos) break;
    at = std::min(path.find('/', begin), path.size());
    if (place.node < 0 || !nodes_[static_cast<size_t>(place.node)].directory) return {};
    place = {place.node, path.substr(begin, at - begin), -1};
    const auto& entries = nodes_[static_cast<size_t>(place.directory)].entries;
    const auto entry = entries.find(place.name);
    if (entry != entries.end()) place.node = entry->second;
  }
  return place;
}

int MemoryDisk::node_of(int fd) const {
  const auto found = open_.find(fd);
  return found == open_.end() ? -1 : found->second;
}

int MemoryDisk::add_node(bool directory, const Place& place) {
  nodes_.push_back({directory, {}, {}});
  const int node = static_cast<int>(nodes_.size()) - 1;
  change({Kind::link, place.directory, 0, "", place.name, "", node});
  return node;
}

void MemoryDisk::fill(int node, struct stat& status) const {
  const Node& n = nodes_[static_cast<size_t>(node)];
  status = {};
  status.st_mode = n.directory ? S_IFDIR | 0755 : S_IFREG | 0644;
  status.st_size = n.content ? static_cast<off_t>(n.content->size()) : 0;
}

int MemoryDisk::status(const char* path, bool follow_links, struct stat& status) {
  if (!is_mine(path)) return FileCalls::status(path, follow_links, status);
  const Guard guard(mutex_);
  const Place place = find(path);
  if (place.node < 0) return -ENOENT;
  fill(place.node, status);
  return 0;
}

int MemoryDisk::status_of(int fd, struct stat& status) {
  const Guard guard(mutex_);
  if (node_of(fd) < 0) return FileCalls::status_of(fd, status);
  fill(node_of(fd), status);
  return 0;
}

int MemoryDisk::list(const char* path, std::vector<std::string>& names) {
  if (!is_mine(path)) return FileCalls::list(path, names);
  const Guard guard(mutex_);
  const Place place = find(path);
  if (place.node < 0) return -ENOENT;
  const Node& node = nodes_[static_cast<size_t>(place.node)];
  if (!node.directory) return -ENOTDIR;
  for (const auto& [name, child] : node.entries) names.push_back(name);
  return 0;
}

int MemoryDisk::real_path(const char* path, std::string& real) {
  if (!is_mine(path)) return FileCalls::real_path(path, real);
  const Guard guard(mutex_);
  if (find(path).node < 0) return -ENOENT;
  real = path;
  return 0;
}

int64_t MemoryDisk::free_bytes(const char* path) {
  return is_mine(path) ? int64_t{1} << 40 : FileCalls::free_bytes(path);
}

int MemoryDisk::touch(const char* path) { return is_mine(path) ? 0 : FileCalls::touch(path); }

int MemoryDisk::open(const char* path, int flags, unsigned mode) {
  if (!is_mine(path)) return FileCalls::open(path, flags, mode);
  const Guard guard(mutex_);
  const Place place = find(path);
  if (place.node < 0 && ((flags & O_CREAT) == 0 || place.directory < 0)) return -ENOENT;
  if (place.node >= 0 && (flags & O_EXCL) != 0) return -EEXIST;
  const int node = place.node >= 0 ? place.node : add_node(false, place);
  open_[next_descriptor_] = node;
  return next_descriptor_++;
}

int64_t MemoryDisk::pread(int fd, void* buffer, size_t bytes, uint64_t offset) {
  const Guard guard(mutex_);
  const int node = node_of(fd);
  if (node < 0) return FileCalls::pread(fd, buffer, bytes, offset);
  const auto& content = nodes_[static_cast<size_t>(node)].content;
  const size_t size = content ? content->size() : 0;
  if (offset >= size) return 0;
  const size_t n = std::min<size_t>(bytes, size - offset);
  std::memcpy(buffer, content->data() + offset, n);
  return static_cast<int64_t>(n);
}

int64_t MemoryDisk::pwrite(int fd, const void* buffer, size_t bytes, uint64_t offset) {
  const Guard guard(mutex_);
  const int node = node_of(fd);
  if (node < 0) return FileCalls::pwrite(fd, buffer, bytes, offset);
  change(
      {Kind::write, node, offset, std::string(static_cast<const char*>(buffer), bytes), "", "", 0});
  return static_cast<int64_t>(bytes);
}

int64_t MemoryDisk::append(int fd, const void* buffer, size_t bytes) {
  const Guard guard(mutex_);
  const int node = node_of(fd);
  if (node < 0) return FileCalls::append(fd, buffer, bytes);
  const auto& content = nodes_[static_cast<size_t>(node)].content;
  return pwrite(fd, buffer, bytes, content ? content->size() : 0);
}

int MemoryDisk::fallocate(int fd, uint64_t bytes) {
  const Guard guard(mutex_);
  return node_of(fd) < 0 ? FileCalls::fallocate(fd, bytes) : 0;  // sizes stay
}

int MemoryDisk::truncate(int fd, uint64_t bytes) {
  const Guard guard(mutex_);
  const int node = node_of(fd);
  if (node < 0) return FileCalls::truncate(fd, bytes);
  change({Kind::resize, node, bytes, "", "", "", 0});
  return 0;
}

int MemoryDisk::sync(int fd) {
  const Guard guard(mutex_);
  const int node = node_of(fd);
  if (node < 0) return FileCalls::sync(fd);
  change({Kind::sync, node, 0, "", "", "", 0});
  return 0;
}

int MemoryDisk::close(int fd) {
  const Guard guard(mutex_);
  return open_.erase(fd) > 0 ? 0 : FileCalls::close(fd);
}

int MemoryDisk::rename(const char* from, const char* to, bool replace) {
  if (!is_mine(from)) return FileCalls::rename(from, to, replace);
  const Guard guard(mutex_);
  const Place source = find(from), target = find(to);
  if (source.node < 0 || target.directory < 0) return -ENOENT;
  if (target.node >= 0 && !replace) return -EEXIST;
  if (target.directory != source.directory) return -EXDEV;  // the project never does that
  change({Kind::move, source.directory, 0, "", source.name, target.name, source.node});
  return 0;
}

int MemoryDisk::mkdir(const char* path, unsigned mode) {
  if (!is_mine(path)) return FileCalls::mkdir(path, mode);
  const Guard guard(mutex_);
  const Place place = find(path);
  if (place.node >= 0) return -EEXIST;
  if (place.directory < 0) return -ENOENT;
  add_node(true, place);
  return 0;
}

int MemoryDisk::remove(const char* path, bool directory) {
  const Guard guard(mutex_);
  const Place place = find(path);
  if (place.node < 0) return -ENOENT;
  const Node& node = nodes_[static_cast<size_t>(place.node)];
  if (node.directory != directory) return directory ? -ENOTDIR : -EISDIR;
  if (!node.entries.empty()) return -ENOTEMPTY;
  change({Kind::erase, place.directory, 0, "", place.name, "", place.node});
  return 0;
}

int MemoryDisk::unlink(const char* path) {
  return is_mine(path) ? remove(path, false) : FileCalls::unlink(path);
}
int MemoryDisk::rmdir(const char* path) {
  return is_mine(path) ? remove(path, true) : FileCalls::rmdir(path);
}

int MemoryDisk::lock_exclusive(int fd) {
  const Guard guard(mutex_);
  return node_of(fd) < 0 ? FileCalls::lock_exclusive(fd) : 0;
}

}  // namespace hearth::test
