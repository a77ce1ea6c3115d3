#[=======================================================================[
UptempoKernels: compiles device sources to code objects and embeds them in a host target.

  uptempo_add_kernels(<target> SOURCES a.cl [b.cl ...]
                      [TARGETS gfx90a gfx908:xnack- ...]   default: GPU_TARGETS
                      [NAMESPACE my::kernels]              default: kernels
                      [OPTIONS -DX=1 ...])                 for the device compiler

The function compiles each OpenCL C source once per target and bundles the code objects into one
clang offload bundle, which becomes read-only data of <target>. For a.cl it generates the header
"kernels/a.hpp", visible to <target> and, unless that is an executable, to targets that link it:

  namespace my::kernels { inline namespace <project>_<target> { std::span<const std::byte> a(); } }

Callers pass my::kernels::a() to uptempo::Program. The bytes live as long as the program. A generated
C++ file includes the bundle, so neither Python nor an assembler language is needed. The target
property UPTEMPO_KERNEL_HEADERS lists the generated headers, for install().

Files with the same name, such as a.cl and other/a.cl:
  * In one target, CMake refuses them, in one call or in several.
  * In several targets of one program, the inline namespace separates them. A target with an a.cl
    gets its own from kernels::a().
  * A target without an a.cl that links two targets with one sees both: the compiler refuses
    kernels::a() as ambiguous and lists them. kernels::<project>_<target>::a() selects one.
  * A library should call kernels::a() in its source files, not in a public header: there, a user's
    own a.cl would hide the library's.

printf: Uptempo cannot print from a kernel. A call that remains after optimization fails the build,
with its place in the source (clang 15 and 16) or the kernel's name (clang 19 and newer). Calls in
comments, in disabled code and in functions that no kernel calls are accepted.
OPTIONS "-Dprintf(...)=" removes all calls.

Device compiler, searched once at configure time (cache variables, all may be set by hand):
  UPTEMPO_DEVICE_CLANG        /opt/rocm/llvm/bin/clang, else the distribution's clang-15 or newer
  UPTEMPO_OFFLOAD_BUNDLER     clang-offload-bundler beside that compiler
  UPTEMPO_DEVICE_LIBS         the directory that holds ockl.bc (rocm-device-libs)
It links with lld. CMake, not the build, reports a missing tool, with the Debian or Ubuntu package
that has it, and a target that the compiler does not support.
#]=======================================================================]

include_guard(GLOBAL)

set(_UPTEMPO_DEFAULT_GPU_TARGETS gfx90a gfx908 gfx906 gfx900)
if(NOT DEFINED GPU_TARGETS)
  set(GPU_TARGETS "${_UPTEMPO_DEFAULT_GPU_TARGETS}"
      CACHE STRING "GPU instruction sets that kernels are compiled for (a semicolon-separated list of LLVM target IDs)")
endif()
# For every directory that calls the function, not only the one that included this file first.
set_property(GLOBAL PROPERTY UPTEMPO_KERNELS_DIRECTORY "${CMAKE_CURRENT_LIST_DIR}")

function(_uptempo_find_device_compiler)
  if(_UPTEMPO_DEVICE_COMPILER_CHECKED)
    return()
  endif()

  set(rocm_roots /opt/rocm)
  if(DEFINED ENV{ROCM_PATH})
    list(PREPEND rocm_roots "$ENV{ROCM_PATH}")
  endif()
  set(rocm_bin "")
  foreach(root IN LISTS rocm_roots)
    list(APPEND rocm_bin "${root}/llvm/bin" "${root}/lib/llvm/bin")
  endforeach()

  find_program(UPTEMPO_DEVICE_CLANG NAMES clang PATHS ${rocm_bin} NO_DEFAULT_PATH DOC "Compiler for device code")
  find_program(UPTEMPO_DEVICE_CLANG NAMES clang-15 clang-16 clang-17 clang-18 clang-19 clang-20 clang-21 clang
               DOC "Compiler for device code")
  if(NOT UPTEMPO_DEVICE_CLANG)
    message(FATAL_ERROR "uptempo_add_kernels: no device compiler: neither ROCm's clang (${rocm_bin}) nor clang-15 or newer "
                        "was found. Install clang-15, or set UPTEMPO_DEVICE_CLANG.")
  endif()

  execute_process(COMMAND "${UPTEMPO_DEVICE_CLANG}" -dumpversion OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE failed ERROR_VARIABLE why)
  if(failed)
    message(FATAL_ERROR "uptempo_add_kernels: ${UPTEMPO_DEVICE_CLANG} does not run: ${why}")
  endif()
  if(version VERSION_LESS 15)
    message(FATAL_ERROR "uptempo_add_kernels: ${UPTEMPO_DEVICE_CLANG} is version ${version}; the device libraries need "
                        "clang 15 or newer. Install clang-15, or set UPTEMPO_DEVICE_CLANG.")
  endif()

  # Beside the compiler in its real directory, so that the bundler has the compiler's version.
  file(REAL_PATH "${UPTEMPO_DEVICE_CLANG}" real_clang)
  get_filename_component(clang_dir "${real_clang}" DIRECTORY)
  string(REGEX MATCH "^[0-9]+" major "${version}")
  find_program(UPTEMPO_OFFLOAD_BUNDLER NAMES clang-offload-bundler clang-offload-bundler-${major} HINTS "${clang_dir}"
               DOC "Bundles code objects of several targets")
  if(NOT UPTEMPO_OFFLOAD_BUNDLER)
    message(FATAL_ERROR "uptempo_add_kernels: no clang-offload-bundler beside ${real_clang}. Install "
                        "clang-tools-${major}, or set UPTEMPO_OFFLOAD_BUNDLER.")
  endif()

  get_filename_component(clang_root "${clang_dir}" DIRECTORY)
  find_path(UPTEMPO_DEVICE_LIBS NAMES ockl.bc
            PATHS "${clang_root}/../amdgcn/bitcode" "${clang_root}/lib/clang/${major}/lib/amdgcn/bitcode"
                  "${clang_root}/lib/clang/${major}/amdgcn/bitcode" /opt/rocm/amdgcn/bitcode
                  /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/amdgcn/bitcode /usr/lib/x86_64-linux-gnu/amdgcn/bitcode
                  /usr/amdgcn/bitcode
            NO_DEFAULT_PATH DOC "Directory of the ROCm device libraries (bitcode)")
  if(NOT UPTEMPO_DEVICE_LIBS)
    message(FATAL_ERROR "uptempo_add_kernels: the ROCm device libraries (ockl.bc) were not found. Install rocm-device-libs, or "
                        "set UPTEMPO_DEVICE_LIBS to the directory that holds them.")
  endif()

  message(STATUS "Device compiler: ${UPTEMPO_DEVICE_CLANG} ${version}, libraries ${UPTEMPO_DEVICE_LIBS}")
  set(_UPTEMPO_DEVICE_COMPILER_CHECKED TRUE CACHE INTERNAL "")
endfunction()

function(_uptempo_device_flags out target)
  get_property(directory GLOBAL PROPERTY UPTEMPO_KERNELS_DIRECTORY)
  # No -nogpulib: it would drop functions such as get_global_id. ROCr 4.5 and newer load code object
  # version 4. The compiler reads the header before and after its own. --no-undefined: otherwise the
  # linker would accept an undefined symbol under OPTIONS -fvisibility=default.
  set(${out} -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=${target} -O3 -mcode-object-version=4
      --rocm-device-lib-path=${UPTEMPO_DEVICE_LIBS} -Wl,--no-undefined
      -imacros "${directory}/uptempo_no_printf.h" -include "${directory}/uptempo_no_printf.h" PARENT_SCOPE)
endfunction()

# Compiles and links an empty kernel: the only check that covers compiler, device libraries and
# linker at once.
function(_uptempo_check_gpu_target target)
  string(MAKE_C_IDENTIFIER "_UPTEMPO_GPU_TARGET_OK_${UPTEMPO_DEVICE_CLANG}_${target}" known)
  if(${known})
    return()
  endif()
  set(probe "${CMAKE_BINARY_DIR}/CMakeFiles/uptempo_probe")
  file(WRITE "${probe}.cl" "kernel void probe(global uint* p) { p[get_global_id(0)] = 1; }\n")
  _uptempo_device_flags(flags ${target})
  execute_process(COMMAND "${UPTEMPO_DEVICE_CLANG}" ${flags} "${probe}.cl" -o "${probe}.co" RESULT_VARIABLE failed
                  ERROR_VARIABLE why OUTPUT_VARIABLE why)
  if(failed)
    string(STRIP "${why}" why)
    if(why MATCHES "ld\\.lld|linker")
      set(remedy "Install lld of the compiler's version.")
    else()
      set(remedy "Remove '${target}' from GPU_TARGETS, or use a compiler that supports it.")
    endif()
    message(FATAL_ERROR "uptempo_add_kernels: ${UPTEMPO_DEVICE_CLANG} cannot build for GPU target '${target}':\n${why}\n${remedy}")
  endif()
  set(${known} TRUE CACHE INTERNAL "")
endfunction()

# The inline namespace of a target's kernels. The project is part of it: targets of separately built
# libraries may share a name.
function(_uptempo_kernels_identity out target)
  get_target_property(identity ${target} UPTEMPO_KERNELS_IDENTITY)
  if(NOT identity)
    string(MAKE_C_IDENTIFIER "${PROJECT_NAME}_${target}" identity)
    get_property(owner GLOBAL PROPERTY UPTEMPO_KERNELS_OWNER_${identity})
    if(owner)
      message(FATAL_ERROR "uptempo_add_kernels(${target}): the kernels of the targets '${owner}' and "
                          "'${target}' would share the namespace ${identity}; rename one of the targets")
    endif()
    set_property(GLOBAL PROPERTY UPTEMPO_KERNELS_OWNER_${identity} "${target}")
    set_property(TARGET ${target} PROPERTY UPTEMPO_KERNELS_IDENTITY "${identity}")
  endif()
  set(${out} "${identity}" PARENT_SCOPE)
endfunction()

# Refuses a source if another source of the target already has its generated files and function.
function(_uptempo_claim_kernel_name target name source)
  string(TOLOWER "${name}" key)
  get_target_property(other ${target} UPTEMPO_KERNEL_SOURCE_${key})
  if(NOT other)
    set_property(TARGET ${target} PROPERTY UPTEMPO_KERNEL_SOURCE_${key} "${source}")
    return()
  endif()
  if(other STREQUAL source)
    message(FATAL_ERROR "uptempo_add_kernels(${target}): ${source} is named twice. To compile it a "
                        "second time with other OPTIONS, include it from a file of another name.")
  endif()
  get_filename_component(other_name "${other}" NAME_WE)
  if(NOT other_name STREQUAL name)
    message(FATAL_ERROR "uptempo_add_kernels(${target}): ${other} and ${source} would have headers whose "
                        "names differ only in case: kernels/${other_name}.hpp and kernels/${name}.hpp; "
                        "rename one of the files")
  endif()
  message(FATAL_ERROR "uptempo_add_kernels(${target}): ${other} and ${source} would both have the header "
                      "kernels/${name}.hpp and the function ${name}(); rename one of the files, or give it "
                      "to another target")
endfunction()

function(uptempo_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAMESPACE" "SOURCES;TARGETS;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "uptempo_add_kernels(${target}): unknown arguments '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT TARGET ${target})
    message(FATAL_ERROR "uptempo_add_kernels(${target}): there is no target '${target}'; add it first")
  endif()
  # The files are generated by rules of this directory, which another directory's target cannot use.
  get_target_property(directory ${target} BINARY_DIR)
  if(NOT directory STREQUAL CMAKE_CURRENT_BINARY_DIR)
    message(FATAL_ERROR "uptempo_add_kernels(${target}): the target belongs to another directory; call it "
                        "in the directory that adds the target")
  endif()
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "uptempo_add_kernels(${target}): SOURCES names no file")
  endif()
  if(NOT arg_TARGETS)
    set(arg_TARGETS ${GPU_TARGETS})
  endif()
  if(NOT arg_TARGETS)
    message(FATAL_ERROR "uptempo_add_kernels(${target}): GPU_TARGETS is empty; name at least one, for example gfx90a")
  endif()
  if(NOT arg_NAMESPACE)
    set(arg_NAMESPACE kernels)
  endif()

  _uptempo_find_device_compiler()
  foreach(gpu IN LISTS arg_TARGETS)
    _uptempo_check_gpu_target(${gpu})
  endforeach()

  _uptempo_kernels_identity(identity ${target})
  get_property(directory GLOBAL PROPERTY UPTEMPO_KERNELS_DIRECTORY)
  set(embed_script "${directory}/uptempo_embed.cmake")
  # In CMakeFiles, where no target can have a file with the folder's name.
  set(out "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.kernels")
  file(MAKE_DIRECTORY "${out}/include/kernels")
  set(include_scope PUBLIC)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set(include_scope PRIVATE)
  endif()

  foreach(source IN LISTS arg_SOURCES)
    get_filename_component(source "${source}" ABSOLUTE)
    if(NOT EXISTS "${source}")
      message(FATAL_ERROR "uptempo_add_kernels(${target}): ${source} does not exist")
    endif()
    get_filename_component(stem "${source}" NAME_WE)
    string(MAKE_C_IDENTIFIER "${stem}" name)
    if(NOT name STREQUAL stem)
      message(FATAL_ERROR "uptempo_add_kernels(${target}): '${stem}' cannot be a function's name; rename ${source}")
    endif()
    _uptempo_claim_kernel_name(${target} ${name} "${source}")

    set(objects "")
    # The bundle format requires a host entry in first place; it is empty.
    set(entries host-x86_64-unknown-linux)
    set(inputs --input=/dev/null)
    foreach(gpu IN LISTS arg_TARGETS)
      string(REPLACE ":" "_" gpu_file "${gpu}")
      set(object "${out}/${name}.${gpu_file}.co")
      _uptempo_device_flags(flags ${gpu})
      add_custom_command(
        OUTPUT "${object}"
        COMMAND "${UPTEMPO_DEVICE_CLANG}" ${flags} -Wall -Wextra -Werror ${arg_OPTIONS} -MD -MF "${object}.d" -MT "${object}"
                "${source}" -o "${object}"
        DEPENDS "${source}" "${directory}/uptempo_no_printf.h"
        DEPFILE "${object}.d"
        COMMENT "Compiling ${name}.cl for ${gpu}"
        VERBATIM)
      list(APPEND objects "${object}")
      list(APPEND entries hipv4-amdgcn-amd-amdhsa--${gpu})
      list(APPEND inputs "--input=${object}")
    endforeach()

    string(JOIN "," entries ${entries})
    set(bundle "${out}/${name}.bundle")
    add_custom_command(
      OUTPUT "${bundle}"
      COMMAND "${UPTEMPO_OFFLOAD_BUNDLER}" --type=o --bundle-align=4096 --targets=${entries} ${inputs} "--output=${bundle}"
      DEPENDS ${objects}
      COMMENT "Bundling ${name}"
      VERBATIM)

    set(embedded "${out}/${name}.cpp")
    set(header "${out}/include/kernels/${name}.hpp")
    add_custom_command(
      OUTPUT "${embedded}" "${header}"
      COMMAND "${CMAKE_COMMAND}" -D "BUNDLE=${bundle}" -D "SOURCE=${embedded}" -D "HEADER=${header}" -D "NAME=${name}"
              -D "NAMESPACE=${arg_NAMESPACE}" -D "IDENTITY=${identity}" -P "${embed_script}"
      DEPENDS "${embed_script}" "${bundle}"
      COMMENT "Embedding ${name}"
      VERBATIM)
    target_sources(${target} PRIVATE "${embedded}" "${header}")
    set_property(TARGET ${target} APPEND PROPERTY UPTEMPO_KERNEL_HEADERS "${header}")
    # .incbin hides the bundle from the dependency scanner.
    set_source_files_properties("${embedded}" PROPERTIES OBJECT_DEPENDS "${bundle}")
  endforeach()

  target_compile_definitions(${target} PRIVATE UPTEMPO_KERNELS_OF_${identity})
  target_include_directories(${target} ${include_scope} "$<BUILD_INTERFACE:${out}/include>")
endfunction()
