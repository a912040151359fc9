cmake_minimum_required(VERSION 3.25)

# Finds strings that spell an option of the program (--seq-len) outside of tools and src/setup. Rooms
# below name a setting (src/base/setting.h), and the program says how it is written. Options of other
# programs ("hf download --revision") are no business of this test.
include("${CMAKE_CURRENT_LIST_DIR}/source_scan.cmake")

set(names "")
file(GLOB tables "${ROOT}/tools/options/*.cpp")
foreach(table IN LISTS tables)
  file(STRINGS "${table}" rows REGEX "{\\.name = \"")
  foreach(row IN LISTS rows)
    string(REGEX REPLACE ".*{\\.name = \"([a-z0-9-]+)\".*" "\\1" name "${row}")
    list(APPEND names "${name}")
  endforeach()
endforeach()
list(LENGTH names count)
if(count LESS 60)
  message(SEND_ERROR "only ${count} options were found")
endif()
list(JOIN names "|" names)
# (Not "text") --count;)
set(forbidden "\"([^\"]*[^\") ])? ?--(${names})([^a-z0-9-]|$)")

expect_found("${forbidden}" "throw usage_error(\"--seq-len: too long\")\\;"
    "  return \"raise --gpu-memory\"\\;" "add(\"pass --adapter-layout fused\")\\;")
expect_not_found("${forbidden}" "is no option in a string" "call(\"hf download --revision \")\\;"
    "if (f(\"x\")) --keep\\;" "// says \"--seq-len\"")

list_sources(src cpu_kernels gpu_kernels predictor)
list(FILTER sources EXCLUDE REGEX "/src/setup/")
expect_no_use("${sources}" "${forbidden}" "" "spells an option")
message(STATUS "${count} sources below tools and setup spell no option")
