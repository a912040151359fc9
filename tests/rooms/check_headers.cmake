cmake_minimum_required(VERSION 3.25)

# Finds sources whose declarations have no home of their name, and classes that are spread over more
# than three sources. A source x.cpp includes x.h, which is beside it, unless it
#   * is a main.cpp,
#   * is no_x.cpp, the null twin of x.cpp beside it,
#   * is a further source of a class: it defines members of a class that a header of another source
#     declares, and includes this header,
#   * belongs to a family: sources that do the same kind of thing, with one header that
#     lists them all.
# Kernels (*.cu) are left out: several of them share a header.

# The families: the sources, the header that they include, and how the header names a source.
set(families
  "^cpu_kernels/([a-z_0-9]+)\\.cpp$" cpu_kernels/cpu_op_set.h "void add_\\1("
  "^cpu_kernels/reference/([a-z_0-9]+)\\.cpp$" cpu_kernels/reference/reference_op_set.h
      "void add_\\1("
  "^gpu_kernels/ops/([a-z_0-9]+)\\.cpp$" gpu_kernels/ops/gpu_op_set.h "void add_\\1("
  # One source per instruction set, with the flags of that set.
  "^cpu_kernels/micro_kernel_avx(2|512)\\.cpp$" cpu_kernels/micro_kernel.h "kAvx\\1Kernel"
  "^cpu_kernels/micro_kernel_(avx512_bf16)\\.cpp$" cpu_kernels/micro_kernel.h kAvx512Bf16Kernel
  # The entries of the lists of libraries. Each has a null twin, so callers see the list alone.
  "^gpu_kernels/libraries/(cublaslt)/cublaslt\\.cpp$" gpu_kernels/libraries/product_libraries.h
      "& \\1_library("
  "^gpu_kernels/libraries/(cudnn)/cudnn\\.cpp$" gpu_kernels/libraries/attention_libraries.h
      "& \\1_library("
  "^gpu_kernels/libraries/(cutlass)/cutlass\\.cpp$" gpu_kernels/libraries/grouped_libraries.h
      "& \\1_library("
  # A room of its own below `device`, whose header it implements.
  "^src/device/cuda/(cuda)_runtime\\.cpp$" src/device/cuda_runtime.h "\\1_calls("
  "^src/layers/([a-z]+)(_part)?\\.cpp$" src/layers/kinds.h "Body& \\1_body("
  "^src/layers/((send|return)_[a-z]+)\\.cpp$" src/layers/kinds.h "Body& \\1_body("
  "^src/model/families/([a-z_0-9]+)\\.cpp$" src/model/families/families.h "Family& \\1_family("
  "^src/jinja/filters_([a-z]+)\\.cpp$" src/jinja/filters.h " \\1_filters("
  "^tools/options/([a-z]+)\\.cpp$" tools/options/groups.h "void add_\\1("
  "^tools/foreign/(keys_of_[a-z]+)\\.cpp$" tools/foreign/key_tables.h " foreign_\\1("
  "^tools/commands/cmd_([a-z]+)\\.cpp$" tools/commands/commands.h " run_\\1("
  "^tools/commands/cmd_(plan)\\.cpp$" tools/commands/commands.h " run_\\1_command(")

# Sets `classes` to the classes whose members a source defines: the last name before the first
# bracket of a line that begins a definition.
function(find_member_classes source)
  set(definition "^[A-Za-z][^(={]*::(~?[A-Za-z_0-9]+|operator[^A-Za-z0-9_]+)\\(")
  file(STRINGS "${source}" lines REGEX "${definition}")
  set(found "")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "::(~?[A-Za-z_0-9]+|operator[^A-Za-z0-9_]+)\\(.*" "" line "${line}")
    string(REGEX REPLACE ".*[^A-Za-z0-9_]" "" class "${line}")
    list(APPEND found "${class}")
  endforeach()
  list(REMOVE_DUPLICATES found)
  set(classes "${found}" PARENT_SCOPE)
endfunction()

# Sets `headers` to the headers of the tree that a source includes, by their paths in the tree.
function(find_headers source)
  set(found "")
  file(STRINGS "${source}" lines REGEX "^#include \"")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^#include \"([^\"]*)\".*" "\\1" include "${line}")
    get_filename_component(name "${include}" NAME)
    foreach(header IN LISTS headers_named_${name})
      if("/${header}" MATCHES "/${include}$")
        list(APPEND found "${header}")
      endif()
    endforeach()
  endforeach()
  set(headers "${found}" PARENT_SCOPE)
endfunction()

# Sets `is_listed` if the source belongs to a family whose header it includes and is listed in.
function(find_family root name headers)
  set(rest "${families}")
  set(is_listed OFF PARENT_SCOPE)
  while(rest)
    list(POP_FRONT rest pattern header declaration)
    if(name MATCHES "${pattern}" AND header IN_LIST headers)
      string(REGEX REPLACE "${pattern}" "${declaration}" declaration "${name}")
      file(READ "${root}/${header}" text)
      string(FIND "${text}" "${declaration}" at)
      if(NOT at EQUAL -1)
        set(is_listed ON PARENT_SCOPE)
      endif()
    endif()
  endwhile()
endfunction()

# Sets `faults` to what is wrong with the sources below `root`, and `count` to their number.
function(check_tree root)
  set(found "")
  set(spread "")  # HEADER:CLASS of members; their sources are in sources_of_HEADER:CLASS
  file(GLOB_RECURSE all RELATIVE "${root}" "${root}/src/*.h" "${root}/tools/*.h"
       "${root}/cpu_kernels/*.h" "${root}/gpu_kernels/*.h" "${root}/predictor/*.h")
  foreach(header IN LISTS all)
    get_filename_component(name "${header}" NAME)
    list(APPEND headers_named_${name} "${header}")
    file(STRINGS "${root}/${header}" lines REGEX "^(class|struct) +[A-Za-z_0-9]+( [^;]*)?$")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^(class|struct) +([A-Za-z_0-9]+).*" "\\2" class "${line}")
      list(APPEND headers_of_${class} "${header}")
    endforeach()
  endforeach()

  file(GLOB_RECURSE all RELATIVE "${root}" "${root}/src/*.cpp" "${root}/tools/*.cpp"
       "${root}/cpu_kernels/*.cpp" "${root}/gpu_kernels/*.cpp"
       "${root}/predictor/*.cpp")
  list(LENGTH all number)
  foreach(name IN LISTS all)
    get_filename_component(folder "${name}" DIRECTORY)
    get_filename_component(base "${name}" NAME_WE)
    find_headers("${root}/${name}")
    find_member_classes("${root}/${name}")
    set(is_further OFF)
    foreach(class IN LISTS classes)
      foreach(header IN LISTS headers_of_${class})
        if(header IN_LIST headers)
          set(is_further ON)
        endif()
        list(LENGTH headers_of_${class} homes)
        if(header IN_LIST headers OR homes EQUAL 1)
          list(APPEND spread "${header}:${class}")
          list(APPEND "sources_of_${header}:${class}" "${base}")
        endif()
      endforeach()
    endforeach()
    find_family("${root}" "${name}" "${headers}")

    set(twin "")
    if(base MATCHES "^no_(.*)$")
      set(twin "${folder}/${CMAKE_MATCH_1}.cpp")
    endif()
    if(base STREQUAL "main" OR is_further OR is_listed OR (twin AND EXISTS "${root}/${twin}"))
      continue()
    endif()
    if(NOT EXISTS "${root}/${folder}/${base}.h")
      list(APPEND found "${name}: has no header ${base}.h")
    elseif(NOT "${folder}/${base}.h" IN_LIST headers)
      list(APPEND found "${name}: does not include ${base}.h")
    endif()
  endforeach()

  list(REMOVE_DUPLICATES spread)
  foreach(class IN LISTS spread)
    list(LENGTH "sources_of_${class}" sources)
    if(sources GREATER 3)
      list(JOIN "sources_of_${class}" ", " names)
      string(REPLACE ":" ": class " class "${class}")
      list(APPEND found "${class} is spread over ${sources} sources: ${names}")
    endif()
  endforeach()
  set(faults "${found}" PARENT_SCOPE)
  set(count ${number} PARENT_SCOPE)
endfunction()

# A tree with faults, and with one source of each kind that is right.
set(tree "${SCRATCH}/planted_headers")
file(REMOVE_RECURSE "${tree}")
function(plant name)
  string(JOIN "\n" text ${ARGN})
  file(WRITE "${tree}/${name}" "${text}\n")
endfunction()
set(member "#include \"room/thing.h\"" "" "std::vector<int> Thing::values() const {" "}")
plant(src/room/thing.h "class Thing\;" "class Thing {" "}\;")
foreach(base IN ITEMS thing thing_a thing_b thing_c)  # one too many
  plant(src/room/${base}.cpp ${member})
endforeach()
plant(src/room/three.h "struct Three final : Base {" "}\;")
foreach(base IN ITEMS three three_a three_b)
  plant(src/room/${base}.cpp "#include \"room/three.h\"" "Three::~Three() = default\;")
endforeach()
plant(src/room/lonely.cpp "#include \"room/three.h\"" "int lonely() {"
      "  return Three::size(\;" "static const int kSize = Three::size()\;")
plant(src/room/local.cpp "#include \"room/three.h\"" "int Hidden::size() {")
plant(src/room/apart.h "int apart()\;")
plant(src/room/apart.cpp "#include \"room/three.h\"" "int apart() {")
plant(src/room/no_thing.cpp "int none() {")
plant(src/room/no_other.cpp "int none() {")
plant(tools/main.cpp "int main() {")
plant(cpu_kernels/cpu_op_set.h "void add_linear(OpTable& ops)\;" "void add_rope(OpTable& ops)\;")
plant(cpu_kernels/linear.cpp "#include \"cpu_kernels/cpu_op_set.h\"")
plant(cpu_kernels/product.cpp "#include \"cpu_kernels/cpu_op_set.h\"")
plant(cpu_kernels/rope.cpp "int add_rope() {")
check_tree("${tree}")
set(expected
    "cpu_kernels/product.cpp: has no header product.h" "cpu_kernels/rope.cpp: has no header rope.h"
    "src/room/apart.cpp: does not include apart.h" "src/room/local.cpp: has no header local.h"
    "src/room/lonely.cpp: has no header lonely.h" "src/room/no_other.cpp: has no header no_other.h"
    "src/room/thing.h: class Thing is spread over 4 sources: thing, thing_a, thing_b, thing_c")
if(NOT faults STREQUAL expected OR NOT count EQUAL 16)
  list(JOIN faults "\n  " faults)
  message(SEND_ERROR "of ${count} planted sources:\n  ${faults}")
endif()
file(REMOVE_RECURSE "${tree}")

check_tree("${ROOT}")
if(count LESS 100)
  message(SEND_ERROR "only ${count} sources were found")
endif()
foreach(fault IN LISTS faults)
  message(SEND_ERROR "${fault}")
endforeach()
set(rest "${families}")
while(rest)
  list(POP_FRONT rest pattern header declaration)
  if(NOT EXISTS "${ROOT}/${header}")
    message(SEND_ERROR "${header}, the header of a family, does not exist")
  endif()
endwhile()
message(STATUS "${count} sources have a header of their name, or a reason to have none")
