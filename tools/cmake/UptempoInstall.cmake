# Libraries of the package `uptempo`.
#
#   uptempo_library(<name> SOURCES file... [INTERFACE])
#       A static library uptempo_<name>, known as uptempo::<name> in the tree and to consumers. Its headers, beside the sources in the
#       calling directory and below, are installed under include/uptempo/ at the same place, so that `#include "engine/dispatch/batch_submitter.hpp"`
#       means the same file here and there. Link its dependencies with target_link_libraries as usual; a new external one is
#       also to be named in uptempoConfig.cmake.in.
#
#   uptempo_install_package()        exports and configuration files; called once, at the end of the top level
include_guard(GLOBAL)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(UPTEMPO_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/uptempo)
set(UPTEMPO_CMAKE_HELPERS ${CMAKE_CURRENT_LIST_DIR})

function(uptempo_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES")
  set(target uptempo_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(uptempo::${name} ALIAS ${target})
  uptempo_target(${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${uptempo_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/uptempo>)
  if(UPTEMPO_INSTALL)
    install(TARGETS ${target} EXPORT uptempoTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    file(RELATIVE_PATH place ${uptempo_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/uptempo/${place}
            FILES_MATCHING PATTERN "*.hpp")
  endif()
endfunction()

function(uptempo_install_package)
  install(EXPORT uptempoTargets NAMESPACE uptempo:: DESTINATION ${UPTEMPO_PACKAGE_DIR})
  configure_package_config_file(${UPTEMPO_CMAKE_HELPERS}/uptempoConfig.cmake.in ${CMAKE_BINARY_DIR}/uptempoConfig.cmake
    INSTALL_DESTINATION ${UPTEMPO_PACKAGE_DIR})
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/uptempoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/uptempoConfig.cmake ${CMAKE_BINARY_DIR}/uptempoConfigVersion.cmake
                ${UPTEMPO_CMAKE_HELPERS}/UptempoHsa.cmake DESTINATION ${UPTEMPO_PACKAGE_DIR})
endfunction()
