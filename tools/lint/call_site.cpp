#include "tools/lint/call_site.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <link.h>

#include <array>
#include <string_view>

#include <uptempo/aql/printable.hpp>
#include "tools/lint/kernel_names.hpp"
#include "tools/support/python_calls.hpp"

namespace uptempo::lint {
namespace {

struct Range {
  uint64_t begin, end;
};
struct Ranges {
  std::array<Range, 8> list{};
  size_t count = 0;
};
Ranges runtimes;

std::string_view file_name(const char* path) {
  const std::string_view text = path;
  return text.substr(text.rfind('/') + 1);
}

int add_runtime(dl_phdr_info* object, size_t, void*) {
  const std::string_view file = file_name(object->dlpi_name);
  uint64_t begin = ~uint64_t{0}, end = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    begin = std::min<uint64_t>(begin, object->dlpi_addr + segment.p_vaddr);
    end = std::max<uint64_t>(end, object->dlpi_addr + segment.p_vaddr + segment.p_memsz);
  }
  const auto self = reinterpret_cast<uint64_t>(&add_runtime);
  const bool is_runtime = file.starts_with("libhsa-runtime64.so") ||
                          file.starts_with("libamdhip64.so") || (self >= begin && self < end);
  if (is_runtime && runtimes.count < runtimes.list.size())
    runtimes.list[runtimes.count++] = {begin, end};
  return 0;
}

uint64_t return_address() noexcept {
  std::array<void*, 24> frames;
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  for (int i = 1; i < count; ++i) {
    const auto address = reinterpret_cast<uint64_t>(frames[static_cast<size_t>(i)]);
    bool is_runtime = false;
    for (size_t k = 0; k < runtimes.count; ++k)
      is_runtime =
          is_runtime || (address > runtimes.list[k].begin && address <= runtimes.list[k].end);
    if (!is_runtime) return address;
  }
  return 0;
}

bool is_of_python(uint64_t address) {
  Dl_info info{};
  return dladdr(reinterpret_cast<void*>(address - 1), &info) != 0 && info.dli_fname != nullptr &&
         support::is_python_file(file_name(info.dli_fname));
}

std::string describe_address(uint64_t address) {
  if (address == 0) return "in HIP or ROCr, called from no frame of the program";
  Dl_info info{};
  void* extra = nullptr;
  // The call is before the return address, which may be the first of the next function.
  void* const call = reinterpret_cast<void*>(address - 1);
  if (dladdr1(call, &info, &extra, RTLD_DL_SYMENT) == 0 || info.dli_fname == nullptr)
    return fmt::format("{:#x}", address);
  const std::string place = fmt::format("({}+{:#x})", info.dli_fname,
                                        address - reinterpret_cast<uint64_t>(info.dli_fbase));
  const auto* const symbol = static_cast<const ElfW(Sym)*>(extra);
  if (info.dli_sname == nullptr || symbol == nullptr) return place;
  const uint64_t offset = address - reinterpret_cast<uint64_t>(info.dli_saddr);
  if (offset > symbol->st_size) return place;  // a function that is not exported
  return fmt::format("{}+{:#x} {}", demangle(info.dli_sname), offset, place);
}

}  // namespace

void prepare_call_sites() {
  runtimes.count = 0;
  dl_iterate_phdr(add_runtime, nullptr);
  support::find_python();
  std::array<void*, 4> frames;
  (void)backtrace(frames.data(), static_cast<int>(frames.size()));
}

uint64_t call_site() noexcept {
  return support::code_site(return_address(), support::python_calls().own);
}

std::string describe_site(uint64_t site) {
  const uint64_t address = support::address_of_site(site);
  const support::PythonCall call = support::python_call(support::call_of_site(site));
  if (call.function.empty()) return describe_address(address);
  std::string python =
      fmt::format("{} at {}", aql::printable(call.function), aql::printable(call.file));
  if (call.line != 0) python += fmt::format(":{}", call.line);
  if (address == 0 || is_of_python(address)) return python;
  return fmt::format("{}, called by {}", describe_address(address), python);
}

}  // namespace uptempo::lint
