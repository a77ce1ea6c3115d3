# The Debian packages libuptempo0, libuptempo-dev and uptempo-tools, made by CPack from the
# installation's components. The preset `packages` has their options:
#   cmake --preset packages && cmake --build --preset packages
# Without the shared library there is no libuptempo0. Needs dpkg-dev and file.
set(UPTEMPO_PACKAGES_CONTACT "The Uptempo authors <authors@uptempo.invalid>" CACHE STRING "Maintainer of the Debian packages")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT ${UPTEMPO_PACKAGES_CONTACT})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_COMPONENTS_ALL libuptempo-dev)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian_files.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian_scripts.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SOURCE uptempo)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

# uptempo_deb(<package> <section> <line>...): the first line of the description is its synopsis.
macro(uptempo_deb package section)
  string(TOUPPER ${package} component)
  set(CPACK_DEBIAN_${component}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${component}_PACKAGE_SECTION ${section})
  set(lines ${ARGN})
  list(JOIN lines "\n" CPACK_COMPONENT_${component}_DESCRIPTION)
endmacro()

set(about "Uptempo writes AQL packets straight into HSA queues, with the cheapest"
  "barrier bits and fence scopes that are still correct. It is for runtimes,"
  "JIT launchers and solvers that launch many short kernels.")
uptempo_deb(libuptempo-dev libdevel "low-overhead dispatch of AMD GPU kernels - development files" ${about}
  "." "This package has the headers for C++ and C, the static libraries, files for"
  "CMake and pkg-config, and the manual.")
set(dependencies libhsa-runtime-dev libfmt-dev libzstd-dev)
set(CPACK_DEBIAN_LIBUPTEMPO-DEV_PACKAGE_SUGGESTS "libamdhip64-dev, uptempo-tools")
# uptempo_add_kernels needs the packages that have this build's device compiler.
file(REAL_PATH ${UPTEMPO_DEVICE_CLANG} clang)
get_filename_component(folder ${clang} DIRECTORY)
execute_process(COMMAND dpkg-query --search ${clang} ${folder}/ld.lld ${UPTEMPO_DEVICE_LIBS}/ockl.bc
                OUTPUT_VARIABLE owners ERROR_QUIET)
string(REGEX MATCHALL "(^|\n)[^:\n]+" owners "${owners}")
list(JOIN owners "," owners)
string(REPLACE "\n" " " CPACK_DEBIAN_LIBUPTEMPO-DEV_PACKAGE_RECOMMENDS "${owners}")

if(TARGET uptempo_shared)
  list(APPEND CPACK_COMPONENTS_ALL libuptempo0)
  uptempo_deb(libuptempo0 libs "low-overhead dispatch of AMD GPU kernels - shared library" ${about}
    "." "This package has the shared library. Its interface is for C, and for languages"
    "that call C.")
  list(PREPEND dependencies "libuptempo0 (= ${PROJECT_VERSION})")
  # A program may use every function of the version that it was linked with.
  set(shlibs ${CMAKE_BINARY_DIR}/debian/shlibs)
  file(WRITE ${shlibs} "libuptempo 0 libuptempo0 (>= ${PROJECT_VERSION})\n")
  file(CHMOD ${shlibs} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  set(CPACK_DEBIAN_LIBUPTEMPO0_PACKAGE_CONTROL_EXTRA ${shlibs})
endif()
list(JOIN dependencies ", " CPACK_DEBIAN_LIBUPTEMPO-DEV_PACKAGE_DEPENDS)

if(UPTEMPO_BUILD_TOOLS)
  list(APPEND CPACK_COMPONENTS_ALL uptempo-tools)
  uptempo_deb(uptempo-tools devel "virtual AMD GPU and tools for HSA and HIP programs"
    "uptempo-vgpu runs unmodified HSA and HIP programs without an AMD GPU. It"
    "emulates the kernel driver, the command processor and the gfx9 instruction"
    "set, and finds missing fences, data races and wrong accesses."
    "." "Other tools launch the graphs of HIP programs, find superfluous fences, dump"
    "AQL packets, and ask a GPU what Uptempo assumes about it. Those that watch HIP"
    "programs need HIP, so the package depends on it.")
  set(CPACK_DEBIAN_UPTEMPO-TOOLS_PACKAGE_RECOMMENDS "libdw1 | libdw1t64")  # source lines in reports
endif()
include(CPack)
