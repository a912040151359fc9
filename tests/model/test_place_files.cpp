// Checkpoints and adapters of tables whose blocks live where the host does not reach: the same bytes,
// and no address of such memory is touched (it would fault).
#include <filesystem>

#include "adapter_fixture.h"
#include "checkpoint/checkpoint_write.h"
#include "model/parameter_access.h"
#include "peft/write.h"
#include "place_fixture.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

namespace {

constexpr Away kAways[] = {Away::experts, Away::everything};

/// Names and contents of the files of a directory.
std::map<std::string, std::string> content(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& file : fs::directory_iterator(directory)) {
    files[file.path().filename()] = read_text(file.path());
  }
  return files;
}

void require_same(const PlacedTable& placed, const PlacedTable& host) {
  for (int r = 0; r < kCopyRoles; ++r) {
    INFO("role " << r);
    const auto role = static_cast<CopyRole>(r);
    const bool same = placed.bytes(role) == host.bytes(role);
    CHECK(same);
  }
  for (TensorId id = 0; id < std::ssize(host.table.tensors()); ++id) {
    CHECK(placed.table.weight(id).dtype == host.table.weight(id).dtype);  // and not stale
  }
}

}  // namespace

TEST_CASE("places: weights are read to where they live, and written from there", "[places]") {
  const TemporaryDirectory directory;
  // More than one piece, and a type that is converted.
  const Json config =
      changed(changed(small_config(), "vocab_size", 200'000), "torch_dtype", "bfloat16");
  make_checkpoint(config, directory / "model");
  const Checkpoint base(directory / "model");
  PlacedTable host(trained(base.make_table()), kRounded, Away::nothing);
  base.read_weights(host.table, Pool(2));
  write_checkpoint(host.table, base, directory / "host");
  int n = 0;
  for (const Away away : kAways) {
    PlacedTable placed(trained(base.make_table()), kRounded, away);
    base.read_weights(placed.table, Pool(2));
    CHECK(placed.memory->written_bytes > 0);
    require_same(placed, host);
    const std::string out = directory / "out" + std::to_string(n++);
    write_checkpoint(placed.table, base, out);
    const bool same = content(out) == content(directory / "host");
    CHECK(same);
  }
  // Frozen: as stored.
  PlacedTable frozen(base.make_table(), CopyPolicy{}, Away::everything);
  PlacedTable expected(base.make_table(), CopyPolicy{}, Away::nothing);
  base.read_weights(frozen.table, Pool(2));
  base.read_weights(expected.table, Pool(1));
  require_same(frozen, expected);
}

TEST_CASE("places: working copies are made again from their masters", "[places]") {
  const TemporaryDirectory directory;
  make_checkpoint(small_config(), directory / "model");
  const Checkpoint base(directory / "model");
  PlacedTable host(trained(base.make_table()), kRounded, Away::nothing);
  base.read_weights(host.table, Pool(1));
  PlacedTable placed(trained(base.make_table()), kRounded, Away::everything);
  base.read_weights(placed.table, Pool(1));
  std::vector<std::byte> staging;
  for (Tensor& t : placed.table.tensors()) {
    const View working = t.copies[static_cast<int>(CopyRole::working)].view;
    const std::vector<float> other(static_cast<size_t>(t.size()), 9.0f);
    if (working) {
      put_elements(placed.table, t, working, 0, DType::f32, other.data(), t.size(), staging);
    }
  }
  REQUIRE(placed.bytes(CopyRole::working) != host.bytes(CopyRole::working));
  refresh_working_copies(placed.table);
  require_same(placed, host);
}

TEST_CASE("places: adapters are drawn, written, read and merged where they live", "[places]") {
  const TemporaryDirectory directory;
  make_checkpoint(small_config(), directory / "model");
  const Checkpoint base(directory / "model");
  const auto with_adapters = [&] {
    ParameterTable table = base.make_table();
    table.tensor(*table.find("model.norm.weight")).trainable = true;
    AdapterOptions options;
    options.rank = options.expert_rank = 3;
    add_adapters(table, base.layout(), options);
    return table;
  };
  const auto fill = [&](PlacedTable& placed) {
    base.read_weights(placed.table, Pool(1));
    init_adapters(placed.table, 3);
    std::vector<std::byte> staging;
    const Random random(3, RandomSite::init);
    uint64_t n = 0;
    for (Tensor& t : placed.table.tensors()) {
      if (t.factor != Factor::b) continue;
      std::vector<float> values(static_cast<size_t>(t.size()));
      for (float& value : values) value = static_cast<float>(random.normal(n++) / 4);
      const View home{t.home().view};
      put_elements(placed.table, t, home, 0, DType::f32, values.data(), t.size(), staging);
    }
    refresh_working_copies(placed.table);
  };
  PlacedTable host(with_adapters(), kRounded, Away::nothing);
  fill(host);
  const auto write = [&](const PlacedTable& placed, const std::string& name) {
    AdapterFileOptions options;
    write_adapter(placed.table, base, options, directory / (name + "-each"));
    options.layout = AdapterLayout::fused;
    write_adapter(placed.table, base, options, directory / (name + "-fused"));
    write_merged(placed.table, base, Pool(2), directory / (name + "-merged"));
  };
  write(host, "host");
  int n = 0;
  for (const Away away : kAways) {
    PlacedTable placed(with_adapters(), kRounded, away);
    fill(placed);
    require_same(placed, host);
    const std::string name = "out" + std::to_string(n++);
    write(placed, name);
    for (const char* form : {"-each", "-fused", "-merged"}) {
      INFO(form);
      const bool same =
          content(directory / (name + form)) == content(directory / (std::string("host") + form));
      CHECK(same);
    }
    for (const char* form : {"-each", "-fused"}) {
      const AdapterFile file(directory / (name + form), base);
      const auto read = [&](Away where) {
        ParameterTable table = base.make_table();
        file.add_to(table);
        PlacedTable of(std::move(table), kRounded, where);
        base.read_weights(of.table, Pool(1));
        file.read(of.table);
        refresh_working_copies(of.table);
        return of;
      };
      const PlacedTable again = read(away);
      require_same(again, read(Away::nothing));
      const bool same = again.bytes(CopyRole::master) == host.bytes(CopyRole::master);
      CHECK(same);
    }
  }
}
