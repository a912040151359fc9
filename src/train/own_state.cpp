#include "train/own_state.h"

#include <exception>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "base/planted.h"
#include "base/raised_error.h"
#include "base/system.h"
#include "state/state_directory.h"
#include "state/state_load.h"

namespace hearth {

namespace {

std::vector<StateView> views_of(const StateRegistry& registry) {
  std::vector<StateView> views;
  for (const StateComponent& component : registry.components()) {
    for (StateView& view : checked_views(component)) views.push_back(std::move(view));
  }
  return views;
}

std::string text_of(const std::vector<StateFile>& files) {
  JsonArray list;
  for (const StateFile& file : files) {
    JsonArray chunks;
    for (const Digest& chunk : file.chunks) chunks.emplace_back(chunk.hex());
    list.emplace_back(JsonObject{
        {"component", file.component}, {"bytes", file.bytes}, {"chunks", std::move(chunks)}});
  }
  return Json(JsonObject{{"files", std::move(list)}}).dump();
}

/// What rank 0 loads, if this rank finds the same at the same path: on the same disk, or a copy.
std::optional<SavedState> find_state(const Json& named) {
  if (planted("ranks-share-no-disk")) return std::nullopt;
  try {
    SavedState state = open_state(named.find("directory")->as_string());
    if (state.digest.root.hex() == named.find("root")->as_string()) return state;
  } catch (const Error&) {  // not there, or another one
  }
  return std::nullopt;
}

}  // namespace

OwnState::OwnState(RankTeam& team, const StateRegistry& registry, std::string run_dir,
                   const Pool& pool)
    : team_(team),
      registry_(registry),
      run_dir_(std::move(run_dir)),
      pool_(pool),
      channel_(std::move(make_state_channels(team.world()).front())) {}

OwnState::~OwnState() { join(); }

void OwnState::join() {
  if (thread_.joinable()) thread_.join();
}

void OwnState::send(const std::vector<Digest>& digests) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(digests.data());
  team_.comm().wait_for(
      team_.comm().transfer(team_.next(), {{0, {bytes, digests.size() * sizeof(Digest)}}}, {}));
}

void OwnState::tell_digests() {
  std::vector<Digest> digests;
  {
    const Away away(team_.world());
    for (const StateTensor& tensor : digest_views(views_of(registry_), &pool_)) {
      digests.push_back(tensor.digest);
    }
  }
  send(digests);
}

void OwnState::read_part(const std::string& named) {
  const std::optional<SavedState> state = find_state(parse_json(named, "what rank 0 loads"));
  channel_.send_text(state ? kReads : kNotThere);
  if (!state) return;
  std::vector<Digest> digests;
  try {
    digests = load_part(registry_, *state, [this] { team_.world().beat(); });
  } catch (const DamagedState& damage) {
    return channel_.send_text(
        Json(JsonObject{{"file", damage.file}, {"reason", damage.reason}}).dump());
  }
  channel_.send_text("");
  channel_.send(
      {reinterpret_cast<const std::byte*>(digests.data()), digests.size() * sizeof(Digest)});
}

void OwnState::load() {
  const Away away(team_.world());
  take_part();
  release_freed_memory();  // of lists of the saved state
}

void OwnState::take_part() {
  const std::vector<StateView> views = views_of(registry_);
  std::vector<std::byte> piece;
  for (StateRequest request = channel_.hear(); request.kind != StateRequest::Kind::end;
       request = channel_.hear()) {
    if (request.kind == StateRequest::Kind::load) {
      read_part(channel_.receive_text());
      continue;
    }
    HEARTH_CHECK(request.kind == StateRequest::Kind::fill, "state: another request in a load");
    piece.resize(request.bytes);
    channel_.receive({piece.data(), piece.size()});
    views.at(request.view).write(request.at, piece);
  }
  for (const StateComponent& component : registry_.components()) {
    if (component.restored) component.restored();
  }
}

void OwnState::begin_save(int64_t step) {
  join();
  channel_.begin(step);
  std::vector<Digest> digests;
  {
    const Away away(team_.world());
    parts_.reset();
    release_freed_memory();  // of the save before: its lists come again
    parts_ = std::make_unique<StateParts>(registry_, step, &pool_, team_.rank());
    for (const StateParts::OwnView& own : parts_->own_views()) digests.push_back(own.digest);
  }
  send(digests);
  const auto run = [this, step] {
    try {
      serve(step);
    } catch (...) {
      as_error(std::current_exception(), [&](const Error& error) { team_.world().fail(error); });
    }
    parts_->open_all();
  };
  try {
    thread_ = std::thread([run] {
      unbind_thread();
      run();
    });
  } catch (const std::system_error&) {
    run();
  }
}

void OwnState::serve(int64_t step) {
  const std::vector<StateParts::OwnView> views = parts_->own_views();
  std::vector<std::byte> staging;
  while (true) {
    const StateRequest request = channel_.hear();
    switch (request.kind) {
      case StateRequest::Kind::read: {
        const StateParts::OwnView& own = views.at(request.view);
        parts_->open(own.index);  // rank 0 has all views before it
        const auto bytes = own.view.read(request.at, request.bytes, staging);
        channel_.send({bytes.data(), bytes.size()});
        break;
      }
      case StateRequest::Kind::write: channel_.send_text(write_files(step)); break;
      case StateRequest::Kind::fill:
      case StateRequest::Kind::load: HEARTH_CHECK(false, "state: a load in a save"); break;
      case StateRequest::Kind::end: return;
    }
  }
}

std::string OwnState::write_files(int64_t step) {
  const auto failed = [&](const std::string& why) {
    parts_->open_all();
    return Json(JsonObject{{"failure", named_rank(team_.rank(), team_.world().host(team_.rank())) +
                                           ": " + why}})
        .dump();
  };
  try {
    parts_->write(hidden_state_directory(run_dir_, step), [this] { team_.world().beat(); });
    return text_of(parts_->files());
  } catch (const std::bad_alloc&) {
    return failed("out of memory");
  } catch (const Error& error) {
    return failed(error.what());
  }
}

void OwnState::wait_until_safe(size_t views) {
  if (!parts_) return;
  const Away away(team_.world());
  parts_->wait_until_safe(views);
}

}  // namespace hearth
