// Stream's copies, fills and frees: choice of path, staging, and order.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/session.hpp>
#include <uptempo/stream/copy/retired.hpp>
#include <uptempo/stream/copy/transfers.hpp>
#include <uptempo/stream/stream.hpp>
#include <uptempo/stream/streams_state.hpp>

namespace uptempo {

using namespace detail;

// A copy or fill in preparation. Contiguous rows are merged into one.
struct Stream::Transfer {
  CopyRange to;
  CopyRange from;  // no data: a fill
  CopyRows rows;
  std::array<uint64_t, 2> pattern{};
  bool always_staged = false;

  bool is_fill() const noexcept { return from.data == nullptr; }
  size_t bytes() const noexcept { return rows.width_bytes * rows.height; }
  bool is_linear() const noexcept { return rows.height == 1; }
  std::string text() const {
    const std::string shape =
        is_linear() ? fmt::format("{} bytes", rows.width_bytes)
                    : fmt::format("{} rows of {} bytes", rows.height, rows.width_bytes);
    if (is_fill()) return fmt::format("a fill of {} of {}", shape, name_of(to.place));
    return fmt::format("a copy of {} from {} to {}", shape, name_of(from.place), name_of(to.place));
  }
};

std::string_view name_of(CopyPath path) noexcept {
  constexpr std::string_view kNames[] = {"automatic", "engine", "kernel", "host"};
  return kNames[static_cast<size_t>(path)];
}

std::string_view detail::name_of(CopyPlace place) noexcept {
  constexpr std::string_view kNames[] = {"device memory", "pinned host memory",
                                         "pageable host memory", "another agent's memory"};
  return kNames[static_cast<size_t>(place)];
}

namespace {

// Bytes from the start of the first row to the end of the last.
size_t extent(size_t pitch, const CopyRows& rows) noexcept {
  return (rows.height - 1) * pitch + rows.width_bytes;
}

[[noreturn]] void refuse(std::string asked, std::string found, std::string remedy) {
  throw Error({.code = ErrorCode::argument,
               .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "Stream::copy",
               .asked = std::move(asked),
               .found = std::move(found),
               .remedy = std::move(remedy)});
}

void check_rows(const char* what, const CopyRange& range, size_t pitch, const CopyRows& rows) {
  if (rows.height > 1 && pitch < rows.width_bytes)
    refuse(fmt::format("rows of {} bytes", rows.width_bytes),
           fmt::format("a {} pitch of {}", what, pitch), "make the pitch at least the width");
  const bool too_far = rows.height > 1 && pitch > (SIZE_MAX - rows.width_bytes) / (rows.height - 1);
  if (too_far || extent(pitch, rows) > range.size_bytes)
    refuse(
        fmt::format("{} rows of {} bytes with a pitch of {}", rows.height, rows.width_bytes, pitch),
        fmt::format("a {} of {} bytes", what, range.size_bytes), "choose rows inside the memory");
}

void fill_on_host(std::byte* to, const CopyRows& rows,
                  const std::array<uint64_t, 2>& pattern) noexcept {
  for (size_t row = 0; row < rows.height; ++row) {
    std::byte* const start = to + row * rows.to_pitch;
    for (size_t at = 0; at < rows.width_bytes; at += sizeof(pattern))
      std::memcpy(start + at, pattern.data(), std::min(sizeof(pattern), rows.width_bytes - at));
  }
}

}  // namespace

CopyPath Stream::copy(const CopyTarget& to, const CopySource& from, CopyPath path,
                      bool always_staged) {
  const size_t bytes = from.range().size_bytes;
  if (to.range().size_bytes != bytes)
    refuse(fmt::format("a copy of {} bytes", bytes),
           fmt::format("a target of {} bytes", to.range().size_bytes),
           "make both the same size, or pass a part of the larger one");
  return put({.to = to.range(),
              .from = from.range(),
              .rows = {bytes, 1, bytes, bytes},
              .always_staged = always_staged},
             path);
}

CopyPath Stream::copy_2d(const CopyTarget& to, const CopySource& from, const CopyRows& rows,
                         CopyPath path) {
  if (rows.width_bytes == 0 || rows.height == 0) return CopyPath::automatic;
  check_rows("target", to.range(), rows.to_pitch, rows);
  check_rows("source", from.range(), rows.from_pitch, rows);
  return put({.to = to.range(), .from = from.range(), .rows = rows}, path);
}

CopyPath Stream::fill_with(const CopyTarget& to, const CopyRows& rows, const void* pattern,
                           size_t pattern_bytes, CopyPath path) {
  if (rows.width_bytes == 0 || rows.height == 0) return CopyPath::automatic;
  check_rows("target", to.range(), rows.to_pitch, rows);
  if (rows.width_bytes % pattern_bytes != 0)
    refuse(fmt::format("a fill of {} bytes", rows.width_bytes),
           fmt::format("a pattern of {} bytes", pattern_bytes), "fill a multiple of the pattern");
  Transfer fill{.to = to.range(), .from = {}, .rows = rows};
  for (size_t at = 0; at < sizeof(fill.pattern); at += pattern_bytes)
    std::memcpy(reinterpret_cast<std::byte*>(fill.pattern.data()) + at, pattern, pattern_bytes);
  return put(fill, path);
}

// True if no earlier work of the stream is unfinished. Publishes no marker to find out.
bool Stream::is_known_idle() {
  drop_finished();
  return waits_.empty() && (position_.empty() || queue_->timeline().is_done(position_.epoch));
}

// Call before the kernels are loaded: ROCr copies their code, which on a failed GPU never ends.
void Stream::expect_kernel(const Transfer& transfer) {
  take_queue();
  if (position_.empty() && waits_.empty()) choose_queue();
  if (!queue_->failed()) return;
  const Failure failure = queue_->timeline().failure();
  throw Error(
      {.code = failure.code(),
       .status = failure.status,
       .call = "Stream::copy",
       .asked = transfer.text(),
       .found = failure.text,
       .remedy = std::string(Session::MemoryFault::remedy(failure.status, "create new Streams"))});
}

CopyPath Stream::path_for(const Transfer& transfer, CopyPath asked) {
  Transfers& transfers = streams_->transfers();
  const CopyPlace to = transfer.to.place;
  const CopyPlace from = transfer.is_fill() ? CopyPlace::pinned : transfer.from.place;
  if (from == CopyPlace::pageable && to == CopyPlace::pageable)
    refuse(transfer.text(), "the device can access neither end",
           "copy on the host after synchronize()");
  const bool is_automatic = asked == CopyPath::automatic;
  const bool wants_host = asked == CopyPath::host ||
                          (is_automatic && transfer.bytes() <= transfers.limits().host_bytes);

  // Why a path cannot make the transfer.
  const char* no_host = nullptr;
  if (!is_host(from) || !(is_host(to) || (to == CopyPlace::device && transfer.to.host_writes))) {
    no_host = "the host cannot access both ends";
  } else if (wants_host && !is_known_idle()) {
    no_host = "the stream may have unfinished work";
  }
  const char* const no_engine =
      transfer.is_fill()      ? "copy engines cannot fill"
      : !transfer.is_linear() ? "copy engines copy contiguous bytes only"
      : is_behind_host()      ? "the stream waits for the host, and a copy engine would block the "
                                "copies of other streams"
                              : nullptr;
  const char* const no_kernel = transfer.is_fill() && to == CopyPlace::pageable
                                    ? "kernels cannot access pageable memory"
                                    : nullptr;
  if (!is_automatic) {
    if (const char* const why = asked == CopyPath::host     ? no_host
                                : asked == CopyPath::engine ? no_engine
                                                            : no_kernel)
      refuse(fmt::format("{} on the {} path", transfer.text(), name_of(asked)), why,
             "use another path, or CopyPath::automatic");
    if (asked == CopyPath::kernel) {
      expect_kernel(transfer);
      transfers.kernels();
    }
    return asked;
  }
  if (wants_host && no_host == nullptr) return CopyPath::host;
  const bool prefers_kernel =
      no_engine != nullptr || transfer.bytes() <= transfers.limits().kernel_bytes;
  if (prefers_kernel && no_kernel == nullptr) {
    expect_kernel(transfer);
    if (transfers.has_kernels()) return CopyPath::kernel;
  }
  if (no_engine == nullptr) return CopyPath::engine;
  if (no_kernel != nullptr)
    refuse(transfer.text(), no_kernel, "fill pinned memory, or synchronize() first");
  transfers.kernels();  // throws the Error of the failed load
  return CopyPath::kernel;
}

CopyPath Stream::put(Transfer transfer, CopyPath asked) {
  require_here("Stream::copy");
  if (transfer.bytes() == 0) return CopyPath::automatic;
  Transfers& transfers = streams_->transfers();
  if (!transfers.usable())
    Session::refuse_ended("Stream::copy", transfer.text(), "the memory of its pools",
                          "make a new Runtime, new buffers and new Streams");
  CopyRows& rows = transfer.rows;
  if (rows.height > 1 && rows.to_pitch == rows.width_bytes &&
      (transfer.is_fill() || rows.from_pitch == rows.width_bytes)) {
    const size_t bytes = transfer.bytes();
    rows = {bytes, 1, bytes, bytes};
  }
  if (follows_others_) follow_default();
  for (CopyRange* range : {&transfer.to, &transfer.from}) {
    if (range->data != nullptr && range->place == CopyPlace::device && transfers.is_foreign(*range))
      range->place = CopyPlace::peer;
  }
  if (!transfer.is_fill() && transfer.from.place == CopyPlace::pageable)
    transfers.await_users(transfer.from.data, extent(rows.from_pitch, rows),
                          RetiredList::Use::writes);

  const CopyPath path = path_for(transfer, asked);
  for (const CopyRange* range : {&transfer.to, &transfer.from})
    if (path != CopyPath::host && range->data != nullptr && transfers.is_foreign(*range))
      transfers.require_access(*range, transfer.text());
  if (path == CopyPath::host) {
    carry_out_on_host(transfer);
  } else if (transfer.is_fill()) {
    launch_transfer(transfer);
  } else if (transfer.from.place != CopyPlace::pageable &&
             transfer.to.place != CopyPlace::pageable) {
    begin(transfer, path);
  } else if (transfer.always_staged || transfer.bytes() <= transfers.limits().stage_bytes) {
    put_staged(transfer, path);
  } else {
    put_pinned_for_once(transfer, path);
  }
  count_transfer(transfer, path);
  return path;
}

void Stream::count_transfer(const Transfer& transfer, CopyPath path) noexcept {
  count(path == CopyPath::engine   ? &CounterBlock::copies_by_engine
        : path == CopyPath::kernel ? &CounterBlock::copies_by_kernel
                                   : &CounterBlock::copies_by_host);
  if (transfer.is_fill()) {
    count(&CounterBlock::fills);
    return;
  }
  const CopyDirection direction = direction_of(transfer.to.place, transfer.from.place);
  const bool to_host = direction == CopyDirection::to_host;
  if (!to_host && direction != CopyDirection::to_device)
    return count(&CounterBlock::copies_on_device);
  const CopyRange& host = to_host ? transfer.to : transfer.from;
  if (path == CopyPath::engine && host.place == CopyPlace::pinned)
    count(&CounterBlock::copies_pinned);
  if (!to_host) count(&CounterBlock::bytes_to_device, transfer.bytes());
  if (to_host && !is_host(transfer.from.place))
    count(&CounterBlock::bytes_to_host, transfer.bytes());
}

void Stream::carry_out_on_host(const Transfer& transfer) {
  release_retired();  // of the stream's earlier work
  if (transfer.is_fill()) {
    fill_on_host(transfer.to.data, transfer.rows, transfer.pattern);
  } else {
    copy_rows_on_host(transfer.to.data, transfer.from.data, transfer.rows);
  }
  if (transfer.to.place == CopyPlace::device) {
    const size_t bytes = extent(transfer.rows.to_pitch, transfer.rows);
    streams_->transfers().flush_host_stores(transfer.to.data + bytes - 1);
  }
  position_.acquires_system = true;
}

// Requires that the device can access both ends. Returns the transfer's completion.
Completion Stream::begin(const Transfer& transfer, CopyPath path) {
  if (path == CopyPath::kernel) {
    launch_transfer(transfer);
    return completion_of(queue_->timeline(), position_.epoch);
  }
  Transfers& transfers = streams_->transfers();
  const CopyLane::Copy copy = transfers.copy_of(transfer.to, transfer.from, transfer.bytes());
  if (!position_.empty()) add(queue_->event_for(position_));
  CopyLane& lane =
      transfers.lane_for(engine_direction_of(transfer.to.place, transfer.from.place), waits_);
  const Event copied = lane.copy(copy, waits_);
  position_ = {};
  waits_.assign(1, copied);  // has room
  if (follows_others_) note_order();
  return copied.completion();
}

void Stream::launch_transfer(const Transfer& transfer) {
  Transfers& transfers = streams_->transfers();
  // This agent's caches are not coherent with a peer's memory.
  if (!transfer.is_fill() && transfer.from.place == CopyPlace::peer)
    position_.acquires_system = true;
  const CopyRows& rows = transfer.rows;
  const TransferBox box{.to = transfer.to.data,
                        .from = transfer.from.data,
                        .width_bytes = rows.width_bytes,
                        .height = rows.height,
                        .to_pitch = rows.to_pitch,
                        .from_pitch = rows.from_pitch};
  const auto launch_it = [this](const auto&... parts) { launch(parts...); };
  if (transfer.is_fill()) {
    launch_fill(transfers.kernels(), transfers.grids(), box, transfer.pattern, launch_it);
  } else {
    launch_copy(transfers.kernels(), transfers.grids(), box, launch_it);
  }
}

void Stream::put_staged(const Transfer& transfer, CopyPath path) {
  Transfers& transfers = streams_->transfers();
  const CopyRows& rows = transfer.rows;
  // A stream that waits for the host might hold staging memory forever, so it gets its own.
  const std::shared_ptr<Staging> own =
      is_behind_host() ? transfers.make_staging(transfer.bytes()) : std::shared_ptr<Staging>();
  const size_t most = own ? transfer.bytes() : transfers.limits().piece_bytes;
  const size_t width = std::min(rows.width_bytes, most);
  const size_t height = std::clamp<size_t>(most / width, 1, rows.height);
  for (size_t row = 0; row < rows.height; row += height) {
    for (size_t column = 0; column < rows.width_bytes; column += width) {
      Transfer part = transfer;
      part.to.data += row * rows.to_pitch + column;
      part.from.data += row * rows.from_pitch + column;
      part.rows.width_bytes = std::min(width, rows.width_bytes - column);
      part.rows.height = std::min(height, rows.height - row);
      put_staged_part(part, path, own);
    }
  }
  count(&CounterBlock::copies_staged);
  count(&CounterBlock::bytes_staged, transfer.bytes());
}

void Stream::put_staged_part(const Transfer& part, CopyPath path,
                             const std::shared_ptr<Staging>& own) {
  Transfers& transfers = streams_->transfers();
  const bool to_device = part.from.place == CopyPlace::pageable;
  // Everything that may fail, before the copy begins.
  RetiredList& retired = RetiredList::of_process();
  RetiredList::Entry kept;
  if (!to_device || own) kept = retired.make_entry();
  Staging::Chunk chunk = own ? own->try_take(part.bytes()) : transfers.take_staging(part.bytes());
  Staging& staging = own ? *own : transfers.staging();
  const CopyRange staged{
      .data = chunk.get(), .size_bytes = part.bytes(), .place = CopyPlace::pinned};
  Transfer on_device = part;
  if (to_device) {
    on_device.rows.from_pitch = part.rows.width_bytes;
    CopyRows packing = part.rows;
    packing.to_pitch = part.rows.width_bytes;
    copy_rows_on_host(chunk.get(), part.from.data, packing);
    on_device.from = staged;
  } else {
    on_device.rows.to_pitch = part.rows.width_bytes;
    on_device.to = staged;
  }
  const Completion after = begin(on_device, path);
  staging.use_until(chunk, after);
  if (to_device && !own) return;
  Retired& entry = kept.front();
  entry.uses.add(after);
  entry.chunk = std::move(chunk);
  entry.staging = own;
  entry.owner = &transfers;
  if (!to_device) {
    entry.to = part.to.data;
    entry.from = staged.data;
    entry.rows = part.rows;
    entry.rows.from_pitch = part.rows.width_bytes;
    entry.used = part.to.data;
    entry.used_bytes = extent(part.rows.to_pitch, part.rows);
    entry.writes = true;
  }
  retired.add(std::move(kept));
}

void Stream::put_pinned_for_once(const Transfer& transfer, CopyPath path) {
  Transfers& transfers = streams_->transfers();
  const bool to_device = transfer.from.place == CopyPlace::pageable;
  const CopyRange& pageable = to_device ? transfer.from : transfer.to;
  const size_t bytes =
      extent(to_device ? transfer.rows.from_pitch : transfer.rows.to_pitch, transfer.rows);
  if (transfers.agent() == nullptr)
    refuse(transfer.text(), "there is no agent to pin memory for", "raise CopyLimits::stage_bytes");
  release_retired();  // events that are only polled unpin nothing
  // hsa_amd_memory_unlock selects a pin by address alone, so two pins of the same memory must not
  // overlap in time.
  transfers.await_users(pageable.data, bytes, RetiredList::Use::pins);
  RetiredList& retired = RetiredList::of_process();
  RetiredList::Entry kept = retired.make_entry();
  HostPin pin(*transfers.agent(), pageable.data, bytes);
  Transfer pinned = transfer;
  CopyRange& range = to_device ? pinned.from : pinned.to;
  range.data = static_cast<std::byte*>(pin.device_address());
  range.place = CopyPlace::pinned;
  // The device could not access this memory until now.
  position_.acquires_system = true;
  Retired& entry = kept.front();
  entry.uses.add(begin(pinned, path));
  entry.used = pageable.data;
  entry.used_bytes = bytes;
  entry.writes = !to_device;
  entry.pin = std::move(pin);
  entry.owner = &transfers;
  retired.add(std::move(kept));
  count(&CounterBlock::copies_pinned_for_once);
}

void Stream::retire(Allocation (*take)(void* from) noexcept, void* from) {
  require_here("Stream::free_after_work");
  const Event after = record();
  RetiredList& retired = RetiredList::of_process();
  RetiredList::Entry kept = retired.make_entry();
  Retired& entry = kept.front();
  entry.uses.add(after.completion());
  entry.memory.push_back(take(from));
  entry.owner = &streams_->transfers();
  retired.add(std::move(kept));
  count(&CounterBlock::frees_deferred);
  release_retired();
}

}  // namespace uptempo
