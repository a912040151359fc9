#include "train/rank_texts.h"

namespace hearth {

namespace {

ConstBytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
Bytes room_of(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), text.size()};
}
template <class Number>
ConstBytes number_bytes(const Number& number) {
  return {reinterpret_cast<const std::byte*>(&number), sizeof number};
}

}  // namespace

std::vector<std::string> gather_texts(RankTeam& team, const std::string& own) {
  const auto ranks = static_cast<size_t>(team.size());
  const uint64_t size = own.size();
  std::vector<uint64_t> sizes(ranks);
  std::vector<Bytes> from;
  for (uint64_t& of : sizes) from.push_back({reinterpret_cast<std::byte*>(&of), sizeof of});
  Communicator& comm = team.comm();
  comm.wait_for(comm.gather(team.next(), number_bytes(size), from));
  std::vector<std::string> texts;
  for (const uint64_t of : sizes) texts.emplace_back(of, '\0');
  from.clear();
  for (std::string& text : texts) from.push_back(room_of(text));
  comm.wait_for(comm.gather(team.next(), bytes_of(own), from));
  return texts;
}

void tell(RankTeam& team, const std::string& text) {
  const uint64_t size = text.size();
  std::vector<Outgoing> sizes, texts;
  for (int32_t rank = 1; rank < team.size(); ++rank) {
    sizes.push_back({rank, number_bytes(size)});
    texts.push_back({rank, bytes_of(text)});
  }
  Communicator& comm = team.comm();
  comm.wait_for(comm.transfer(team.next(), std::move(sizes), {}));
  comm.wait_for(comm.transfer(team.next(), std::move(texts), {}));
}

std::string hear(RankTeam& team) {
  uint64_t size = 0;
  Communicator& comm = team.comm();
  comm.wait_for(
      comm.transfer(team.next(), {}, {{0, {reinterpret_cast<std::byte*>(&size), sizeof size}}}));
  std::string text(size, '\0');
  comm.wait_for(comm.transfer(team.next(), {}, {{0, room_of(text)}}));
  return text;
}

}  // namespace hearth
