// HIP streams and events and Uptempo's queues and streams wait for each other on the device. No
// call here waits for the device, except under back-pressure (queue.hpp).
//
//   hipMemcpyAsync(x, host, bytes, hipMemcpyHostToDevice, stream);
//   hip::after(queue, stream);    // the queue's later work follows the copy
//   batch.dispatch(step, grid, x);
//   batch.submit();
//   hip::after(stream, queue);    // the stream's later work follows the batch
//   consume<<<blocks, threads, 0, stream>>>(x);
//
// The first argument waits; the second is waited for. A wait covers the work that has been
// submitted when it is called, and makes that work's writes visible to all later work of the first
// argument. Packets of a BatchSubmitter that are not submitted are not covered.
//
// Default streams: the legacy default stream, hipStream_t{}, keeps its order. To wait for it means
// to wait for the earlier work of all blocking streams, too; if it waits, their later work waits,
// too. hipStreamPerThread is the calling thread's.
//
// How: HIP's stream memory operations and AQL packets use one word of signal memory (words.hpp).
// Cost: a write kernel of HIP and two packets of the queue, or two packets and two kernels of HIP.
// HIP's wait is a kernel of one wavefront that spins, or with GPU_STREAMOPS_CP_WAIT=1 a packet.
// Events, and hipStreamPerThread, take one of four streams of the library as well.
// Nothing, if the work is known to be complete: the queue's last submission is ready, or a
// hipStreamNonBlocking or the default stream is idle. In steady state nothing here allocates HIP
// memory, and words are reused; at most 4096 waits per device may be unfinished.
//
// Order, and deadlocks: HIP puts many streams on few hardware queues (GPU_MAX_HW_QUEUES, 4). A
// stream that waits holds up the streams that share its hardware queue, and a queue that waits its
// later packets. That delays work but cannot deadlock: all that a wait depends on has been
// submitted before it, and every hardware queue executes in the order of submission. (With
// AMD_DIRECT_DISPATCH=0, HIP submits later and in another order, so waits are refused.) These cases
// are outside of that argument and can hang:
// * Work that waits for something that is not submitted yet: hipStreamWaitValue() or
//   Stream::after(Signal) for a value that later work in a held-up hardware queue writes, or a host
//   function (hipLaunchHostFunc) that submits or waits.
// * More hardware queues in use than the GPU has, where it cannot preempt a spinning kernel.
//
// Failure: if a queue fails, streams that wait for its lost work go on, and the next call with that
// queue throws. HIP itself reports nothing, so check the queue before using results. The failure of
// a borrowed queue, or of a copy by an engine, is found by the next call that looks at it.
//
// Errors: throw Error for a stream that is being captured or has been destroyed, for a stream of
// another device than the queue's agent, for a HIP device without stream memory operations, for
// AMD_DIRECT_DISPATCH=0, for a Queue that was moved from or has failed, and like
// BatchSubmitter::submit().
//
// Thread safety: the thread that owns the queue or Uptempo's stream. HIP streams may be used from
// any thread.
// Lifetime: a stream, a queue and the Runtime may be destroyed after the call as if it had not been
// made; HIP and the destructor of Queue wait for unfinished work. hipDeviceReset() must not be
// called: it frees the words.
#pragma once

#include <uptempo/dispatch/queue.hpp>
#include <uptempo/hip/api/hip_api.hpp>
#include <uptempo/stream/stream.hpp>

namespace uptempo::hip {

// Later submissions to the queue begin after the stream's work so far.
void after(Queue& queue, hipStream_t stream);
// Later work of the stream begins after the queue's submissions so far.
void after(hipStream_t stream, Queue& queue);

// Later submissions to the queue begin after the event. Nothing, if it is complete or was never
// recorded.
void after(Queue& queue, hipEvent_t event);
// The event completes after the queue's submissions so far, and is recorded as hipEventRecord()
// does it. Streams and the host wait for it as for any other event.
void record(hipEvent_t event, Queue& queue);

// The same with the later or earlier work of one of Uptempo's streams, which includes its copies,
// except for bytes that the host still owes to pageable memory (copy_memory.hpp). Streams that
// share a hardware queue with a stream that waits are held up, too.
void after(Stream& stream, hipStream_t awaited);
void after(hipStream_t stream, Stream& awaited);
void after(Stream& stream, hipEvent_t awaited);
void record(hipEvent_t event, Stream& awaited);

// The same for a single publication or event, of which the caller need not own the queue. A queue
// of the library on the HIP stream's device waits for the publication's signal, at the cost of two
// packets. The first wait creates that queue, and with it 16 signals of the process's budget
// (signal.hpp); there are four per device at most.
//
// The process's completion thread (completion_thread.hpp) lets HIP's stream go on instead where the
// device cannot:
// * Each of the four queues holds 16 unfinished waits, or waits for work of another queue than this
//   one, or for later work of it. A wait behind those would depend on them.
// * The batch has the caller's own signal (BatchSubmitter::complete_with()), which the caller may
//   re-arm or destroy as soon as the batch is complete.
// * The queue is borrowed with an error source, which only a thread can watch.
// * No queue can be created.
// The functions above need neither: prefer them.
//
// Until HIP's stream may go on, the awaited queue keeps the publication's resources; its destructor
// waits for that, as long as for its work.
// record(): the event is of the calling thread's current HIP device.
void after(hipStream_t stream, const Completion& awaited);
void after(hipStream_t stream, const Event& awaited);
void record(hipEvent_t event, const Completion& awaited);
void record(hipEvent_t event, const Event& awaited);

}  // namespace uptempo::hip
