#[=======================================================================[
UptempoKernels: compiles device sources to code objects and embeds them in a host target.

  uptempo_add_kernels(<target> SOURCES a.cl [b.hip ...]
                      [TARGETS gfx90a gfx908:xnack- ...]   default: the cache variable GPU_TARGETS
                      [NAMESPACE my::kernels]              default: kernels
                      [OPTIONS -DX=1 ...])                 for the device compiler

The function compiles each source once per target: as HIP if its name ends in .hip, else as OpenCL
C. The code objects become one clang offload bundle in read-only data of <target>. For a.cl it
generates the header <uptempo/kernels/a.hpp>, visible to <target> and, unless that is an executable,
to targets that link it:

  namespace my::kernels { inline namespace <project>_<target> { std::span<const std::byte> a(); } }

Callers pass my::kernels::a() to uptempo::Program. The bytes live as long as the program. For C it
generates <uptempo/kernels/a.h> beside it, with const void* kernels_a(size_t* bytes). A generated
C++ file writes the bundle around the code objects, so no bundler is needed, and neither is Python
nor an assembler language. The target property UPTEMPO_KERNEL_HEADERS lists the generated headers,
for install().

  uptempo_gpu_targets(<variable>)

sets the variable to the target IDs that GPU_TARGETS stands for, for other compilers of device code
such as hipcc.

Files with the same name, such as a.cl and other/a.cl:
  * In one target, CMake refuses them, in one call or in several.
  * In several targets of one program, the inline namespace separates them. A target with an a.cl
    gets its own from kernels::a().
  * A target without an a.cl that links two targets with one sees both: the compiler refuses
    kernels::a() as ambiguous and lists them. kernels::<project>_<target>::a() selects one.
  * A library should call kernels::a() in its source files, not in a public header: there, a user's
    own a.cl would hide the library's.

Targets: TARGETS and GPU_TARGETS are lists of LLVM target IDs. Without a suffix such as :xnack-,
code runs with every setting of the feature. Three words stand for targets:
  all     those of _UPTEMPO_ALL_TARGETS below that the device compiler and its libraries know; the
          default of GPU_TARGETS
  native  the GPUs of this machine, as the kernel driver lists them; without one, gfx90a, the
          default device of the virtual GPU
  vgpu    the devices of the virtual GPU that the device compiler knows

Code objects have version 5; OPTIONS -mcode-object-version=4 makes version 4. ROCr 5.2 and newer
load both.

printf: Uptempo cannot print from a kernel. In OpenCL C, a call that remains after optimization fails
the build, with its place in the source (clang 15 and 16) or the kernel's name (clang 19 and newer).
Calls in comments, in disabled code and in functions that no kernel calls are accepted.
OPTIONS "-Dprintf(...)=" removes all calls. In HIP, Program::kernel() refuses a kernel that calls
printf, assert or malloc.

HIP: only the device code of a file is compiled, as C++20 unless OPTIONS has another -std. It needs
HIP's headers, from the compiler's ROCm, else from /usr (Debian: libamdhip64-dev); UPTEMPO_HIP_ROOT
names another root. Program::kernel() finds a kernel by its name in the source (program.hpp). A
template needs an explicit instantiation: template __global__ void scale<float>(float*, float);

Device compiler, searched once at configure time (cache variables, both may be set by hand):
  UPTEMPO_DEVICE_CLANG        /opt/rocm/llvm/bin/clang, else the distribution's clang-15 or newer
  UPTEMPO_DEVICE_LIBS         the directory that holds ockl.bc (rocm-device-libs)
The first compiler is chosen that finds device libraries, has an ld.lld in its own directory, and
builds a kernel with both. CMake, not the build, reports why each compiler was rejected, with the
Debian package that is missing, and a target that the compiler does not support.
#]=======================================================================]

include_guard(GLOBAL)

# From LLVM's AMDGPU User Guide, "Processors": discrete GPUs of Polaris and newer, and APUs of RDNA
# 3 and newer. GPUs that few machines have are left out; GPU_TARGETS can name any.
set(_UPTEMPO_ALL_TARGETS gfx803 gfx900 gfx906 gfx908 gfx90a gfx942 gfx950 gfx1010 gfx1012 gfx1030 gfx1031 gfx1032 gfx1100 gfx1101
    gfx1102 gfx1103 gfx1150 gfx1151 gfx1200 gfx1201 CACHE INTERNAL "")
if(NOT DEFINED GPU_TARGETS)
  set(GPU_TARGETS all CACHE STRING
      "GPU instruction sets that kernels are compiled for: all, native, vgpu, or a semicolon-separated list of LLVM target IDs")
endif()
# For every directory that calls the function, not only the one that included this file first.
set_property(GLOBAL PROPERTY UPTEMPO_KERNELS_DIRECTORY "${CMAKE_CURRENT_LIST_DIR}")

# Sets `out` to the directory of the device libraries for the compiler of major version `major` in
# `clang_dir`, or to a false value. The compiler's own libraries precede those that the distribution
# or ROCm shares among compilers.
function(_uptempo_find_device_libs out clang_dir major)
  get_filename_component(clang_root "${clang_dir}" DIRECTORY)
  unset(found)  # a caller's variable would end the search
  find_path(found NAMES ockl.bc
            PATHS "${clang_root}/../amdgcn/bitcode" "${clang_root}/lib/clang/${major}/lib/amdgcn/bitcode"
                  "${clang_root}/lib/clang/${major}/amdgcn/bitcode" /opt/rocm/amdgcn/bitcode
                  /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/amdgcn/bitcode /usr/lib/x86_64-linux-gnu/amdgcn/bitcode
                  /usr/amdgcn/bitcode
            NO_DEFAULT_PATH NO_CACHE)
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# Tries one compiler, which needs device libraries and a linker that its version can use. Sets
# UPTEMPO_DEVICE_CLANG and UPTEMPO_DEVICE_LIBS, or `why_not` to the reason.
function(_uptempo_try_device_compiler clang why_not)
  execute_process(COMMAND "${clang}" -dumpversion OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE failed ERROR_VARIABLE why)
  if(failed)
    set(${why_not} "it does not run: ${why}" PARENT_SCOPE)
    return()
  endif()
  if(version VERSION_LESS 15)
    set(${why_not} "it is version ${version}; the device libraries need 15 or newer" PARENT_SCOPE)
    return()
  endif()
  string(REGEX MATCH "^[0-9]+" major "${version}")
  file(REAL_PATH "${clang}" real_clang)
  get_filename_component(clang_dir "${real_clang}" DIRECTORY)
  set(libraries "${UPTEMPO_DEVICE_LIBS}")
  if(NOT libraries)
    _uptempo_find_device_libs(libraries "${clang_dir}" ${major})
  endif()
  if(NOT libraries)
    set(${why_not} "it has no device libraries (ockl.bc); Debian's package is rocm-device-libs-${major}, or rocm-device-libs for clang-15"
        PARENT_SCOPE)
    return()
  endif()
  # Without a linker of its own the compiler would use ld.lld of any version.
  if(NOT EXISTS "${clang_dir}/ld.lld")
    set(${why_not} "it has no linker, ${clang_dir}/ld.lld; Debian's package is lld-${major}" PARENT_SCOPE)
    return()
  endif()
  _uptempo_compile_probe(failure "${clang}" "${libraries}" gfx90a)
  if(failure)
    set(${why_not} "it cannot build a kernel with the device libraries ${libraries}: ${failure}" PARENT_SCOPE)
    return()
  endif()
  set(UPTEMPO_DEVICE_CLANG "${clang}" CACHE FILEPATH "Compiler for device code" FORCE)
  set(UPTEMPO_DEVICE_LIBS "${libraries}" CACHE PATH "Directory of the ROCm device libraries (bitcode)" FORCE)
  set(_UPTEMPO_DEVICE_COMPILER_CHECKED "${UPTEMPO_DEVICE_CLANG}|${UPTEMPO_DEVICE_LIBS}|${_UPTEMPO_ALL_TARGETS}" CACHE INTERNAL "")
  _uptempo_known_targets(known "${clang}" "${libraries}")
  set(_UPTEMPO_KNOWN_TARGETS "${known}" CACHE INTERNAL "")
  message(STATUS "Device compiler: ${clang} ${version}, libraries ${libraries}")
  set(${why_not} "" PARENT_SCOPE)
endfunction()

# Chooses the first compiler that has device libraries and a linker of its own major version.
function(_uptempo_find_device_compiler)
  if(_UPTEMPO_DEVICE_COMPILER_CHECKED AND
     _UPTEMPO_DEVICE_COMPILER_CHECKED STREQUAL "${UPTEMPO_DEVICE_CLANG}|${UPTEMPO_DEVICE_LIBS}|${_UPTEMPO_ALL_TARGETS}")
    return()
  endif()

  set(rocm_roots /opt/rocm)
  if(DEFINED ENV{ROCM_PATH})
    list(PREPEND rocm_roots "$ENV{ROCM_PATH}")
  endif()
  set(candidates "${UPTEMPO_DEVICE_CLANG}")
  if(NOT candidates)
    set(candidates "")
    foreach(root IN LISTS rocm_roots)
      foreach(clang "${root}/llvm/bin/clang" "${root}/lib/llvm/bin/clang")
        if(EXISTS "${clang}")
          list(APPEND candidates "${clang}")
        endif()
      endforeach()
    endforeach()
    foreach(name clang-15 clang-16 clang-17 clang-18 clang-19 clang-20 clang-21 clang-22 clang)
      unset(found)
      find_program(found ${name} NO_CACHE)
      if(found)
        list(APPEND candidates "${found}")
      endif()
    endforeach()
  endif()
  set(rejected "")
  foreach(clang IN LISTS candidates)
    _uptempo_try_device_compiler("${clang}" why_not)
    if(NOT why_not)
      return()
    endif()
    string(APPEND rejected "\n  ${clang}: ${why_not}")
  endforeach()
  if(NOT candidates)
    string(JOIN ", " rocm_roots ${rocm_roots})
    set(rejected " neither ROCm's clang (in ${rocm_roots}) nor clang-15 or newer was found.")
  endif()
  message(FATAL_ERROR "uptempo_add_kernels: no device compiler:${rejected}\nInstall clang, lld and the device libraries of one LLVM "
                      "version (tools/setup.sh lists the packages), or set UPTEMPO_DEVICE_CLANG and UPTEMPO_DEVICE_LIBS.")
endfunction()

# Sets UPTEMPO_HIP_ROOT to the directory that holds include/hip: the compiler's ROCm, else /usr.
function(_uptempo_find_hip_headers source)
  file(REAL_PATH "${UPTEMPO_DEVICE_CLANG}" clang)
  get_filename_component(clang_dir "${clang}" DIRECTORY)
  find_path(UPTEMPO_HIP_ROOT include/hip/hip_runtime.h PATHS "${clang_dir}/../.." "${clang_dir}/../../.." /usr NO_DEFAULT_PATH
            DOC "Directory that holds include/hip/hip_runtime.h")
  if(NOT UPTEMPO_HIP_ROOT)
    message(FATAL_ERROR "uptempo_add_kernels: ${source} needs HIP's headers, and there is no include/hip/hip_runtime.h beside "
                        "${UPTEMPO_DEVICE_CLANG} or in /usr. Install them (Debian: libamdhip64-dev), or set UPTEMPO_HIP_ROOT.")
  endif()
  if(NOT EXISTS "${UPTEMPO_HIP_ROOT}/include/hip/hip_runtime.h")
    message(FATAL_ERROR "uptempo_add_kernels: ${source} needs HIP's headers, and UPTEMPO_HIP_ROOT, ${UPTEMPO_HIP_ROOT}, has no "
                        "include/hip/hip_runtime.h. Name the directory that holds it.")
  endif()
endfunction()

# `language`: cl or hip.
function(_uptempo_device_flags out clang libraries target language)
  get_property(directory GLOBAL PROPERTY UPTEMPO_KERNELS_DIRECTORY)
  file(REAL_PATH "${clang}" real_clang)
  get_filename_component(clang_dir "${real_clang}" DIRECTORY)
  if(language STREQUAL "hip")
    # -O3 as below. The compiler hides and internalizes all but kernels and variables by itself.
    set(${out} -x hip -std=c++20 --cuda-device-only --no-gpu-bundle-output --offload-arch=${target} -O3 -mcode-object-version=5
        --rocm-path=${UPTEMPO_HIP_ROOT} --rocm-device-lib-path=${libraries} -B${clang_dir} PARENT_SCOPE)
    return()
  endif()
  # No -nogpulib: it would drop functions such as get_global_id. Code object version 5: kernels read
  # geometry from hidden arguments, not from the packet, whose slot a device may reuse while the
  # kernel runs. The defaults of clang differ: 4 in clang 15 and 17, 6 in clang 21. The compiler
  # reads the header before and after its own. --no-undefined: otherwise the linker would accept an
  # undefined symbol under OPTIONS -fvisibility=default. -B: the compiler would prefer an ld.lld of
  # another version beside its link in /usr/bin. Internalized, the second copy of each kernel that
  # clang 21 makes for calls by other kernels disappears; otherwise it would remain in the code
  # object, with warnings about its local memory.
  set(${out} -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=${target} -O3 -mcode-object-version=5
      --rocm-device-lib-path=${libraries} -B${clang_dir} -Wl,--no-undefined
      -mllvm -amdgpu-internalize-symbols
      -imacros "${directory}/uptempo_no_printf.h" -include "${directory}/uptempo_no_printf.h" PARENT_SCOPE)
endfunction()

# Compiles and links an empty kernel: the only check that covers compiler, device libraries and
# linker at once. Sets `out` to the compiler's message, or to nothing.
function(_uptempo_compile_probe out clang libraries target)
  set(probe "${CMAKE_BINARY_DIR}/CMakeFiles/uptempo_probe")
  file(WRITE "${probe}.cl" "kernel void probe(global uint* p) { p[get_global_id(0)] = 1; }\n")
  _uptempo_device_flags(flags "${clang}" "${libraries}" ${target} cl)
  execute_process(COMMAND "${clang}" ${flags} "${probe}.cl" -o "${probe}.co" RESULT_VARIABLE failed
                  ERROR_VARIABLE why OUTPUT_VARIABLE why)
  if(NOT failed)
    set(why "")
  elseif(NOT why)
    set(why "it ended with ${failed}")
  endif()
  string(STRIP "${why}" why)
  set(${out} "${why}" PARENT_SCOPE)
endfunction()

# Requires that the device compiler builds for the target.
function(_uptempo_check_gpu_target target)
  if(target IN_LIST _UPTEMPO_KNOWN_TARGETS)
    return()
  endif()
  string(MAKE_C_IDENTIFIER "_UPTEMPO_GPU_TARGET_OK_${UPTEMPO_DEVICE_CLANG}_${target}" known)
  if(${known})
    return()
  endif()
  _uptempo_compile_probe(why "${UPTEMPO_DEVICE_CLANG}" "${UPTEMPO_DEVICE_LIBS}" ${target})
  if(why)
    message(FATAL_ERROR "uptempo_add_kernels: ${UPTEMPO_DEVICE_CLANG} cannot build for GPU target '${target}':\n${why}\n"
                        "Remove '${target}' from GPU_TARGETS, or use a compiler that supports it.")
  endif()
  set(${known} TRUE CACHE INTERNAL "")
endfunction()

# Sets `out` to the targets of _UPTEMPO_ALL_TARGETS that the compiler can build: it lists its
# processors, and the libraries have one file for each. A probe of each target would take 20 runs of
# the compiler instead of one.
function(_uptempo_known_targets out clang libraries)
  execute_process(COMMAND "${clang}" -target amdgcn-amd-amdhsa -nogpulib --print-supported-cpus
                  OUTPUT_VARIABLE listed ERROR_VARIABLE listed)
  string(REGEX MATCHALL "gfx[0-9a-f]+" listed "${listed}")
  file(GLOB versions "${libraries}/oclc_isa_version_*.bc")
  set(known "")
  foreach(target IN LISTS _UPTEMPO_ALL_TARGETS)
    string(SUBSTRING "${target}" 3 -1 version)
    if(target IN_LIST listed AND (NOT versions OR EXISTS "${libraries}/oclc_isa_version_${version}.bc"))
      list(APPEND known ${target})
    endif()
  endforeach()
  set(${out} "${known}" PARENT_SCOPE)
endfunction()

# Sets `out` to the targets of the GPUs in KFD's topology, each once; to nothing if `device`, the
# driver's, cannot be opened. A node's gfx_target_version is 10000 major + 100 minor + stepping, and
# 0 for a CPU. Steppings are hexadecimal in names: 90010 is gfx90a.
function(_uptempo_native_targets out device topology)
  set(targets "")
  execute_process(COMMAND test -r "${device}" -a -w "${device}" RESULT_VARIABLE closed)
  file(GLOB nodes "${topology}/nodes/*/properties")
  if(closed EQUAL 0 AND nodes)
    # cat, because the driver refuses to read the nodes that a container may not use.
    execute_process(COMMAND cat ${nodes} OUTPUT_VARIABLE properties ERROR_QUIET)
    string(REGEX MATCHALL "gfx_target_version [1-9][0-9]*" versions "${properties}")
    foreach(version IN LISTS versions)
      string(REGEX REPLACE "[^0-9]+" "" version "${version}")
      math(EXPR major "${version} / 10000")
      math(EXPR minor "${version} / 100 % 100")
      math(EXPR stepping "${version} % 100" OUTPUT_FORMAT HEXADECIMAL)
      string(REPLACE "0x" "" stepping "${stepping}")
      list(APPEND targets gfx${major}${minor}${stepping})
    endforeach()
    list(REMOVE_DUPLICATES targets)
  endif()
  set(${out} "${targets}" PARENT_SCOPE)
endfunction()

# Sets `out` to the targets that a list with the words all, native and vgpu stands for. Prints their
# meaning once per run of CMake.
function(_uptempo_expand_targets out)
  set(targets "")
  foreach(word IN LISTS ARGN)
    if(NOT word MATCHES "^(all|native|vgpu)$")
      list(APPEND targets ${word})
      continue()
    endif()
    set(note "")
    if(word STREQUAL "all")
      set(expanded ${_UPTEMPO_KNOWN_TARGETS})
      set(unknown ${_UPTEMPO_ALL_TARGETS})
      list(REMOVE_ITEM unknown ${expanded})
      if(unknown)
        string(JOIN " " note " (unknown to the device compiler:" ${unknown})
        string(APPEND note ")")
      endif()
    elseif(word STREQUAL "vgpu")
      set(expanded ${_UPTEMPO_KNOWN_TARGETS})
      list(FILTER expanded INCLUDE REGEX "^gfx9(00|06|08|0a|42)$")
    else()
      _uptempo_native_targets(expanded /dev/kfd /sys/class/kfd/kfd/topology)
      if(NOT expanded)
        set(expanded gfx90a)
        set(note " (no GPU found; the virtual GPU's default device)")
      endif()
    endif()
    list(APPEND targets ${expanded})
    get_property(printed GLOBAL PROPERTY UPTEMPO_KERNELS_PRINTED_${word})
    if(NOT printed)
      set_property(GLOBAL PROPERTY UPTEMPO_KERNELS_PRINTED_${word} TRUE)
      string(JOIN " " listed ${expanded})
      message(STATUS "GPU targets, ${word}: ${listed}${note}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES targets)
  set(${out} "${targets}" PARENT_SCOPE)
endfunction()

function(uptempo_gpu_targets out)
  _uptempo_find_device_compiler()  # knows the targets
  _uptempo_expand_targets(targets ${GPU_TARGETS})
  set(${out} "${targets}" PARENT_SCOPE)
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
                        "names differ only in case: uptempo/kernels/${other_name}.hpp and "
                        "uptempo/kernels/${name}.hpp; rename one of the files")
  endif()
  message(FATAL_ERROR "uptempo_add_kernels(${target}): ${other} and ${source} would both have the header "
                      "uptempo/kernels/${name}.hpp and the function ${name}(); rename one of the files, or give it "
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
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT CXX IN_LIST languages)
    message(FATAL_ERROR "uptempo_add_kernels(${target}): the kernels become a C++ file, which this project does not "
                        "compile; add CXX to the LANGUAGES of project()")
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
  _uptempo_expand_targets(arg_TARGETS ${arg_TARGETS})
  foreach(gpu IN LISTS arg_TARGETS)
    _uptempo_check_gpu_target(${gpu})
  endforeach()

  _uptempo_kernels_identity(identity ${target})
  get_property(directory GLOBAL PROPERTY UPTEMPO_KERNELS_DIRECTORY)
  set(embed_script "${directory}/uptempo_embed.cmake")
  # In CMakeFiles, where no target can have a file with the folder's name.
  set(out "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.kernels")
  file(MAKE_DIRECTORY "${out}/include/uptempo/kernels")
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
    set(language cl)
    set(included "${directory}/uptempo_no_printf.h")
    if(source MATCHES "[.]hip$")
      set(language hip)
      set(included "")
      _uptempo_find_hip_headers("${source}")
    endif()
    get_filename_component(file "${source}" NAME)

    set(objects "")
    set(entries "")
    foreach(gpu IN LISTS arg_TARGETS)
      string(REPLACE ":" "_" gpu_file "${gpu}")
      set(object "${out}/${name}.${gpu_file}.co")
      _uptempo_device_flags(flags "${UPTEMPO_DEVICE_CLANG}" "${UPTEMPO_DEVICE_LIBS}" ${gpu} ${language})
      add_custom_command(
        OUTPUT "${object}"
        # The driver of clang 21 does not write a dependency file of a HIP source; its compiler does.
        COMMAND "${UPTEMPO_DEVICE_CLANG}" ${flags} -Wall -Wextra -Werror ${arg_OPTIONS}
                -Xclang -dependency-file -Xclang "${object}.d" -Xclang -MT -Xclang "${object}"
                "${source}" -o "${object}"
        DEPENDS "${source}" ${included}
        DEPFILE "${object}.d"
        COMMENT "Compiling ${file} for ${gpu}"
        VERBATIM)
      list(APPEND objects "${object}")
      list(APPEND entries "hipv4-amdgcn-amd-amdhsa--${gpu}=${object}")
    endforeach()

    set(embedded "${out}/${name}.cpp")
    set(header "${out}/include/uptempo/kernels/${name}.hpp")
    set(c_header "${out}/include/uptempo/kernels/${name}.h")
    add_custom_command(
      OUTPUT "${embedded}" "${header}" "${c_header}"
      COMMAND "${CMAKE_COMMAND}" -D "ENTRIES=${entries}" -D "SOURCE=${embedded}" -D "HEADER=${header}" -D "C_HEADER=${c_header}"
              -D "NAME=${name}" -D "NAMESPACE=${arg_NAMESPACE}" -D "IDENTITY=${identity}" -P "${embed_script}"
      DEPENDS "${embed_script}" ${objects}
      COMMENT "Embedding ${name}"
      VERBATIM)
    target_sources(${target} PRIVATE "${embedded}" "${header}" "${c_header}")
    set_property(TARGET ${target} APPEND PROPERTY UPTEMPO_KERNEL_HEADERS "${header}" "${c_header}")
    # .incbin hides the code objects from the dependency scanner.
    set_source_files_properties("${embedded}" PROPERTIES OBJECT_DEPENDS "${objects}" SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()

  target_compile_definitions(${target} PRIVATE UPTEMPO_KERNELS_OF_${identity})
  target_include_directories(${target} ${include_scope} "$<BUILD_INTERFACE:${out}/include>")
  target_compile_features(${target} ${include_scope} cxx_std_20)  # the header's std::span
endfunction()
