// The C++ options of the option structs of the C interface: a field of 0 is the default.
//
// Errors: a number that no enum has, and NULL where there must be an array, throw Error.
//
// Thread safety: pure functions.
#pragma once

#include <uptempo/c/batch.h>
#include <uptempo/c/queue.h>
#include <uptempo/c/recording.h>
#include <uptempo/c/stream.h>
#include <uptempo/dispatch/batch_submitter.hpp>
#include <uptempo/dispatch/queue.hpp>
#include <uptempo/recording/recording.hpp>
#include <uptempo/stream/stream.hpp>
#include <uptempo/stream/streams.hpp>

namespace uptempo::c {

QueueOptions queue_options_of(const uptempo_queue_options& given);
BatchOptions batch_options_of(const uptempo_batch_options& given);
RecordingOptions recording_options_of(const uptempo_recording_options& given);
StreamsOptions streams_options_of(const uptempo_streams_options& given);
StreamOptions stream_options_of(const uptempo_stream_options& given);

}  // namespace uptempo::c
