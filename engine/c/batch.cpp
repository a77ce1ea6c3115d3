#include <uptempo/c/batch.h>

#include <fmt/format.h>

#include <optional>

#include <uptempo/c/call.hpp>
#include <uptempo/c/declaration.hpp>
#include <uptempo/c/options.hpp>
#include <uptempo/c/queue_handle.hpp>
#include <uptempo/dispatch/batch_submitter.hpp>

using namespace uptempo;
using namespace uptempo::c;

struct uptempo_batch : Handle<Kind::batch> {
  uptempo_batch(Queue& queue, const BatchOptions& options) : batch(queue, options) {}
  BatchSubmitter batch;
  std::optional<CommandRef> last;  // the dispatch last appended
};

namespace uptempo::c {
namespace {

// Throws Error for bytes at NULL or beyond the last address: their end would come before their
// begin, and the plan would order nothing after them.
void require_access(const uptempo_access& access, size_t index) {
  const auto begin = reinterpret_cast<uintptr_t>(access.data);
  if (access.bytes != 0 && (begin == 0 || access.bytes > UINTPTR_MAX - begin))
    refuse_parameter(fmt::format("declaration.accesses[{}]", index),
                     fmt::format("it has {} bytes at {:#x}", access.bytes, begin),
                     "declare bytes that exist, or 0 of them");
  if (access.writes > 1)
    refuse_parameter(fmt::format("declaration.accesses[{}].writes", index),
                     fmt::format("it is {}", access.writes), "use 0 or 1");
}

}  // namespace

uptempo_declaration checked(const uptempo_declaration* given) {
  const uptempo_declaration known = options_of(&place(given, "declaration"), "declaration");
  constexpr uint64_t kParts = UPTEMPO_DECLARES_ACCESSES | UPTEMPO_DECLARES_AFTER |
                              UPTEMPO_DECLARES_SCOPES | UPTEMPO_DECLARES_NO_BARRIER;
  if ((known.parts & ~kParts) != 0)
    refuse_parameter("declaration.parts", fmt::format("it is {:#x}", known.parts),
                     "add up constants UPTEMPO_DECLARES_...");
  // Otherwise a forgotten part would drop a declaration.
  const auto require_part = [&](uint64_t part, bool is_given, const char* name) {
    if (is_given && (known.parts & part) == 0)
      refuse_parameter("declaration.parts", fmt::format("{} are given, and not part of it", name),
                       "add their constant UPTEMPO_DECLARES_...");
  };
  require_part(UPTEMPO_DECLARES_ACCESSES, known.access_count != 0, "accesses");
  require_part(UPTEMPO_DECLARES_AFTER, known.after_count != 0, "packets `after`");
  require_part(UPTEMPO_DECLARES_SCOPES, known.acquire != 0 || known.release != 0, "scopes");
  if (known.access_count != 0) (void)place(known.accesses, "declaration.accesses");
  if (known.after_count != 0) (void)place(known.after, "declaration.after");
  for (size_t i = 0; i < known.access_count; ++i) require_access(known.accesses[i], i);
  (void)enum_of(known.acquire, aql::FenceScope::system, "declaration.acquire");
  (void)enum_of(known.release, aql::FenceScope::system, "declaration.release");
  (void)enum_of(known.observer, Observer::system, "declaration.observer");
  return known;
}

}  // namespace uptempo::c

namespace {

static_assert(static_cast<int>(aql::FenceScope::none) == UPTEMPO_SCOPE_NONE &&
              static_cast<int>(aql::FenceScope::agent) == UPTEMPO_SCOPE_AGENT &&
              static_cast<int>(aql::FenceScope::system) == UPTEMPO_SCOPE_SYSTEM);

// uptempo_batch_dispatch() of valid handles and a complete grid. One function for each form of
// arguments: each is a straight line, whose values stay in registers.
template <bool kByPointers>
[[gnu::noinline]] uptempo_status append(uptempo_batch& batch, const uptempo_kernel& kernel,
                                        const uptempo_grid& grid,
                                        uptempo_arguments arguments) noexcept {
  if ((arguments.by_pointers != 0) != kByPointers) __builtin_unreachable();
  return guarded("uptempo_batch_dispatch", [&] {
    batch.last = batch.batch.dispatch(kernel.kernel, complete_grid(grid), arguments_of(arguments));
  });
}

// uptempo_batch_dispatch() of anything else.
[[gnu::noinline]] uptempo_status append_any(uptempo_batch* batch, const uptempo_kernel* kernel,
                                            const uptempo_grid* grid,
                                            uptempo_arguments arguments) noexcept {
  return guarded("uptempo_batch_dispatch", [&] {
    uptempo_batch& to = handle(batch, "batch");
    to.last = to.batch.dispatch(handle(kernel, "kernel").kernel, grid_of(place(grid, "grid")),
                                arguments_of(arguments));
  });
}

}  // namespace

uptempo_status uptempo_batch_create(uptempo_queue* queue, const uptempo_batch_options* options,
                                    uptempo_batch** batch) {
  return create(__func__, batch, [&] {
    return new uptempo_batch(handle(queue, "queue").queue,
                             batch_options_of(options_of(options, "options")));
  });
}

uptempo_status uptempo_batch_destroy(uptempo_batch* batch) {
  return destroy(__func__, batch, "batch");
}

uptempo_status uptempo_batch_dispatch(uptempo_batch* batch, const uptempo_kernel* kernel,
                                      const uptempo_grid* grid, uptempo_arguments arguments) {
  if (!is_handle(batch) || !is_handle(kernel) || grid == nullptr || !is_complete(*grid))
      [[unlikely]]
    return append_any(batch, kernel, grid, arguments);
  if (arguments.by_pointers != 0) return append<true>(*batch, *kernel, *grid, arguments);
  return append<false>(*batch, *kernel, *grid, arguments);
}

uptempo_status uptempo_batch_try_dispatch(uptempo_batch* batch, const uptempo_kernel* kernel,
                                          const uptempo_grid* grid, uptempo_arguments arguments) {
  return guarded(__func__, [&] {
    uptempo_batch& to = handle(batch, "batch");
    const auto added = to.batch.try_dispatch(handle(kernel, "kernel").kernel,
                                             grid_of(place(grid, "grid")), arguments_of(arguments));
    if (added) to.last = *added;
    return status_of(added);
  });
}

uptempo_status uptempo_batch_raw(uptempo_batch* batch, const void* packet) {
  return guarded(__func__, [&] {
    uptempo_batch& to = handle(batch, "batch");
    aql::Packet64 copy;
    std::memcpy(&copy, &place(static_cast<const std::byte*>(packet), "packet"), sizeof copy);
    to.batch.raw(copy);
  });
}

uptempo_status uptempo_batch_declare(uptempo_batch* batch, const uptempo_declaration* declaration) {
  return guarded(__func__, [&] {
    uptempo_batch& of = handle(batch, "batch");
    const uptempo_declaration known = checked(declaration);
    if (!of.last)
      refuse_parameter("batch", "no dispatch has been appended to it", "append one first");
    declare(*of.last, known);
  });
}

uptempo_status uptempo_batch_after_signal(uptempo_batch* batch, uint64_t hsa_signal) {
  return guarded(__func__, [&] { handle(batch, "batch").batch.after(hsa_signal_t{hsa_signal}); });
}

uptempo_status uptempo_batch_complete_with(uptempo_batch* batch, uint64_t hsa_signal) {
  return guarded(__func__,
                 [&] { handle(batch, "batch").batch.complete_with(hsa_signal_t{hsa_signal}); });
}

uptempo_status uptempo_batch_submit(uptempo_batch* batch, uint64_t timeout_ns, const char* site,
                                    uptempo_completion* completion) {
  return guarded(__func__, [&] {
    BatchSubmitter& submitter = handle(batch, "batch").batch;
    uptempo_completion& result = place(completion, "completion");
    if (timeout_ns == 0) {
      const auto submitted = submitter.try_submit(site_of(site));
      if (submitted) result = completion_of(*submitted);
      return status_of(submitted);
    }
    result = completion_of(submitter.submit(deadline_of(timeout_ns), site_of(site)));
    return UPTEMPO_OK;
  });
}

uptempo_status uptempo_batch_clear(uptempo_batch* batch) {
  return guarded(__func__, [&] { handle(batch, "batch").batch.clear(); });
}

uptempo_status uptempo_batch_size(const uptempo_batch* batch, size_t* size) {
  return guarded(__func__, [&] { place(size, "size") = handle(batch, "batch").batch.size(); });
}

uptempo_status uptempo_batch_explain(uptempo_batch* batch, char** text) {
  return create(__func__, text, [&] { return text_copy(handle(batch, "batch").batch.explain()); });
}
