#include <uptempo/c/stream.h>

#include <memory>
#include <optional>
#include <utility>

#include <uptempo/c/call.hpp>
#include <uptempo/c/memory_handle.hpp>
#include <uptempo/c/options.hpp>
#include <uptempo/c/queue_handle.hpp>
#include <uptempo/stream/stream.hpp>
#include <uptempo/stream/streams.hpp>

using namespace uptempo;
using namespace uptempo::c;

struct uptempo_streams : Handle<Kind::streams> {
  uptempo_streams(const Agent& agent, const StreamsOptions& options) : streams(agent, options) {}
  Streams streams;
};

struct uptempo_stream : Handle<Kind::stream> {
  uptempo_stream(Streams& of, const StreamOptions& options) : stream(of, options) {}
  Stream stream;
};

struct uptempo_event : Handle<Kind::event> {
  const Event& event() const noexcept { return timed ? *timed : plain; }
  Event plain;
  std::optional<TimedEvent> timed;  // instead of `plain`
};

namespace {

CopyPath path_of(uptempo_path given) { return enum_of(given, CopyPath::host, "path"); }

void return_path(CopyPath path, uptempo_path* taken) noexcept {
  if (taken != nullptr) *taken = static_cast<uptempo_path>(path);
}

CopyRows rows_of(const uptempo_rows* given) {
  const uptempo_rows& rows = place(given, "rows");
  return {.width_bytes = rows.width_bytes,
          .height = rows.height,
          .to_pitch = rows.to_pitch,
          .from_pitch = rows.from_pitch};
}

// For a launch whose handles or grid pointer are not valid.
[[gnu::cold, gnu::noinline]] uptempo_status refuse_launch(const char* function,
                                                          const uptempo_stream* stream,
                                                          const uptempo_kernel* kernel,
                                                          const uptempo_grid* grid) noexcept {
  return guarded(function, [&] {
    (void)handle(stream, "stream");
    (void)handle(kernel, "kernel");
    (void)place(grid, "grid");
  });
}

}  // namespace

uptempo_status uptempo_streams_create(const uptempo_agent* agent,
                                      const uptempo_streams_options* options,
                                      uptempo_streams** streams) {
  return create(__func__, streams, [&] {
    const Agent& on = handle(agent, "agent").agent;
    return new uptempo_streams(on, streams_options_of(options_of(options, "options")));
  });
}

uptempo_status uptempo_streams_destroy(uptempo_streams* streams) {
  return destroy(__func__, streams, "streams");
}

uptempo_status uptempo_streams_synchronize(uptempo_streams* streams, uint64_t timeout_ns,
                                           uptempo_wait how) {
  return guarded(__func__, [&] {
    return status_of(
        handle(streams, "streams").streams.synchronize(deadline_of(timeout_ns), policy_of(how)));
  });
}

uptempo_status uptempo_streams_publish_own(uptempo_streams* streams,
                                           const struct hsa_queue_s* hsa_queue,
                                           void (*publish)(void* data, uint64_t room), void* data) {
  return guarded(__func__, [&] {
    Streams& of = handle(streams, "streams").streams;
    (void)place(publish, "publish");
    of.publish_own(hsa_queue, [&](uint64_t room) { publish(data, room); });
  });
}

uptempo_status uptempo_streams_describe(const uptempo_streams* streams, char** text) {
  return create(__func__, text,
                [&] { return text_copy(handle(streams, "streams").streams.describe()); });
}

uptempo_status uptempo_streams_report(const uptempo_streams* streams, char** text) {
  return create(__func__, text,
                [&] { return text_copy(handle(streams, "streams").streams.report()); });
}

uptempo_status uptempo_stream_create(uptempo_streams* streams,
                                     const uptempo_stream_options* options,
                                     uptempo_stream** stream) {
  return create(__func__, stream, [&] {
    Streams& of = handle(streams, "streams").streams;
    return new uptempo_stream(of, stream_options_of(options_of(options, "options")));
  });
}

uptempo_status uptempo_stream_destroy(uptempo_stream* stream) {
  return destroy(__func__, stream, "stream");
}

uptempo_status uptempo_stream_launch(uptempo_stream* stream, const uptempo_kernel* kernel,
                                     const uptempo_grid* grid, uptempo_arguments arguments,
                                     const char* site) {
  if (!is_handle(stream) || !is_handle(kernel) || grid == nullptr) [[unlikely]]
    return refuse_launch(__func__, stream, kernel, grid);
  return guarded(__func__, [&] {
    stream->stream.launch(kernel->kernel, {grid_of(*grid), site_of(site)}, arguments_of(arguments));
  });
}

uptempo_status uptempo_stream_host_wrote(uptempo_stream* stream) {
  return guarded(__func__, [&] { handle(stream, "stream").stream.host_wrote(); });
}

uptempo_status uptempo_stream_synchronize(uptempo_stream* stream, uint64_t timeout_ns,
                                          uptempo_wait how) {
  return guarded(__func__, [&] {
    return status_of(
        handle(stream, "stream").stream.synchronize(deadline_of(timeout_ns), policy_of(how)));
  });
}

uptempo_status uptempo_stream_poll(uptempo_stream* stream) {
  return guarded(__func__, [&] { return status_of(handle(stream, "stream").stream.ready()); });
}

uptempo_status uptempo_event_create(const uptempo_event_options* options, uptempo_event** event) {
  return create(__func__, event, [&] {
    auto made = std::make_unique<uptempo_event>();
    if (options_of(options, "options").timed != 0) made->timed.emplace();
    return made.release();
  });
}

uptempo_status uptempo_event_destroy(uptempo_event* event) {
  return destroy(__func__, event, "event");
}

uptempo_status uptempo_stream_record(uptempo_stream* stream, uptempo_event* event) {
  return guarded(__func__, [&] {
    Stream& of = handle(stream, "stream").stream;
    uptempo_event& recorded = handle(event, "event");
    if (recorded.timed) {
      of.record(*recorded.timed);
    } else {
      recorded.plain = of.record();
    }
  });
}

uptempo_status uptempo_stream_after(uptempo_stream* stream, const uptempo_event* event) {
  return guarded(__func__,
                 [&] { handle(stream, "stream").stream.after(handle(event, "event").event()); });
}

uptempo_status uptempo_event_wait(const uptempo_event* event, uint64_t timeout_ns,
                                  uptempo_wait how) {
  return guarded(__func__, [&] {
    return status_of(handle(event, "event").event().wait(deadline_of(timeout_ns), policy_of(how)));
  });
}

uptempo_status uptempo_event_poll(const uptempo_event* event) {
  return guarded(__func__, [&] { return status_of(handle(event, "event").event().ready()); });
}

uptempo_status uptempo_event_completion(const uptempo_event* event,
                                        uptempo_completion* completion) {
  return guarded(__func__, [&] {
    place(completion, "completion") = completion_of(handle(event, "event").event().completion());
  });
}

uptempo_status uptempo_event_time(const uptempo_event* event, uint64_t* ns) {
  return guarded(__func__, [&] {
    const uptempo_event& of = handle(event, "event");
    if (!of.timed)
      refuse_parameter("event", "it is not timed", "create it with uptempo_event_options::timed");
    place(ns, "ns") = of.timed->ns();
  });
}

uptempo_status uptempo_stream_after_signal(uptempo_stream* stream, uint64_t hsa_signal,
                                           uint32_t set_by_device) {
  return guarded(__func__, [&] {
    handle(stream, "stream")
        .stream.after(hsa_signal_t{hsa_signal},
                      set_by_device != 0 ? SignalSetBy::device : SignalSetBy::host);
  });
}

uptempo_status uptempo_stream_signal(uptempo_stream* stream, uint64_t hsa_signal) {
  return guarded(__func__,
                 [&] { handle(stream, "stream").stream.signal(hsa_signal_t{hsa_signal}); });
}

uptempo_status uptempo_stream_copy(uptempo_stream* stream, uptempo_range to, uptempo_range from,
                                   uptempo_path path, uptempo_path* taken) {
  return guarded(__func__, [&] {
    Stream& of = handle(stream, "stream").stream;
    return_path(
        of.copy(range_of<CopyTarget>(to, "to"), range_of<CopySource>(from, "from"), path_of(path)),
        taken);
  });
}

uptempo_status uptempo_stream_copy_2d(uptempo_stream* stream, uptempo_range to, uptempo_range from,
                                      const uptempo_rows* rows, uptempo_path path,
                                      uptempo_path* taken) {
  return guarded(__func__, [&] {
    Stream& of = handle(stream, "stream").stream;
    return_path(of.copy_2d(range_of<CopyTarget>(to, "to"), range_of<CopySource>(from, "from"),
                           rows_of(rows), path_of(path)),
                taken);
  });
}

uptempo_status uptempo_stream_fill(uptempo_stream* stream, uptempo_range to, const void* pattern,
                                   size_t pattern_bytes, uptempo_path path, uptempo_path* taken) {
  return guarded(__func__, [&] {
    Stream& of = handle(stream, "stream").stream;
    const CopyTarget target = range_of<CopyTarget>(to, "to");
    return_path(
        with_pattern(pattern, pattern_bytes,
                     [&](const auto& value) { return of.fill(target, value, path_of(path)); }),
        taken);
  });
}

uptempo_status uptempo_stream_fill_2d(uptempo_stream* stream, uptempo_range to,
                                      const uptempo_rows* rows, const void* pattern,
                                      size_t pattern_bytes, uptempo_path path,
                                      uptempo_path* taken) {
  return guarded(__func__, [&] {
    Stream& of = handle(stream, "stream").stream;
    const CopyTarget target = range_of<CopyTarget>(to, "to");
    const CopyRows shape = rows_of(rows);
    return_path(with_pattern(pattern, pattern_bytes,
                             [&](const auto& value) {
                               return of.fill_2d(target, shape, value, path_of(path));
                             }),
                taken);
  });
}

uptempo_status uptempo_stream_free_after_work(uptempo_stream* stream, uptempo_buffer* buffer) {
  return guarded(__func__, [&] {
    Stream& of = handle(stream, "stream").stream;
    uptempo_buffer& freed = handle(buffer, "buffer");
    of.free_after_work(std::move(freed.memory));
    delete &freed;
  });
}
