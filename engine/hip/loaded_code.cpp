#include <uptempo/hip/loaded_code.hpp>

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo::hip {
namespace {

using Loader = hsa_ven_amd_loader_1_03_pfn_t;

const Loader& loader() {
  static const Loader kTable = [] {
    Loader read{};
    check(hsa_system_get_major_extension_table(HSA_EXTENSION_AMD_LOADER, 1, sizeof read, &read),
          "hsa_system_get_major_extension_table", "HSA_EXTENSION_AMD_LOADER 1.3");
    return read;
  }();
  return kTable;
}

template <class T>
T info(hsa_loaded_code_object_t code, hsa_ven_amd_loader_loaded_code_object_info_t attribute) {
  T value{};
  check(loader().hsa_ven_amd_loader_loaded_code_object_get_info(code, attribute, &value),
        "hsa_ven_amd_loader_loaded_code_object_get_info");
  return value;
}

std::vector<hsa_executable_t> executables() {
  std::vector<hsa_executable_t> all;
  check(loader().hsa_ven_amd_loader_iterate_executables(
            [](hsa_executable_t executable, void* data) {
              static_cast<std::vector<hsa_executable_t>*>(data)->push_back(executable);
              return HSA_STATUS_SUCCESS;
            },
            &all),
        "hsa_ven_amd_loader_iterate_executables");
  return all;
}

std::vector<hsa_loaded_code_object_t> code_objects(hsa_executable_t executable) {
  std::vector<hsa_loaded_code_object_t> all;
  check(loader().hsa_ven_amd_loader_executable_iterate_loaded_code_objects(
            executable,
            [](hsa_executable_t, hsa_loaded_code_object_t code, void* data) {
              static_cast<std::vector<hsa_loaded_code_object_t>*>(data)->push_back(code);
              return HSA_STATUS_SUCCESS;
            },
            &all),
        "hsa_ven_amd_loader_executable_iterate_loaded_code_objects");
  return all;
}

template <class T>
T info(hsa_executable_symbol_t symbol, hsa_executable_symbol_info_t attribute) {
  T value{};
  check(hsa_executable_symbol_get_info(symbol, attribute, &value),
        "hsa_executable_symbol_get_info");
  return value;
}

LoadedCode describe(hsa_executable_t executable, hsa_loaded_code_object_t code) {
  LoadedCode result{
      .executable = executable,
      .load_base = info<uint64_t>(code, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE),
      .load_size = info<uint64_t>(code, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE),
      .load_delta = info<int64_t>(code, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA)};
  const auto storage =
      info<uint32_t>(code, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_TYPE);
  if (storage == HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): ROCr gives it as a number
    result.storage = reinterpret_cast<const std::byte*>(info<uint64_t>(
        code, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_BASE));
    result.storage_size = info<uint64_t>(
        code, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_SIZE);
  }
  return result;
}

// Empty if the executable has no such kernel on this agent.
std::optional<LoadedCode> code_in(hsa_executable_t executable, const Agent& agent,
                                  const std::string& symbol) {
  const hsa_agent_t handle = agent.handle();
  hsa_executable_symbol_t found{};
  if (hsa_executable_get_symbol_by_name(executable, symbol.c_str(), &handle, &found) !=
      HSA_STATUS_SUCCESS)
    return {};
  const auto object = info<uint64_t>(found, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT);
  for (const hsa_loaded_code_object_t code : code_objects(executable)) {
    LoadedCode loaded = describe(executable, code);
    if (object < loaded.load_base || object - loaded.load_base >= loaded.load_size) continue;
    loaded.kernel_object = object;
    loaded.segment_sizes = {
        info<uint32_t>(found, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE),
        info<uint32_t>(found, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE),
        info<uint32_t>(found, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE)};
    return loaded;
  }
  return {};
}

// Reads memory that may not be mapped. Returns false if it is not.
bool read_own_memory(const std::byte* from, std::vector<std::byte>& to) {
  // RAII for a descriptor that lives for one call.
  const struct File {
    int descriptor = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    ~File() {
      if (descriptor >= 0) ::close(descriptor);
    }
  } memory;
  for (size_t done = 0; done < to.size();) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): an offset in the file
    const auto offset = static_cast<off_t>(reinterpret_cast<uintptr_t>(from + done));
    const ssize_t count = ::pread(memory.descriptor, to.data() + done, to.size() - done, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

// Whether the loaded image has all bytes of the file that the loader and the device leave as they
// are. The image begins with the file's program headers.
bool is_loaded_from(std::span<const std::byte> image, std::span<const std::byte> file) {
  Elf64_Ehdr header{};
  std::memcpy(&header, image.data(), sizeof header);
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    std::memcpy(&segment, image.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    if (segment.p_offset > file.size() || file.size() - segment.p_offset < segment.p_filesz)
      return false;
    if (!std::ranges::equal(image.subspan(segment.p_vaddr, segment.p_filesz),
                            file.subspan(segment.p_offset, segment.p_filesz)))
      return false;
  }
  return true;
}

}  // namespace

bool LoadedCode::operator==(const LoadedCode& other) const noexcept {
  return executable.handle == other.executable.handle && kernel_object == other.kernel_object &&
         segment_sizes == other.segment_sizes && load_base == other.load_base &&
         load_size == other.load_size && load_delta == other.load_delta &&
         storage == other.storage && storage_size == other.storage_size;
}

std::vector<LoadedCode> code_with_kernel(const Agent& agent, const std::string& symbol) {
  const std::shared_ptr<Session> session = Session::running();
  std::vector<LoadedCode> found;
  for (const hsa_executable_t executable : executables()) {
    if (session && session->holds(Session::Kind::executable, executable.handle)) continue;
    if (const auto code = code_in(executable, agent, symbol)) found.push_back(*code);
  }
  return found;
}

bool is_loaded(const Agent& agent, const LoadedCode& code, const std::string& symbol) {
  const auto is_same = [&](hsa_executable_t each) { return each.handle == code.executable.handle; };
  // ROCr accesses a handle without a check.
  return std::ranges::any_of(executables(), is_same) &&
         code_in(code.executable, agent, symbol) == code;
}

LoadedObject read_loaded(const LoadedCode& code, const std::string& kernel) {
  LoadedObject loaded{
      .image = std::vector<std::byte>(code.load_size), .object = {}, .identity = {}};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast, performance-no-int-to-ptr): ROCr
  // gives the address as a number
  const auto* const from = reinterpret_cast<const void*>(code.load_base);
  check(hsa_memory_copy(loaded.image.data(), from, loaded.image.size()), "hsa_memory_copy", kernel);
  loaded.object = read_loaded_code_object(loaded.image);
  if (code.storage == nullptr) return loaded;
  std::vector<std::byte> file(code.storage_size);
  if (read_own_memory(code.storage, file) && is_loaded_from(loaded.image, file))
    loaded.identity =
        CodeIdentity(to_string(loaded.object.target), file.size(), content_hash(file));
  return loaded;
}

}  // namespace uptempo::hip
