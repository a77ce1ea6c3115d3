# Corrects the imported targets of the packages hsa-runtime64 and hsakmt. Installed with the package uptempo, whose configuration needs it too.
#
# Both packages record an include directory, but not always the one that serves `#include <hsa/hsa.h>`: Debian's hsa-runtime64 names
# .../include/hsa, and a -dev package may ship no such directory at all, which CMake refuses. So: directories that do not exist
# are dropped, and the one that holds the header is added unless the compiler searches it anyway (-isystem /usr/include would
# break the order of include_next).
include_guard(GLOBAL)

function(uptempo_correct_includes target header)
  get_target_property(listed ${target} INTERFACE_INCLUDE_DIRECTORIES)
  set(directories "")
  set(found FALSE)
  foreach(directory IN LISTS listed)
    if(directory AND EXISTS "${directory}")
      list(APPEND directories "${directory}")
      if(EXISTS "${directory}/${header}")
        set(found TRUE)
      endif()
    endif()
  endforeach()
  if(NOT found)
    string(MAKE_C_IDENTIFIER "UPTEMPO_${header}_DIR" variable)
    find_path(${variable} NAMES ${header} PATHS /opt/rocm/include)
    mark_as_advanced(${variable})
    if(NOT ${variable})
      message(FATAL_ERROR "uptempo: ${target} is installed but its header <${header}> is not; install its development package")
    endif()
    if(NOT "${${variable}}" IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
      list(APPEND directories "${${variable}}")
    endif()
  endif()
  list(REMOVE_ITEM directories ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
  set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${directories}")
endfunction()
