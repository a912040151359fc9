# hearth_room(<name> [DIR <folder>] [INNER_ROOMS <subfolder>...] [DEPENDS <room>...]
#             [PRIVATE_LIBS <target>...] [OPTIMIZE] [SEPARATE] [EXECUTABLE <program>]
#             [CUDA] [ONLY <file>] [LEAVE_OUT <file or subfolder>...])
#
# A room is a folder and a target hearth_<name>. Its headers are included as "<name>/file.h", and
# only by rooms that name it in DEPENDS, directly or through another room: the one public include
# directory of the target is rooms/<name> in the build tree, which holds nothing but <name>, a link
# to the folder. A room above is therefore not there to be included.
#
# DIR           folder with the sources; src/<name> unless given
# INNER_ROOMS   subfolders that are rooms of their own: neither their sources nor headers belong here
# PRIVATE_LIBS  libraries that the sources use and the headers must not
# OPTIMIZE      a room of hot loops: -O3 in optimized builds, -O2 in instrumented ones; no errno of
#               roots and no floating-point traps, which would keep loops from being vectorised and
#               change no result
# SEPARATE      never several sources in one compilation (the asan preset does that elsewhere)
# CUDA          also compiles *.cu
# ONLY          compiles this source alone: a null twin, beside the real file
# LEAVE_OUT     compiles all but these files and subfolders, which are regular expressions
# EXECUTABLE    a program of that name besides the library, from main.cpp of the folder
#
# A folder without sources (yet) becomes a target that only passes on headers and dependencies.
function(hearth_room name)
  cmake_parse_arguments(PARSE_ARGV 1 room "OPTIMIZE;SEPARATE;CUDA" "DIR;EXECUTABLE;ONLY"
                        "LEAVE_OUT;INNER_ROOMS;DEPENDS;PRIVATE_LIBS")
  if(room_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "hearth_room(${name}): unknown arguments ${room_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT room_DIR)
    set(room_DIR "src/${name}")
  endif()
  set(folder "${PROJECT_SOURCE_DIR}/${room_DIR}")

  set(patterns "${folder}/*.cpp")
  if(room_ONLY)
    set(patterns "${folder}/${room_ONLY}")
  endif()
  if(room_CUDA)
    list(APPEND patterns "${folder}/*.cu")
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns})
  foreach(left_out IN LISTS room_LEAVE_OUT)
    list(FILTER sources EXCLUDE REGEX "^${folder}/${left_out}(/|$)")
  endforeach()
  foreach(inner IN LISTS room_INNER_ROOMS)
    list(FILTER sources EXCLUDE REGEX "^${folder}/${inner}/")
  endforeach()

  hearth_link_headers(${name} "${folder}" "${room_INNER_ROOMS}")

  set(target hearth_${name})
  set(program_source "")
  if(room_EXECUTABLE)
    list(FILTER sources EXCLUDE REGEX "^${folder}/main[.]cpp$")
    file(GLOB program_source CONFIGURE_DEPENDS "${folder}/main.cpp")
  endif()
  if(sources)
    add_library(${target} STATIC ${sources})
    set(visibility PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(visibility INTERFACE)
  endif()

  target_include_directories(${target} ${visibility} "${PROJECT_BINARY_DIR}/rooms/${name}")
  list(TRANSFORM room_DEPENDS PREPEND hearth_ OUTPUT_VARIABLE depends)
  target_link_libraries(${target} ${visibility} ${depends})
  if(sources)
    target_link_libraries(${target} PRIVATE ${room_PRIVATE_LIBS})
    if(room_OPTIMIZE)
      target_compile_options(${target} PRIVATE -fno-math-errno -fno-trapping-math
                             $<$<CONFIG:Release,RelWithDebInfo>:-O3>)
      if(HEARTH_SANITIZE OR HEARTH_COVERAGE)
        target_compile_options(${target} PRIVATE -O2)  # or their tests take ten minutes
      endif()
    elseif(HEARTH_FUZZ)
      # libFuzzer's counters, which no outside input moves in a kernel.
      target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
  endif()
  if(room_SEPARATE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  endif()
  if(program_source)
    add_executable(${room_EXECUTABLE} ${program_source})
    target_link_libraries(${room_EXECUTABLE} PRIVATE ${target})
  endif()

  # tests/rooms checks these walls.
  set_property(GLOBAL APPEND PROPERTY HEARTH_ROOMS ${name})
  set_property(GLOBAL PROPERTY HEARTH_ROOM_TARGET_${name} ${target})
  set_property(GLOBAL PROPERTY HEARTH_ROOM_DIR_${name} "${folder}")
  set_property(GLOBAL PROPERTY HEARTH_ROOM_INNER_${name} "${room_INNER_ROOMS}")
  set_property(GLOBAL PROPERTY HEARTH_ROOM_DEPENDS_${name} "${room_DEPENDS}")
endfunction()

# Fills rooms/<name>: one link to the folder, or, where other rooms live inside it, a folder with
# one link an entry that leaves those out.
function(hearth_link_headers name folder inner_rooms)
  set(link "${PROJECT_BINARY_DIR}/rooms/${name}/${name}")
  if(inner_rooms)
    file(REMOVE_RECURSE "${link}")
    file(MAKE_DIRECTORY "${link}")
    file(GLOB entries CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE "${folder}" "${folder}/*")
    list(REMOVE_ITEM entries ${inner_rooms})
    foreach(entry IN LISTS entries)
      file(CREATE_LINK "${folder}/${entry}" "${link}/${entry}" SYMBOLIC)
    endforeach()
  else()
    file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/rooms/${name}")
    file(CREATE_LINK "${folder}" "${link}" SYMBOLIC)
  endif()
endfunction()
