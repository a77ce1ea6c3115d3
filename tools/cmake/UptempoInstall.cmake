# Libraries of the package `uptempo`.
#
#   uptempo_library(<name> HEADERS <file>... [DETAIL_HEADERS <file>...] SOURCES <file>...)
#       Adds the static library uptempo_<name>, with the name uptempo::<name> in the tree and for
#       consumers. HEADERS are its public headers. DETAIL_HEADERS are private headers that public
#       ones include. Only these are installed, in include/uptempo/, with the names that they have
#       in UPTEMPO_INCLUDE_DIR. The target property UPTEMPO_HEADERS lists the names of HEADERS, such
#       as uptempo/dispatch/queue.hpp. Link dependencies with target_link_libraries as usual, and
#       add a new external one to uptempoConfig.cmake.in and uptempo.pc.in.
#
#   uptempo_install_package()
#       Installs exports, configuration files and uptempo.pc. Call it once, at the end of the top
#       level.
include_guard(GLOBAL)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(UPTEMPO_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/uptempo)
set(UPTEMPO_CMAKE_HELPERS ${CMAKE_CURRENT_LIST_DIR})

function(uptempo_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;DETAIL_HEADERS;SOURCES")
  set(target uptempo_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(uptempo::${name} ALIAS ${target})
  uptempo_target(${target})
  # Headers of engine/ are in uptempo/ itself, others in a folder of it.
  file(RELATIVE_PATH place ${UPTEMPO_ROOT_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "^engine" "" place ${place})
  cmake_path(SET place NORMALIZE uptempo/${place}/)
  list(TRANSFORM arg_HEADERS PREPEND ${place} OUTPUT_VARIABLE headers)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} UPTEMPO_HEADERS "${headers}")
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${UPTEMPO_INCLUDE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(UPTEMPO_INSTALL)
    install(TARGETS ${target} EXPORT uptempoTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    foreach(header IN LISTS arg_HEADERS arg_DETAIL_HEADERS)
      get_filename_component(folder ${place}${header} DIRECTORY)
      install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
    endforeach()
  endif()
endfunction()

function(uptempo_install_package)
  install(EXPORT uptempoTargets NAMESPACE uptempo:: DESTINATION ${UPTEMPO_PACKAGE_DIR})
  configure_package_config_file(${UPTEMPO_CMAKE_HELPERS}/uptempoConfig.cmake.in ${CMAKE_BINARY_DIR}/uptempoConfig.cmake
    INSTALL_DESTINATION ${UPTEMPO_PACKAGE_DIR})
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/uptempoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/uptempoConfig.cmake ${CMAKE_BINARY_DIR}/uptempoConfigVersion.cmake
                ${UPTEMPO_CMAKE_HELPERS}/UptempoHsa.cmake DESTINATION ${UPTEMPO_PACKAGE_DIR})
  file(RELATIVE_PATH UPTEMPO_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  configure_file(${UPTEMPO_CMAKE_HELPERS}/uptempo.pc.in ${CMAKE_BINARY_DIR}/uptempo.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/uptempo.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
