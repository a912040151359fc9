cmake_minimum_required(VERSION 3.25)

# Plants an include of every room into every other one and compiles it with that room's real include
# path: a room below or beside must fail for want of the header, a direct dependency must compile.
# Then reads the sources, because the compiler also looks beside the including file: a room could
# otherwise reach into a room inside its own folder, or out through "..".
include("${WALLS}")

set(faults "")
set(refused 0)
set(allowed 0)

# Compiles `#include "<header>"` as a source of `room`; sets `status` and `message`.
function(plant room header)
  file(WRITE "${SCRATCH}/planted.cpp" "#include \"${header}\"\n")
  list(TRANSFORM include_path_${room} PREPEND -I OUTPUT_VARIABLE flags)
  execute_process(
    COMMAND "${compiler}" -std=c++20 -fsyntax-only ${flags} "${SCRATCH}/planted.cpp"
    RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE errors)
  set(status "${result}" PARENT_SCOPE)
  set(message "${errors}" PARENT_SCOPE)
endfunction()

# Walls of the design, said here again so that a dependency added to CMakeLists.txt by mistake fails.
set(design_walls "base:model" "topology:device" "device:ops" "ops:cpu_kernels" "cpu_kernels:layers"
    "model:train" "model:layers" "layers:plan" "data:train" "plan:modes" "plan:runtime"
    "runtime:modes" "runtime:train" "runtime:data" "modes:runtime" "model:checkpoint"
    "checkpoint:peft" "checkpoint:data" "jinja:model" "state:setup" "setup:budget" "budget:record"
    "verdict:setup" "predictor:data" "predictor:model" "report:record" "options:foreign"
    "options:train" "foreign:train")
foreach(wall IN LISTS design_walls)
  string(REPLACE ":" ";" pair "${wall}")
  list(GET pair 0 room)
  list(GET pair 1 other)
  if(NOT room IN_LIST rooms OR NOT other IN_LIST rooms)
    list(APPEND faults "no such rooms: ${wall}")
  elseif(other IN_LIST visible_${room})
    list(APPEND faults "${room} depends on ${other}, which the design forbids")
  endif()
endforeach()

# First header of each room as "<room>/file.h"; empty for a room without one.
foreach(room IN LISTS rooms)
  file(GLOB headers RELATIVE "${folder_${room}}" "${folder_${room}}/*.h")
  set(header_${room} "")
  if(headers)
    list(GET headers 0 first)
    set(header_${room} "${room}/${first}")
  endif()
endforeach()

foreach(room IN LISTS rooms)
  foreach(other IN LISTS rooms)
    if(other STREQUAL room OR NOT header_${other})
      continue()
    endif()
    if(other IN_LIST visible_${room} AND NOT other IN_LIST direct_${room})
      continue()
    endif()
    plant(${room} ${header_${other}})
    if(other IN_LIST direct_${room})
      math(EXPR allowed "${allowed} + 1")
      if(NOT status EQUAL 0)
        list(APPEND faults "${room} may include ${header_${other}} but it does not compile:\n${message}")
      endif()
    else()
      math(EXPR refused "${refused} + 1")
      if(status EQUAL 0)
        list(APPEND faults "${room} can include ${header_${other}}")
      elseif(NOT message MATCHES "${header_${other}}.*(No such file|not found)")
        list(APPEND faults "${room} with ${header_${other}} failed for another reason:\n${message}")
      endif()
    endif()
  endforeach()
endforeach()

foreach(room IN LISTS rooms)
  file(GLOB_RECURSE sources "${folder_${room}}/*.h" "${folder_${room}}/*.cpp")
  foreach(inner IN LISTS inner_${room})
    list(FILTER sources EXCLUDE REGEX "^${folder_${room}}/${inner}/")
  endforeach()
  foreach(source IN LISTS sources)
    file(STRINGS "${source}" lines REGEX "^[ \t]*#[ \t]*include[ \t]*\"")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^[^\"]*\"([^\"]*)\".*" "\\1" header "${line}")
      string(REGEX REPLACE "/.*" "" prefix "${header}")
      if(header MATCHES "\\.\\." OR
         (prefix IN_LIST rooms AND NOT prefix STREQUAL room AND NOT prefix IN_LIST visible_${room}))
        list(APPEND faults "${source}: includes \"${header}\", which ${room} may not see")
      endif()
      foreach(inner IN LISTS inner_${room})
        if(header MATCHES "^${room}/${inner}/")
          list(APPEND faults "${source}: includes \"${header}\", which ${room} may not see")
        endif()
      endforeach()
    endforeach()
  endforeach()
endforeach()

if(refused EQUAL 0 OR allowed EQUAL 0)
  list(APPEND faults "nothing was tested: ${refused} refused, ${allowed} allowed")
endif()
foreach(fault IN LISTS faults)
  message(SEND_ERROR "${fault}")
endforeach()
message(STATUS "${refused} planted includes refused, ${allowed} allowed ones compiled")
