#include "kfd/report/source_lines.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cp/device_thread.hpp"
#include "kfd/program_memory.hpp"

namespace uptempo::vgpu::kfd {
namespace {

constexpr std::chrono::seconds kOpenWithin{3};
constexpr size_t kMaxObjects = 4096;                   // a broken list may be a circle
constexpr size_t kMaxObjectBytes = size_t{512} << 20;  // of a code object
constexpr size_t kComparedBytes = 8;                   // the longest instruction

// The part of a URI after `name`, up to the next separator, as a number.
std::optional<uint64_t> number_in(std::string_view uri, std::string_view name) {
  const size_t at = uri.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view text = uri.substr(at + name.size());
  text = text.substr(0, text.find('&'));
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

// Undoes %20 and the like.
std::string decoded(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    unsigned code = 0;
    if (text[at] == '%' && at + 2 < text.size() &&
        std::from_chars(text.data() + at + 1, text.data() + at + 3, code, 16).ptr ==
            text.data() + at + 3) {
      result.push_back(static_cast<char>(code));
      at += 2;
    } else {
      result.push_back(text[at]);
    }
  }
  return result;
}

std::vector<char> read_file(const std::string& path, uint64_t offset, uint64_t size_bytes) {
  std::vector<char> bytes;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return bytes;
  if (size_bytes == 0) {
    const off_t end = lseek(file, 0, SEEK_END);
    if (end > 0 && static_cast<uint64_t>(end) > offset)
      size_bytes = static_cast<uint64_t>(end) - offset;
  }
  if (size_bytes <= kMaxObjectBytes) {
    bytes.resize(size_bytes);
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t part =
          pread(file, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
      if (part <= 0) break;
      done += static_cast<size_t>(part);
    }
    bytes.resize(done);
  }
  close(file);
  return bytes;
}

// The image that the URI names; empty if it cannot be read.
std::vector<char> read_uri(std::string_view uri) {
  constexpr std::string_view kFile = "file://", kMemory = "memory://";
  const size_t fragment = std::min(uri.find('#'), uri.size());
  const uint64_t offset = number_in(uri.substr(fragment), "offset=").value_or(0);
  const uint64_t size_bytes = number_in(uri.substr(fragment), "size=").value_or(0);
  if (uri.starts_with(kFile))
    return read_file(decoded(uri.substr(kFile.size(), fragment - kFile.size())), offset,
                     size_bytes);
  std::vector<char> bytes;
  if (!uri.starts_with(kMemory) || size_bytes == 0 || size_bytes > kMaxObjectBytes) return bytes;
  bytes.resize(size_bytes);
  if (!copy_from_program(bytes.data(), offset, bytes.size())) bytes.clear();
  return bytes;
}

// A string of the program, at most a path and two numbers long.
std::string program_string(uint64_t address) {
  std::string text;
  while (text.size() < 8192) {
    // Not beyond the page, because the next one may be unmapped.
    std::array<char, 256> part{};
    const uint64_t at = address + text.size();
    const size_t bytes = std::min<uint64_t>(part.size(), 4096 - at % 4096);
    if (!copy_from_program(part.data(), at, bytes)) break;
    const size_t length = strnlen(part.data(), bytes);
    text.append(part.data(), length);
    if (length < bytes) break;
  }
  return text;
}

int note_rocr(dl_phdr_info* module, size_t, void* paths) {
  if (std::strstr(module->dlpi_name, "/libhsa-runtime64.so") != nullptr)
    static_cast<std::vector<std::string>*>(paths)->emplace_back(module->dlpi_name);
  return 0;
}

// ROCr's list of code objects; null: there is none. A plugin that was loaded with RTLD_LOCAL has
// its ROCr outside the global scope.
const r_debug* find_list() {
  constexpr const char* kName = "_amdgpu_r_debug";
  if (const void* const list = dlsym(RTLD_DEFAULT, kName)) return static_cast<const r_debug*>(list);
  std::vector<std::string> paths;
  dl_iterate_phdr(note_rocr, &paths);
  for (const std::string& path : paths) {
    void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    const void* const list = dlsym(library, kName);
    dlclose(library);  // its user keeps it
    if (list != nullptr) return static_cast<const r_debug*>(list);
  }
  return nullptr;
}

}  // namespace

struct SourceLines::Impl {
  struct Object {
    uint64_t load_bias = 0;
    std::string uri;
    bool read = false;
    std::vector<char> image;
    void* elf = nullptr;
    void* dwarf = nullptr;
  };

  explicit Impl(const DwarfLibrary* given)
      : debug(find_list()),
        own(given == nullptr ? std::make_unique<const DwarfLibrary>() : nullptr),
        library(given == nullptr ? *own : *given) {
    list_objects();
  }

  // Adds the code objects that the runtime has loaded since the last call.
  void list_objects() {
    if (debug == nullptr) return;
    // Copied through the kernel, because the runtime may change the list meanwhile.
    r_debug list;
    if (!copy_from_program(&list, reinterpret_cast<uint64_t>(debug), sizeof list)) return;
    auto next = reinterpret_cast<uint64_t>(list.r_map);
    while (next != 0 && objects.size() < kMaxObjects) {
      link_map entry;
      if (!copy_from_program(&entry, next, sizeof entry)) return;
      std::string uri = program_string(reinterpret_cast<uint64_t>(entry.l_name));
      const bool is_known = std::ranges::any_of(objects, [&](const Object& object) {
        return object.load_bias == entry.l_addr && object.uri == uri;
      });
      if (!is_known) {
        Object& object = objects.emplace_back();
        object.load_bias = entry.l_addr;
        object.uri = std::move(uri);
      }
      next = reinterpret_cast<uint64_t>(entry.l_next);
    }
  }

  ~Impl() {
    for (const Object& object : objects) {
      if (object.dwarf != nullptr) library.end(object.dwarf);
      if (object.elf != nullptr) library.elf_end(object.elf);
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void read(Object& object) {
    object.read = true;
    object.image = read_uri(object.uri);
    if (object.image.size() < sizeof(Elf64_Ehdr) ||
        std::memcmp(object.image.data(), ELFMAG, SELFMAG) != 0) {
      object.image.clear();
      return;
    }
    object.elf = library.elf_memory(object.image.data(), object.image.size());
    if (object.elf != nullptr)
      object.dwarf = library.begin(object.elf, DwarfLibrary::kRead, nullptr);
  }

  // The bytes of the image at an address of its program, or nullptr.
  static const char* bytes_at(const Object& object, uint64_t address) {
    const auto copy = [&]<typename T>(T& to, uint64_t offset) {
      if (offset > object.image.size() || object.image.size() - offset < sizeof(T)) return false;
      std::memcpy(&to, object.image.data() + offset, sizeof(T));
      return true;
    };
    Elf64_Ehdr header;
    if (!copy(header, 0)) return nullptr;
    for (unsigned index = 0; index < header.e_phnum; ++index) {
      Elf64_Phdr segment;
      if (!copy(segment, header.e_phoff + index * sizeof segment)) return nullptr;
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0 || address < segment.p_vaddr ||
          segment.p_filesz < kComparedBytes ||
          address - segment.p_vaddr > segment.p_filesz - kComparedBytes)
        continue;
      const uint64_t offset = segment.p_offset + (address - segment.p_vaddr);
      if (offset > object.image.size() || object.image.size() - offset < kComparedBytes)
        return nullptr;
      return object.image.data() + offset;
    }
    return nullptr;
  }

  // The object with this code, or nullptr.
  Object* object_of(AddressSpace::Reader& memory, GpuAddress pc) {
    char code[kComparedBytes];
    {
      memory.enter();
      const std::byte* const host = memory.translate(pc, sizeof code, Access::execute);
      if (host != nullptr) std::memcpy(code, host, sizeof code);
      memory.leave();
      if (host == nullptr) return nullptr;
    }
    for (Object& object : objects) {
      if (pc < object.load_bias || pc - object.load_bias > kMaxObjectBytes) continue;
      if (!object.read) read(object);
      const char* const bytes = bytes_at(object, pc - object.load_bias);
      if (bytes != nullptr && std::memcmp(bytes, code, sizeof code) == 0) return &object;
    }
    return nullptr;
  }

  const r_debug* const debug;  // null: no such list is exported
  const std::unique_ptr<const DwarfLibrary> own;
  const DwarfLibrary& library;
  std::vector<Object> objects;
};

SourceLines::SourceLines(const std::vector<AddressSpace*>& memory_of_gpus,
                         const DwarfLibrary* library)
    : library_(library) {
  for (AddressSpace* const memory : memory_of_gpus)
    memory_.push_back(std::make_unique<AddressSpace::Reader>(*memory));
}
SourceLines::~SourceLines() = default;

void SourceLines::open_now() {
  opened_ = true;
  take(std::make_unique<Impl>(library_));
}

void SourceLines::take(std::unique_ptr<Impl> impl) {
  impl_ = std::move(impl);
  if (impl_->library.complete()) return;
  missing_ =
      "no source lines: libdw.so.1 of elfutils is not installed (Debian: libdw1, from 13 on "
      "libdw1t64; Fedora: elfutils-libs)";
  impl_.reset();
}

void SourceLines::open() {
  opened_ = true;
  struct Opening {
    std::mutex mutex;
    std::condition_variable changed;
    std::unique_ptr<Impl> impl;
  };
  const auto opening = std::make_shared<Opening>();
  std::thread thread = start_device_thread("vgpu-lines", [opening, library = library_] {
    auto impl = std::make_unique<Impl>(library);
    const std::lock_guard lock(opening->mutex);
    opening->impl = std::move(impl);
    opening->changed.notify_one();
  });
  if (!thread.joinable()) {
    missing_ = "no source lines: the system refuses another thread";
    return;
  }
  thread.detach();
  std::unique_lock lock(opening->mutex);
  opening->changed.wait_for(lock, kOpenWithin, [&] { return opening->impl != nullptr; });
  if (opening->impl == nullptr)
    missing_ = "no source lines: another thread holds the dynamic loader's lock";
  else
    take(std::move(opening->impl));
}

bool SourceLines::has_none() const noexcept {
  return opened_ && (impl_ == nullptr || impl_->debug == nullptr);
}

std::string SourceLines::line(uint32_t gpu, GpuAddress pc) {
  if (!opened_) open();
  if (impl_ == nullptr) return {};
  impl_->list_objects();
  if (const Impl::Object* const object = impl_->object_of(*memory_.at(gpu), pc);
      object != nullptr && object->dwarf != nullptr)
    if (std::string line = impl_->library.line_at(object->dwarf, pc - object->load_bias);
        !line.empty())
      return line;
  missing_ = impl_->debug == nullptr
                 ? "no source lines: no loaded library exports ROCr's list of code objects"
                 : "places without a source line are of code without debug information (-g)";
  return {};
}

}  // namespace uptempo::vgpu::kfd
