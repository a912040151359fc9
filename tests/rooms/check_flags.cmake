cmake_minimum_required(VERSION 3.25)

# Finds strings that spell an option of the program (--seq-len) outside of tools and src/setup. Rooms
# below name a setting (src/base/setting.h), and the program says how it is written. Options of other
# programs ("hf download --revision") are no business of this test.

# Still to be emptied.
set(allowed
    src/budget/plan_changes.cpp src/budget/plan_file.cpp src/budget/plan_fit.cpp
    src/budget/plan_variant.cpp src/state/state_load.cpp
    src/state/state_save.cpp src/train/resume.cpp src/train/run_disk.cpp
    src/train/training_run.cpp src/verdict/verdict.cpp)

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

# Sets `uses` to the lines of a file that match.
function(find_uses path)
  set(found "")
  file(STRINGS "${path}" lines REGEX "${forbidden}")
  foreach(line IN LISTS lines)
    string(STRIP "${line}" line)
    if(NOT line MATCHES "^//")
      list(APPEND found "${line}")
    endif()
  endforeach()
  set(uses "${found}" PARENT_SCOPE)
endfunction()

foreach(line "throw usage_error(\"--seq-len: too long\")\\;" "  return \"raise --gpu-memory\"\\;"
    "add(\"pass --adapter-layout fused\")\\;")
  file(WRITE "${SCRATCH}/planted_flag.cpp" "int before\;\n${line}\n")
  find_uses("${SCRATCH}/planted_flag.cpp")
  if(NOT uses)
    message(SEND_ERROR "not found where it was planted: ${line}")
  endif()
endforeach()
foreach(line "call(\"hf download --revision \")\\;" "if (f(\"x\")) --keep\\;" "// says \"--seq-len\"")
  file(WRITE "${SCRATCH}/planted_flag.cpp" "${line}\n")
  find_uses("${SCRATCH}/planted_flag.cpp")
  if(uses)
    message(SEND_ERROR "is no option in a string: ${line}")
  endif()
endforeach()

set(sources "")
foreach(folder src cpu_kernels gpu_kernels)
  file(GLOB_RECURSE more "${ROOT}/${folder}/*.h" "${ROOT}/${folder}/*.cpp" "${ROOT}/${folder}/*.cu")
  list(APPEND sources ${more})
endforeach()
list(FILTER sources EXCLUDE REGEX "/src/setup/")
list(LENGTH sources count)
if(count LESS 100)
  message(SEND_ERROR "only ${count} sources were found")
endif()
foreach(source IN LISTS sources)
  file(RELATIVE_PATH name "${ROOT}" "${source}")
  find_uses("${source}")
  if(name IN_LIST allowed)
    if(NOT uses)
      message(SEND_ERROR "${name} is allowed what it does not do")
    endif()
    continue()
  endif()
  foreach(use IN LISTS uses)
    message(SEND_ERROR "${name}: spells an option: ${use}")
  endforeach()
endforeach()
message(STATUS "${count} sources below tools and setup spell no option")
