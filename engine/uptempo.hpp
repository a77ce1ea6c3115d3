// Everything a host program needs to dispatch kernels: one include.
//
//   #include <uptempo/uptempo.hpp>
//   using namespace uptempo;
//
//   Runtime runtime;
//   Agent   gpu = runtime.gpu();
//   // from <uptempo/kernels/bitonic_sort.hpp>, which uptempo_add_kernels makes
//   Program program{gpu, kernels::bitonic_sort()};
//   auto    sort = program.kernel<uint32_t*, uint32_t, uint32_t, uint32_t>("bitonic_sort");
//   Queue   queue{gpu};
//   DeviceBuffer<uint32_t> keys{gpu, 32768};
//
//   BatchSubmitter batch{queue};
//   for (uint32_t stage = 0; stage < 15; ++stage)
//     for (uint32_t pass = 0; pass <= stage; ++pass)
//       batch.dispatch(sort, Grid{16384}.by(256), keys.data(), stage, pass, 1u);
//   batch.submit().wait();                               // 120 packets, 1 doorbell, 1 signal
//
// Errors: set-up may throw Error, and misuse does. The hot path (dispatch, submit, wait) throws
// only if the device has failed, a deadline has passed or an argument is impossible. Each header
// states its contracts: thread safety, lifetime, order, errors. Error::code() is for programs that
// act on an error. A program compiled without exceptions uses the try_ forms (tried.hpp) after
// set-up.
#pragma once

#include <uptempo/runtime/version.h>
#include <uptempo/completion/awaitable.hpp>
#include <uptempo/completion/completion.hpp>
#include <uptempo/completion/notifier.hpp>
#include <uptempo/dispatch/batch_submitter.hpp>
#include <uptempo/dispatch/queue.hpp>
#include <uptempo/fences/fence_plan.hpp>
#include <uptempo/memory/buffer.hpp>
#include <uptempo/memory/kernarg_placement.hpp>
#include <uptempo/program/kernel_object.hpp>
#include <uptempo/program/kernel_start.hpp>
#include <uptempo/program/metadata.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/recording/recording.hpp>
#include <uptempo/recording/recording_file.hpp>
#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/ring_access.hpp>
#include <uptempo/runtime/runtime.hpp>
#include <uptempo/runtime/signal.hpp>
#include <uptempo/runtime/tried.hpp>
#include <uptempo/stream/launcher.hpp>
#include <uptempo/stream/queue/event.hpp>
#include <uptempo/stream/stream.hpp>
#include <uptempo/stream/streams.hpp>
