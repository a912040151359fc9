#define PCRE2_CODE_UNIT_WIDTH 8
#include "commands/version.h"

#include <fmt/format.h>
#include <hwloc.h>
#include <pcre2.h>
#include <spdlog/version.h>
#include <utf8proc.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>
#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>

#include "base/version.h"
#include "cpu_kernels/cpu_info.h"
#include "topology/topology.h"

namespace hearth {
namespace {

std::string pcre2_version() {
  char text[64] = {};
  ::pcre2_config(PCRE2_CONFIG_VERSION, text);
  const std::string version = text;
  return version.substr(0, version.find(' '));  // without the date
}

// Three numbers in one, as many libraries tell their version.
std::string dotted(unsigned major, unsigned minor, unsigned patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

// Versions are asked of the loaded library where it can tell, else they are those of the headers.
std::string libraries() {
  const unsigned xxhash = ::XXH_versionNumber();
  return fmt::format(
      "oneDNN {}, OpenMP {}, hwloc {}, PCRE2 {}, utf8proc {}, xxHash {}, zlib {}, "
      "zstd {}, fmt {}, spdlog {}, nlohmann-json {}, CLI11 {}",
      onednn_version(), _OPENMP, HWLOC_VERSION, pcre2_version(), ::utf8proc_version(),
      dotted(xxhash / 10000, xxhash / 100 % 100, xxhash % 100), ::zlibVersion(),
      ::ZSTD_versionString(),
      dotted(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100),
      dotted(SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH),
      dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH),
      CLI11_VERSION);
}

}  // namespace

std::string version_text() {
  const BuildInfo& build = build_info();
  const Topology machine = detect_topology();
  std::string text = fmt::format("hearth {}\n", build.version);
  text += fmt::format("revision   {}\n", build.revision);
  text +=
      fmt::format("build      {}, {}, flags {}\n", build.build_type, build.compiler, build.flags);
  if (!build.sanitizers.empty()) text += fmt::format("sanitizers {}\n", build.sanitizers);
  text += fmt::format("CUDA       {}\n", build.cuda);
  text += fmt::format("CUTLASS    {}\n", build.cutlass);
  text += fmt::format("cuDNN      {}\n", build.cudnn);
  text += fmt::format("processor  {}, {} core(s), {} NUMA node(s)\n",
                      machine.cpu_model.empty() ? "unknown" : machine.cpu_model,
                      machine.cores.size(), machine.nodes.size());
  text += fmt::format("ISA        {}, bf16 products in {}\n", cpu_isa(),
                      has_fast_bf16() ? "hardware" : "f32");
  text += fmt::format("libraries  {}\n", libraries());
  return text;
}

}  // namespace hearth
