// Holds the consumer of an Uptempo queue at a barrier packet, so that a submission is timed without
// the device's work (row.hpp). One owner; the batch has no packets of its own while the gate
// closes.
#pragma once

#include <hsa/hsa.h>

#include <uptempo/aql/packet.hpp>
#include <uptempo/dispatch/batch_submitter.hpp>
#include <uptempo/runtime/signal.hpp>

namespace uptempo::bench {

class QueueGate {
 public:
  void close(BatchSubmitter& batch) {
    hsa_signal_store_screlease(signal_.handle(), 1);
    batch.raw(aql::to_packet(
        aql::BarrierAnd{.flags = {aql::Barrier::on, aql::FenceScope::none, aql::FenceScope::none},
                        .dependencies = {signal_.handle()}}));
    batch.submit();
  }
  void open() { hsa_signal_store_screlease(signal_.handle(), 0); }

 private:
  Signal signal_{SignalKind::event_less, 0};
};

}  // namespace uptempo::bench
