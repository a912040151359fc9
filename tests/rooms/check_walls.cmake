cmake_minimum_required(VERSION 3.25)

# Preprocesses a source for each room with the room's real include path: a header of a room above or
# beside must be out of reach, a direct dependency within, and so all that it includes. Then reads the
# sources, because the compiler also looks beside the including file: a room could otherwise reach into
# a room inside its own folder, or out through "..".
include("${WALLS}")

set(faults "")
set(refused 0)
set(allowed 0)

# Preprocesses `text` as a source of `room`; sets `status` and `message`. What a header says is
# compiled elsewhere, which takes ten times as long.
function(preprocess room text)
  file(WRITE "${SCRATCH}/planted.cpp" "${text}")
  list(TRANSFORM include_path_${room} PREPEND -I OUTPUT_VARIABLE flags)
  execute_process(
    COMMAND "${compiler}" -std=c++20 -E -o /dev/null ${flags} "${SCRATCH}/planted.cpp"
    RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE errors)
  set(status "${result}" PARENT_SCOPE)
  set(message "${errors}" PARENT_SCOPE)
endfunction()

# Walls of the design, said here again so that a dependency added to CMakeLists.txt by mistake fails.
set(design_walls "base:model" "topology:device" "device:ops" "ops:cpu_kernels" "cpu_kernels:layers"
    "model:train" "model:layers" "layers:plan" "data:train" "plan:modes" "plan:runtime"
    "runtime:modes" "runtime:train" "runtime:data" "modes:runtime" "model:checkpoint"
    "checkpoint:peft" "checkpoint:data" "jinja:model" "state:setup" "setup:budget" "budget:record"
    "verdict:setup" "predictor:data" "predictor:model" "model:comm" "comm:layers" "comm:plan" "report:record" "options:foreign"
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
  set(text "")
  foreach(other IN LISTS rooms)
    if(other STREQUAL room OR NOT header_${other})
      continue()
    endif()
    if(other IN_LIST direct_${room})
      math(EXPR allowed "${allowed} + 1")
      string(APPEND text "#include \"${header_${other}}\"\n")
    elseif(NOT other IN_LIST visible_${room})
      math(EXPR refused "${refused} + 1")
      string(APPEND text "#if __has_include(\"${header_${other}}\")\n"
                         "#error \"${room} can include ${header_${other}}\"\n#endif\n")
    endif()
  endforeach()
  preprocess(${room} "${text}")
  if(NOT status EQUAL 0)
    list(APPEND faults "${room} and its neighbours:\n${message}")
  endif()
endforeach()
# The compiler must be able to tell: what can be included is found.
foreach(room IN LISTS rooms)
  if(direct_${room} AND NOT told)
    list(GET direct_${room} 0 other)
    if(header_${other})
      preprocess(${room} "#if __has_include(\"${header_${other}}\")\n#error found\n#endif\n")
      if(NOT message MATCHES "error.*found")
        list(APPEND faults "the compiler does not find ${header_${other}} in ${room}:\n${message}")
      endif()
      set(told yes)
    endif()
  endif()
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
message(STATUS "${refused} planted includes refused, ${allowed} allowed ones found")
