// The handle of a queue in the C interface, which batches, recordings and streams use.
#pragma once

#include <hsa/hsa.h>

#include <atomic>

#include <uptempo/c/queue.h>
#include <uptempo/c/call.hpp>
#include <uptempo/dispatch/queue.hpp>

struct uptempo_queue : uptempo::c::Handle<uptempo::c::Kind::queue> {
  uptempo_queue(const uptempo::Agent& agent, const uptempo::QueueOptions& options)
      : queue(agent, options) {}
  uptempo_queue(const uptempo::Agent& agent, hsa_queue_t& borrowed,
                const uptempo::QueueOptions& options)
      : is_borrowed(true), queue(uptempo::Queue::borrow(agent, &borrowed, &error, options)) {}

  // Before the queue, which reads it until its end.
  std::atomic<hsa_status_t> error{HSA_STATUS_SUCCESS};
  const bool is_borrowed = false;
  uptempo::Queue queue;
};
