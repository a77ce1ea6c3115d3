#include "engine/runtime/memory_fault.hpp"

#include <utility>

#include "engine/runtime/session.hpp"

namespace uptempo {

MemoryFaultListener::MemoryFaultListener(const Agent& agent, Function function)
    : session_(Session::current()),
      number_(session_->listen([agent = agent.handle(),
                                function = std::move(function)](const Session::MemoryFault& fault) {
        if (fault.agent.handle != agent.handle) return false;
        function(fault.status, fault.text);
        return true;
      })) {}

MemoryFaultListener::~MemoryFaultListener() { session_->stop_listening(number_); }

}  // namespace uptempo
