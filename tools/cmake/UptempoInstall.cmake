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
#   uptempo_component(<name>)
#       Adds a component to the package: the targets of the export set uptempo_<name>, which
#       `find_package(uptempo COMPONENTS <name>)` provides. uptempo_library() calls it.
#
#   uptempo_pkg_config(<file> DESCRIPTION <text> [REQUIRES <module>...] [CFLAGS <option>...]
#                      [LIBS <option>...] [VARIABLES <name>=<value>...])
#       Installs <file>.pc.
#
#   uptempo_completions(<component> <prefix> <target>...)
#       Makes the scripts by which bash and zsh complete commands, with everything else, and installs
#       them below the prefix, which is empty or ends with a slash. The commands print them. Call it
#       once.
#
#   uptempo_install_package()
#       Installs exports, configuration files and pkg-config files. Call it once, at the end of the
#       top level.
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
    install(TARGETS ${target} EXPORT uptempo_${name} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    uptempo_component(${name})
    foreach(header IN LISTS arg_HEADERS arg_DETAIL_HEADERS)
      get_filename_component(folder ${place}${header} DIRECTORY)
      install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
    endforeach()
  endif()
endfunction()

function(uptempo_component name)
  set_property(GLOBAL APPEND PROPERTY UPTEMPO_COMPONENTS ${name})
  install(EXPORT uptempo_${name} NAMESPACE uptempo:: DESTINATION ${UPTEMPO_PACKAGE_DIR})
endfunction()

function(uptempo_pkg_config name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DESCRIPTION" "REQUIRES;CFLAGS;LIBS;VARIABLES")
  foreach(list REQUIRES CFLAGS LIBS)
    list(JOIN arg_${list} " " arg_${list})
  endforeach()
  list(JOIN arg_VARIABLES "\n" arg_VARIABLES)
  file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  configure_file(${UPTEMPO_CMAKE_HELPERS}/uptempo.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

function(uptempo_completions component prefix)
  set(bash bash-completion/completions)  # the folders where the shells look
  set(zsh zsh/site-functions)
  set(files "")
  foreach(command IN LISTS ARGN)
    get_target_property(name ${command} OUTPUT_NAME)
    foreach(shell bash zsh)
      set(file ${CMAKE_CURRENT_BINARY_DIR}/${shell}/${name})
      if(shell STREQUAL "zsh")
        set(file ${CMAKE_CURRENT_BINARY_DIR}/${shell}/_${name})
      endif()
      file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${shell})
      add_custom_command(OUTPUT ${file} COMMAND ${command} --completion ${shell} > ${file} DEPENDS ${command} VERBATIM)
      install(FILES ${file} DESTINATION ${prefix}${CMAKE_INSTALL_DATADIR}/${${shell}} COMPONENT ${component})
      list(APPEND files ${file})
    endforeach()
  endforeach()
  add_custom_target(uptempo_completions ALL DEPENDS ${files})
endfunction()

function(uptempo_install_package)
  get_property(UPTEMPO_COMPONENTS GLOBAL PROPERTY UPTEMPO_COMPONENTS)
  configure_package_config_file(${UPTEMPO_CMAKE_HELPERS}/uptempoConfig.cmake.in ${CMAKE_BINARY_DIR}/uptempoConfig.cmake
    INSTALL_DESTINATION ${UPTEMPO_PACKAGE_DIR})
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/uptempoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/uptempoConfig.cmake ${CMAKE_BINARY_DIR}/uptempoConfigVersion.cmake
                ${UPTEMPO_CMAKE_HELPERS}/UptempoHsa.cmake DESTINATION ${UPTEMPO_PACKAGE_DIR})
  # ROCr's folders, unless the compiler knows them: those of /opt/rocm.
  get_target_property(hsa_flags hsa-runtime64::hsa-runtime64 INTERFACE_INCLUDE_DIRECTORIES)
  list(TRANSFORM hsa_flags PREPEND -I)
  get_target_property(configurations hsa-runtime64::hsa-runtime64 IMPORTED_CONFIGURATIONS)
  list(GET configurations 0 configuration)
  get_target_property(hsa_library hsa-runtime64::hsa-runtime64 IMPORTED_LOCATION_${configuration})
  get_filename_component(hsa_folder ${hsa_library} DIRECTORY)
  set(hsa_libs -lhsa-runtime64)
  if(NOT hsa_folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    list(PREPEND hsa_libs -L${hsa_folder})
  endif()
  uptempo_pkg_config(uptempo-aql DESCRIPTION "AQL packets and rings" CFLAGS ${hsa_flags} LIBS -luptempo_aql ${hsa_libs})
  uptempo_pkg_config(uptempo DESCRIPTION "${PROJECT_DESCRIPTION}" REQUIRES uptempo-aql fmt libzstd
    LIBS -luptempo_engine -luptempo_kernels -lstdc++ -ldl -pthread)  # libstdc++: for programs in C
  if(shared IN_LIST UPTEMPO_COMPONENTS)
    uptempo_pkg_config(uptempo-shared DESCRIPTION "${PROJECT_DESCRIPTION}, the C interface" LIBS -luptempo)
  endif()
  uptempo_pkg_config(uptempo-topology DESCRIPTION "The kernel driver's view of a GPU" REQUIRES uptempo
    LIBS -luptempo_topology)
  if(hip IN_LIST UPTEMPO_COMPONENTS)
    uptempo_pkg_config(uptempo-hip DESCRIPTION "Kernels, streams and graphs of HIP programs" REQUIRES uptempo
      CFLAGS -D__HIP_PLATFORM_AMD__ LIBS -luptempo_hip -lamdhip64)
  endif()
  if(tools IN_LIST UPTEMPO_COMPONENTS)
    set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME uptempo-tools)
    uptempo_pkg_config(uptempo-tools DESCRIPTION "The virtual GPU and other commands"
      VARIABLES "vgpu=\${prefix}/${CMAKE_INSTALL_BINDIR}/uptempo-vgpu")
  endif()
endfunction()
