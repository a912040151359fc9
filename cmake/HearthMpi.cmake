# MPI, for ranks that are processes (src/comm/mpi_world.h): Open MPI or MPICH, built if found. Sets
# HEARTH_MPI_FOUND and the target hearth_mpi, or gives the reason in HEARTH_MPI_WHY_NOT.
set(HEARTH_MPI AUTO CACHE STRING "Ranks as processes of MPI: AUTO, ON or OFF")
set_property(CACHE HEARTH_MPI PROPERTY STRINGS AUTO ON OFF)

set(HEARTH_MPI_FOUND OFF)
set(HEARTH_MPI_WHY_NOT "")
if(NOT HEARTH_MPI MATCHES "^(AUTO|ON|TRUE|1)$")
  set(HEARTH_MPI_WHY_NOT "HEARTH_MPI is ${HEARTH_MPI}")
elseif(HEARTH_SANITIZE OR HEARTH_COVERAGE)
  set(HEARTH_MPI_WHY_NOT "instrumented builds have no MPI")  # its libraries are not instrumented
else()
  set(MPI_CXX_SKIP_MPICXX ON)  # the C interface alone
  find_package(MPI 3.1 QUIET COMPONENTS CXX)
  if(NOT MPI_CXX_FOUND)
    set(HEARTH_MPI_WHY_NOT "no MPI 3.1 was found")
  endif()
endif()

if(HEARTH_MPI_WHY_NOT STREQUAL "")
  set(HEARTH_MPI_FOUND ON)
  set(libraries ${MPI_CXX_LIBRARIES})
  list(FILTER libraries EXCLUDE REGEX "mpi_cxx|mpicxx|mpichcxx")  # the C++ bindings, which nobody uses
  add_library(hearth_mpi INTERFACE)
  target_include_directories(hearth_mpi SYSTEM INTERFACE ${MPI_CXX_INCLUDE_DIRS})
  target_compile_definitions(hearth_mpi INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_libraries(hearth_mpi INTERFACE ${libraries})
  message(STATUS "MPI ${MPI_CXX_VERSION}")
elseif(HEARTH_MPI STREQUAL "AUTO" OR HEARTH_MPI STREQUAL "OFF")
  message(STATUS "No ranks as processes: ${HEARTH_MPI_WHY_NOT}")
else()
  message(FATAL_ERROR "HEARTH_MPI is ON, but ${HEARTH_MPI_WHY_NOT}. scripts/setup --mpi installs Open "
                      "MPI; -DHEARTH_MPI=OFF builds without it.")
endif()
