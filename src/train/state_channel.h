// What rank 0 and one other rank say to each other about the state. It has communicators of its own,
// so a save can run beside the next steps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/rank_team.h"

namespace hearth {

/// What rank 0 asks of the state of another rank. All numbers, so that it is the same bytes
/// everywhere. A view is a tensor of a component: of weights, then first, then second moments, each in
/// the order of the parameter table, those alone that the rank owns.
struct StateRequest {
  enum class Kind : int64_t {
    load,   // a text names a state: read your part of it. Answer: kReads or kNotThere
    fill,   // bytes for a view follow
    read,   // answer: bytes of a view
    write,  // write your files of the state of `step`; answer: a text
    end,    // no more requests
  };
  Kind kind = Kind::end;
  int64_t step = 0;
  uint64_t view = 0, at = 0, bytes = 0;
};

/// To StateRequest::load. kReads is followed by a second text: empty, and then by the digests of all
/// views, or what is wrong with a file.
inline constexpr char kReads[] = "reads", kNotThere[] = "not there";

/// One end of the channel. One thread at a time uses it. Calls raise PeerError if the run has failed.
class StateChannel {
 public:
  explicit StateChannel(std::unique_ptr<Communicator> comm) : comm_(std::move(comm)) {}

  /// At both ends: what follows is about the state of this step, which is not below the last one.
  void begin(int64_t step);
  /// Rank 0 asks, the other hears.
  void ask(const StateRequest& request);
  StateRequest hear();
  void send(ConstBytes bytes);
  void receive(Bytes bytes);
  void send_text(const std::string& text);
  /// `look` is called while it waits, and may raise.
  std::string receive_text(const std::function<void()>& look = {});

 private:
  CommLabel next() { return {label_.step, label_.number++}; }
  void wait_for(std::unique_ptr<Pending> operation, const std::function<void()>& look = {});

  std::unique_ptr<Communicator> comm_;
  CommLabel label_;
};

/// The channels between rank 0 and all others: at rank 0 by rank, with an empty one for itself; at
/// another rank its own alone. All ranks call it before step 1, at the same point.
std::vector<StateChannel> make_state_channels(World& world);

}  // namespace hearth
