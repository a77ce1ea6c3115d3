# Corrects the imported targets of the packages hsa-runtime64 and hsakmt. It is installed with the
# package uptempo, whose configuration needs it too.
#
# Both packages record an include directory, but not always the one for `#include <hsa/hsa.h>`.
# Debian's hsa-runtime64 names .../include/hsa. A -dev package may lack the recorded directory,
# which CMake rejects. This function therefore drops directories that do not exist. It adds the
# directory of the header unless the compiler searches that one anyway, because -isystem
# /usr/include would break the order of include_next.
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
      message(FATAL_ERROR "uptempo: ${target} is installed but its header <${header}> is not. Install its development package.")
    endif()
    if(NOT "${${variable}}" IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
      list(APPEND directories "${${variable}}")
    endif()
  endif()
  list(REMOVE_ITEM directories ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
  set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${directories}")
endfunction()
