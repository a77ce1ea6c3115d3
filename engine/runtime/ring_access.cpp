#include <uptempo/runtime/ring_access.hpp>

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <string_view>

#include <uptempo/runtime/table_jump.hpp>

namespace uptempo {
namespace {

using detail::Interposition;

constexpr const char* kRocr = "libhsa-runtime64.so.1";

// The functions by which a producer creates a queue, claims slots, exposes packets and rings the
// doorbell; all variants, because tools replace each by itself.
constexpr const char* kPublishing[] = {
    "hsa_queue_create",
    "hsa_queue_load_read_index_relaxed",
    "hsa_queue_load_read_index_scacquire",
    "hsa_queue_load_write_index_relaxed",
    "hsa_queue_load_write_index_scacquire",
    "hsa_queue_store_write_index_relaxed",
    "hsa_queue_store_write_index_screlease",
    "hsa_queue_cas_write_index_relaxed",
    "hsa_queue_cas_write_index_scacquire",
    "hsa_queue_cas_write_index_screlease",
    "hsa_queue_cas_write_index_scacq_screl",
    "hsa_queue_add_write_index_relaxed",
    "hsa_queue_add_write_index_scacquire",
    "hsa_queue_add_write_index_screlease",
    "hsa_queue_add_write_index_scacq_screl",
    "hsa_signal_store_relaxed",
    "hsa_signal_store_screlease",
    "hsa_signal_silent_store_relaxed",
    "hsa_signal_silent_store_screlease",
};

// The same in AMD extension 1.26 and newer.
constexpr const char* kNewerQueueCreate = "hsa_amd_queue_create";

struct Close {
  void operator()(void* library) const noexcept { dlclose(library); }
};

// The loaded library that holds the address.
struct Library {
  const void* base = nullptr;  // null: none
  std::string file;
};
Library library_of(const void* address) {
  Dl_info found{};
  if (dladdr(address, &found) == 0 || found.dli_fname == nullptr) return {};
  return {found.dli_fbase, found.dli_fname};
}

Interposition not_known(std::string_view why) {
  return {.none = false, .finding = fmt::format("whether a tool interposes is unknown: {}", why)};
}

Interposition interposed_by(std::string_view function, const Library& library) {
  return {.none = false,
          .finding =
              fmt::format("a tool interposes: {} leads to {}", function,
                          library.base == nullptr ? "code outside of any library" : library.file)};
}

Interposition none_found() { return {.none = true, .finding = "no tool interposes"}; }

Interposition interposition_of(void* rocr, const char* name) {
  const void* const own = dlsym(rocr, name);
  // A library that is loaded earlier, for example with LD_PRELOAD, may define the function.
  const void* const called = dlsym(RTLD_DEFAULT, name);
  if (own == nullptr || called == nullptr) return not_known(fmt::format("there is no {}", name));
  if (own != called) return interposed_by(name, library_of(called));
  const Library home = library_of(own);
  const auto* const code = static_cast<const uint8_t*>(own);
  const auto jump = detail::decode_table_jump({code, detail::kTableJumpBytes});
  if (!jump)
    return not_known(fmt::format("{} of {} is not a jump through a table", name, home.file));
  const uint8_t* const pointer = code + jump->pointer;
  const uint8_t* table = nullptr;
  if (library_of(pointer).base != home.base)
    return not_known(fmt::format("{} has its table elsewhere", name));
  std::memcpy(&table, pointer, sizeof(table));
  if (library_of(table).base != home.base)
    return not_known(fmt::format("{} has its table elsewhere", name));
  const void* target = nullptr;
  std::memcpy(&target, table + jump->slot, sizeof(target));
  if (const Library there = library_of(target); there.base != home.base)
    return interposed_by(name, there);
  return none_found();
}

}  // namespace

detail::Interposition detail::find_interposition() {
  const std::unique_ptr<void, Close> rocr(dlopen(kRocr, RTLD_LAZY | RTLD_NOLOAD));
  if (!rocr) return not_known(fmt::format("{} is not loaded", kRocr));
  for (const char* const name : kPublishing)
    if (Interposition found = interposition_of(rocr.get(), name); !found.none) return found;
  if (dlsym(rocr.get(), kNewerQueueCreate) != nullptr)
    return interposition_of(rocr.get(), kNewerQueueCreate);
  return none_found();
}

RingAccessChoice choose_ring_access(const hsa_queue_t* queue, bool pm4_emulation,
                                    RingAccessMode wish) {
  using aql::RingAccess;
  using aql::detail::SignalKind;
  if (pm4_emulation) return {RingAccess::hsa_calls, "ROCr emulates the agent's queues by PM4"};
  if (wish == RingAccessMode::direct) return {RingAccess::direct, "the caller asked for it"};
  if (wish == RingAccessMode::hsa_calls) return {RingAccess::hsa_calls, "the caller asked for it"};
  detail::Interposition tools = detail::find_interposition();
  if (!tools.none) return {RingAccess::hsa_calls, std::move(tools.finding)};
  if (aql::detail::signal_kind(queue->doorbell_signal) != SignalKind::doorbell)
    return {RingAccess::hsa_calls, "the doorbell is not of kind DOORBELL"};
  return {RingAccess::direct, std::move(tools.finding)};
}

}  // namespace uptempo
